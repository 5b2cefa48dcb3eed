/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "features/evidence/error_text.h"
#include "model/exit/signal_name.h"

/* The words: facts are filled into the texts of cause_list.def. */

#define TEXT_MAX ((size_t)4096)
#define NAME_MAX 200 /* of a file or module that an error names */

static char *number_text(int64_t number)
{
    return mem_printf("%lld", (long long)number);
}

static char *name_of(const struct explain_host *host)
{
    return host == NULL ? NULL : mem_strdup(host->host);
}

static char *full_folder_of(const struct explain_host *host)
{
    return host == NULL ? NULL : host_signs_full_folder(host);
}

static char *signal_of(const struct explain_rank *rank)
{
    const char *name = rank == NULL ? NULL : signal_short_name(rank->code);
    return name == NULL ? mem_strdup("signal") : mem_printf("SIG%s", name);
}

static const struct explain_host *gpu_host(const struct view *v)
{
    const struct explain_host *host = view_gpu_host(v, GPU_FAULT_GPU);
    return host != NULL ? host : view_gpu_host(v, GPU_FAULT_PROGRAM);
}

/* "rank 1 is", "ranks 1,3 are" */
static char *those_behind(const struct view *v)
{
    int64_t first, last;
    struct buf list AUTO_BUF = BUF_INIT(TEXT_MAX);
    size_t count = 0;
    view_collectives(v, &first, &last);
    for (size_t i = 0; i < v->facts->rank_count; i++) {
        const struct explain_rank *rank = &v->facts->ranks[i];
        if (rank->collective == first)
            buf_printf(&list, "%s%d", count++ > 0 ? "," : "", rank->rank);
    }
    return mem_printf("rank%s %s %s", count == 1 ? "" : "s", buf_text(&list),
                      count == 1 ? "is" : "are");
}

static char *collective_text(const struct view *v, bool of_first)
{
    int64_t first, last;
    view_collectives(v, &first, &last);
    return number_text(of_first ? first : last);
}

/* What stands in quotes in the line that was found. An apostrophe within a word is none. */
static char *quoted_name(const struct view *v)
{
    if (v->at >= v->error->count)
        return NULL;
    const char *text = v->error->lines[v->at].text, *end = text + v->error->lines[v->at].length;
    for (const char *at = text; at < end; at++) {
        if (*at != '\'' || (at > text && isalnum((unsigned char)at[-1])))
            continue;
        const char *close = memchr(at + 1, '\'', (size_t)(end - at - 1));
        if (close == NULL || close == at + 1 || close - at > NAME_MAX)
            return NULL;
        return mem_strndup(at, (size_t)(close + 1 - at));
    }
    return NULL;
}

/* In a line of NCCL: "from peer 10.0.0.2<36707> with status=12" */
static char *peer_address(const struct view *v)
{
    static const char mark[] = "from peer ";
    if (v->at >= v->error->count)
        return NULL;
    const struct error_line *line = &v->error->lines[v->at];
    const char *peer = memmem(line->text, line->length, mark, sizeof(mark) - 1);
    if (peer == NULL)
        return NULL;
    peer += sizeof(mark) - 1;
    size_t left = (size_t)(line->text + line->length - peer), length = 0;
    while (length < left &&
           (isalnum((unsigned char)peer[length]) || peer[length] == '.' || peer[length] == ':'))
        length++;
    return length == 0 || length > NAME_MAX ? NULL : mem_strndup(peer, length);
}

/* The words of the texts, and the facts that they stand for. */
/* clang-format off */
#define WORD_LIST(X) \
    X(rank, v->rank == NULL ? NULL : number_text(v->rank->rank)) \
    X(host, v->rank == NULL ? NULL : mem_strdup(v->rank->host)) \
    X(pid, v->rank == NULL || v->rank->pid <= 0 ? NULL : number_text(v->rank->pid)) \
    X(signal, signal_of(v->rank)) \
    X(killer, mem_strdup(v->rank != NULL && v->rank->code == SIGKILL ? "the OOM killer" \
                                                                      : "a program")) \
    X(request, v->rank == NULL ? NULL : mem_strdup(v->rank->request)) \
    X(lost_host, name_of(view_lost_host(v))) \
    X(gpu_host, name_of(gpu_host(v))) \
    X(folder, full_folder_of(v->host)) \
    X(full_host, name_of(view_full_host(v))) \
    X(full_host_folder, full_folder_of(view_full_host(v))) \
    X(place, error_text_place(v->error)) \
    X(lines, mem_strdup(v->facts->has_folder ? "lines.txt" : "'hvdrun logs'")) \
    X(nccl, mem_strdup(v->facts->nccl)) \
    X(flights, mem_printf("%zu rank%s", v->facts->flights, v->facts->flights == 1 ? "" : "s")) \
    X(behind, those_behind(v)) \
    X(behind_at, collective_text(v, true)) \
    X(ahead_at, collective_text(v, false)) \
    X(name, quoted_name(v)) \
    X(peer, peer_address(v))
/* clang-format on */

#define WORD_TEXT(name, value)                     \
    static char *name##_word(const struct view *v) \
    {                                              \
        return value;                              \
    }
WORD_LIST(WORD_TEXT)

#define WORD_ROW(name, value) {#name, name##_word},

static const struct word {
    const char *name;
    char *(*text)(const struct view *v);
} words[] = {WORD_LIST(WORD_ROW)};

/* The fact `name`, which the caller frees; NULL: it is not known. */
static char *word_of(const struct view *v, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(words[i].name, name, length) == 0 && words[i].name[length] == '\0')
            return words[i].text(v);
    }
    return NULL;
}

