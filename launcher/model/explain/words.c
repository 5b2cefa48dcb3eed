/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/words.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/exit/signal_name.h"
#include "model/explain/host_signs.h"

#define TEXT_MAX ((size_t)4096)
#define NAME_MAX 200 /* of a file or module that an error names */

static char *number_text(int64_t number)
{
    return mem_printf("%lld", (long long)number);
}

static char *copy(const char *text)
{
    return text == NULL ? NULL : mem_strdup(text);
}

static char *rank_word(const struct view *v)
{
    return v->rank == NULL ? NULL : number_text(v->rank->rank);
}

static char *host_word(const struct view *v)
{
    return v->rank == NULL ? NULL : copy(v->rank->host);
}

static char *pid_word(const struct view *v)
{
    return v->rank == NULL || v->rank->pid <= 0 ? NULL : number_text(v->rank->pid);
}

static char *signal_word(const struct view *v)
{
    const char *name = v->rank == NULL ? NULL : signal_short_name(v->rank->code);
    return name == NULL ? mem_strdup("signal") : mem_printf("SIG%s", name);
}

static char *killer_word(const struct view *v)
{
    bool by_kernel = v->rank != NULL && v->rank->code == SIGKILL;
    return mem_strdup(by_kernel ? "the OOM killer" : "a program");
}

static char *request_word(const struct view *v)
{
    return v->rank == NULL ? NULL : copy(v->rank->request);
}

static char *lost_host_word(const struct view *v)
{
    const struct explain_host *host = view_lost_host(v);
    return host == NULL ? NULL : copy(host->host);
}

static char *gpu_host_word(const struct view *v)
{
    const struct explain_host *host = view_gpu_host(v, GPU_FAULT_GPU);
    host = host != NULL ? host : view_gpu_host(v, GPU_FAULT_PROGRAM);
    return host == NULL ? NULL : copy(host->host);
}

static char *folder_word(const struct view *v)
{
    return v->host == NULL ? NULL : host_signs_full_folder(v->host);
}

static char *full_host_word(const struct view *v)
{
    const struct explain_host *host = view_full_host(v);
    return host == NULL ? NULL : copy(host->host);
}

static char *full_host_folder_word(const struct view *v)
{
    const struct explain_host *host = view_full_host(v);
    return host == NULL ? NULL : host_signs_full_folder(host);
}

static char *place_word(const struct view *v)
{
    return error_text_place(v->error);
}

static char *lines_word(const struct view *v)
{
    return mem_strdup(v->facts->has_folder ? "lines.txt" : "'hvdrun logs'");
}

static char *nccl_word(const struct view *v)
{
    return copy(v->facts->nccl);
}

static char *flights_word(const struct view *v)
{
    return mem_printf("%zu rank%s", v->facts->flights, v->facts->flights == 1 ? "" : "s");
}

/* "rank 1 is", "ranks 1,3 are" */
static char *behind_word(const struct view *v)
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

static char *behind_at_word(const struct view *v)
{
    int64_t first, last;
    view_collectives(v, &first, &last);
    return number_text(first);
}

static char *ahead_at_word(const struct view *v)
{
    int64_t first, last;
    view_collectives(v, &first, &last);
    return number_text(last);
}

/* What stands in quotes in the line that was found. An apostrophe within a word is none. */
static char *name_word(const struct view *v)
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
static char *peer_word(const struct view *v)
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

static const struct word {
    const char *name;
    char *(*text)(const struct view *v);
} words[] = {{"rank", rank_word},
             {"host", host_word},
             {"pid", pid_word},
             {"signal", signal_word},
             {"killer", killer_word},
             {"request", request_word},
             {"lost_host", lost_host_word},
             {"gpu_host", gpu_host_word},
             {"folder", folder_word},
             {"full_host", full_host_word},
             {"full_host_folder", full_host_folder_word},
             {"place", place_word},
             {"lines", lines_word},
             {"nccl", nccl_word},
             {"flights", flights_word},
             {"behind", behind_word},
             {"behind_at", behind_at_word},
             {"ahead_at", ahead_at_word},
             {"name", name_word},
             {"peer", peer_word}};

/* The fact `name`, which the caller frees; NULL: it is not known. */
static char *word_of(const struct view *v, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(words[i].name, name, length) == 0 && words[i].name[length] == '\0')
            return words[i].text(v);
    }
    return NULL;
}

char *words_fill(const struct view *v, const char *text)
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
