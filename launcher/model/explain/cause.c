/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/cause.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/explain/words.h"

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
#include "model/explain/cause.def"
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

static bool has(const struct strv *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
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
    if (advice != NULL && !has(&out->advice, advice))
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