/* {NAME} becomes the fact of that name, {NAME:TEXT} becomes TEXT if it is not known. The caller
 * frees it. */
static char *words_fill(const struct view *v, const char *text)
{
    struct buf out AUTO_BUF = BUF_INIT(TEXT_MAX);
    while (*text != '\0') {
        size_t plain = strcspn(text, "{");
        buf_append(&out, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        size_t whole = strcspn(text, "}"), name = strcspn(text, ":}");
        char *word AUTO_FREE = word_of(v, text + 1, name - 1);
        if (word != NULL)
            buf_puts(&out, word);
        else if (name < whole)
            buf_append(&out, text + name + 1, whole - name - 1);
        text += whole + (text[whole] == '}');
    }
    return buf_take(&out);
}

/* The causes. */

#define ANY 0

enum group { JOB, GPU, ERROR, CORE, HOST, MORE, VARIABLES, LAST, GROUPS };

struct cause {
    enum group group;
    bool (*when)(const struct view *v);
    int signal;
    const char *words, *plain, *advice;
};

static const struct cause causes[] = {
#define CAUSE(group, when, signal, words, plain, advice) \
    {group, fact_##when, signal, words, plain, advice},
#include "features/evidence/cause_list.def"
#undef CAUSE
};

/* Does the row apply? `*near`: to a line that may be about something else. */
static bool applies(const struct cause *cause, struct view *v, bool *near)
{
    v->at = v->error->names;
    *near = false;
    if (!cause->when(v))
        return false;
    if (cause->signal != ANY &&
        (v->rank == NULL || !v->rank->signaled || v->rank->code != cause->signal))
        return false;
    if (cause->words == NULL)
        return true;
    enum error_match match = error_text_find(v->error, cause->words, &v->at);
    *near = match == ERROR_TEXT_NEAR;
    return match != ERROR_TEXT_NOT;
}

static void take(const struct cause *cause, const struct view *v, bool near,
                 struct explain_finding *out)
{
    static const char likely[] = "most likely, ";
    if (cause->plain != NULL && out->plain == NULL) {
        char *plain AUTO_FREE = words_fill(v, cause->plain);
        bool says_so = strstr(plain, "most likely") != NULL;
        out->plain = mem_printf("%s%s", near && !says_so ? likely : "", plain);
    }
    char *advice AUTO_FREE = cause->advice == NULL ? NULL : words_fill(v, cause->advice);
    if (advice != NULL && !strv_has(&out->advice, advice))
        strv_add(&out->advice, advice);
}

/* The row about the rank's error. */
struct found {
    const struct cause *cause; /* NULL: none applies */
    size_t at;                 /* the line to quote */
    bool near;
};

static struct found find_error(struct view *v)
{
    bool near;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (causes[i].group == ERROR && applies(&causes[i], v, &near))
            return (struct found){&causes[i], v->at, near};
    }
    return (struct found){NULL, v->error->names, false};
}

static bool is_by_words(const struct found *found)
{
    return found->cause != NULL && found->cause->words != NULL;
}

static bool is_wanted(const struct explain_finding *finding, const bool *done,
                      const struct found *error, enum group group)
{
    if (done[JOB] || done[group] || group == ERROR)
        return false;
    if (group == CORE && is_by_words(error))
        return false; /* a core file would not say more */
    return group != LAST || finding->advice.count == 0;
}

static void take_causes(struct view *v, const struct found *error, struct explain_finding *out)
{
    bool done[GROUPS] = {false}, near;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        const struct cause *cause = &causes[i];
        if (cause == error->cause && !done[JOB]) {
            v->at = error->at;
            take(cause, v, error->near, out);
        } else if (is_wanted(out, done, error, cause->group) && applies(cause, v, &near)) {
            take(cause, v, near, out);
            done[cause->group] = true;
        }
    }
}

/* What the rank wrote to stderr, or to stdout if that says more. */
static struct found read_output(const char *const *outputs, struct view *v,
                                struct error_text *texts, struct explain_finding *out)
{
    static const char *const streams[] = {"stderr", "stdout"};
    struct found found[2];
    bool known[2];
    for (int i = 0; i < 2; i++) {
        error_text_read(outputs[i] == NULL ? "" : outputs[i], &texts[i]);
        v->error = &texts[i];
        found[i] = find_error(v);
        known[i] = texts[i].found || is_by_words(&found[i]);
    }
    int chosen = texts[0].count == 0 || (!known[0] && known[1]) ? 1 : 0;
    v->error = &texts[chosen];
    if (v->error->count > 0) {
        out->stream = streams[chosen];
        error_text_quote(v->error, found[chosen].at, &out->quoted);
    }
    return found[chosen];
}

void explain_find(const struct explain_facts *facts, const struct explain_rank *rank,
                  struct explain_finding *out)
{
    struct error_text texts[2];
    struct view v = view_of(facts, rank);
    *out = (struct explain_finding){.advice = STRV_INIT};
    const char *const outputs[] = {facts->said, facts->printed};
    struct found error = read_output(outputs, &v, texts, out);
    take_causes(&v, &error, out);
    error_text_clear(&texts[0]);
    error_text_clear(&texts[1]);
}

void explain_finding_destroy(struct explain_finding *finding)
{
    free(finding->plain);
    strv_destroy(&finding->advice);
    strv_destroy(&finding->quoted);
    *finding = (struct explain_finding){.plain = NULL};
}
