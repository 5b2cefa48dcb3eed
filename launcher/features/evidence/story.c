/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/exit/signal_name.h"

#define LINE_MAX ((size_t)8192)

const struct explain_title explain_titles[EXPLAIN_PARTS] = {
    [EXPLAIN_FIRST] = {"first", "what happened first", 4},
    [EXPLAIN_WHERE] = {"where", "where", 2},
    [EXPLAIN_CAUSED] = {"caused", "what followed", 3},
    [EXPLAIN_HOSTS] = {"hosts", "what the hosts say", 3},
    [EXPLAIN_LOADED] = {"libraries", "what the ranks have loaded", 5},
    [EXPLAIN_DO] = {"do", "what to do", 2},
};

__attribute__((format(printf, 3, 4))) static void
say(struct explain_story *story, enum explain_part part, const char *format, ...)
{
    struct buf line AUTO_BUF = BUF_INIT(LINE_MAX);
    va_list args;
    if (story->parts[part].count >= explain_titles[part].most)
        return;
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    strv_add(&story->parts[part], buf_text(&line));
}

static const struct explain_rank *find(const struct explain_facts *facts, int rank)
{
    for (size_t i = 0; rank >= 0 && i < facts->rank_count; i++) {
        if (facts->ranks[i].rank == rank)
            return &facts->ranks[i];
    }
    return NULL;
}

/* "exited with code 1", "was killed by SIGSEGV" */
static void put_end(const struct explain_rank *rank, struct buf *out)
{
    const char *name = rank->signaled ? signal_short_name(rank->code) : NULL;
    if (name != NULL)
        buf_printf(out, "was killed by SIG%s", name);
    else if (rank->signaled)
        buf_printf(out, "was killed by signal %d", rank->code);
    else
        buf_printf(out, "exited with code %d", rank->code);
}

static char *headline(const struct explain_facts *facts)
{
    const char *job = facts->job != NULL ? facts->job : "the job";
    if (facts->gone)
        return mem_printf("%s is lost: its hvdrun is gone and did not write how the job ended",
                          job);
    if (!facts->ended)
        return mem_printf("%s: how it ended is not known", job);
    bool stopped = facts->cause != NULL && strcmp(facts->cause, "stopped") == 0;
    const char *how = facts->status == 0 ? "succeeded" : stopped ? "was stopped" : "failed";
    if (facts->started_s > 0 && facts->ended_s >= facts->started_s)
        return mem_printf("%s %s with status %d, after %.1f s", job, how, facts->status,
                          facts->ended_s - facts->started_s);
    return mem_printf("%s %s with status %d", job, how, facts->status);
}

static void tell_first(const struct explain_facts *facts, const struct explain_finding *finding,
                       struct explain_story *story)
{
    if (facts->what != NULL && facts->what[0] != '\0')
        say(story, EXPLAIN_FIRST, "%s%s%s", facts->what, finding->plain != NULL ? ": " : "",
            finding->plain != NULL ? finding->plain : "");
    else if (facts->ended && facts->status == 0)
        say(story, EXPLAIN_FIRST, "no failure is known");
    else
        say(story, EXPLAIN_FIRST, "the first failure is not known");
    for (size_t i = 0; i < finding->quoted.count; i++)
        say(story, EXPLAIN_FIRST, "its %s: %s", finding->stream, finding->quoted.items[i]);
}

static void tell_where(const struct explain_facts *facts, struct explain_story *story)
{
    const struct explain_rank *rank = find(facts, facts->rank);
    if (rank != NULL)
        say(story, EXPLAIN_WHERE, "rank %d on %s", rank->rank, rank->host);
    for (size_t i = 0; rank == NULL && i < facts->host_count; i++) {
        if (facts->hosts[i].lost)
            say(story, EXPLAIN_WHERE, "host %s", facts->hosts[i].host);
    }
    bool by_itself = rank != NULL && rank->ended && !rank->consequence;
    double when = by_itself && rank->ended_s > 0 ? rank->ended_s : facts->when_s;
    if (facts->started_s > 0 && when >= facts->started_s)
        say(story, EXPLAIN_WHERE, "%.1f s after the start", when - facts->started_s);
    if (facts->store_waits != NULL)
        say(story, EXPLAIN_WHERE, "%s", facts->store_waits);
}

/* Other ranks that failed by themselves, then those that were ended. */
static void tell_caused(const struct explain_facts *facts, struct explain_story *story)
{
    const struct explain_rank *first = find(facts, facts->rank);
    size_t ended = 0;
    for (size_t i = 0; i < facts->rank_count; i++) {
        const struct explain_rank *rank = &facts->ranks[i];
        bool failed = rank->ended && (rank->signaled || rank->code != 0);
        ended += failed && rank->consequence && rank != first;
        if (!failed || rank->consequence || rank == first)
            continue;
        struct buf how AUTO_BUF = BUF_INIT(200);
        put_end(rank, &how);
        if (first != NULL && first->ended && first->ended_s > 0 && rank->ended_s >= first->ended_s)
            buf_printf(&how, ", %.1f s later", rank->ended_s - first->ended_s);
        if (story->parts[EXPLAIN_CAUSED].count + 1 < explain_titles[EXPLAIN_CAUSED].most)
            say(story, EXPLAIN_CAUSED, "rank %d on %s %s", rank->rank, rank->host, buf_text(&how));
    }
    if (ended > 0)
        say(story, EXPLAIN_CAUSED, "%zu %srank%s ended because of that", ended,
            first != NULL ? "other " : "", ended == 1 ? "" : "s");
}

static void tell_host(const struct explain_facts *facts, const struct explain_host *host,
                      struct explain_story *story)
{
    struct strv signs AUTO_STRV = STRV_INIT;
    host_signs(facts, host, &signs);
    for (size_t i = 0; i < signs.count; i++)
        say(story, EXPLAIN_HOSTS, "%s: %s", host->host, signs.items[i]);
}

static void tell_hosts(const struct explain_facts *facts, struct explain_story *story)
{
    const struct explain_rank *rank = find(facts, facts->rank);
    for (int its = rank != NULL; its >= 0; its--) { /* the host of the rank first */
        for (size_t i = 0; i < facts->host_count; i++) {
            const struct explain_host *host = &facts->hosts[i];
            if ((rank != NULL && strcmp(host->host, rank->host) == 0) == (its == 1))
                tell_host(facts, host, story);
        }
    }
    for (size_t i = 0; i < facts->differ.count; i++)
        say(story, EXPLAIN_HOSTS, "a variable differs: %s", facts->differ.items[i]);
}

static void tell_loaded(const struct explain_facts *facts, struct explain_story *story)
{
    size_t count = facts->loaded.count, most = explain_titles[EXPLAIN_LOADED].most;
    size_t shown = count > most ? most - 1 : count;
    for (size_t i = 0; i < shown; i++)
        say(story, EXPLAIN_LOADED, "%s", facts->loaded.items[i]);
    if (count > shown)
        say(story, EXPLAIN_LOADED, "and %zu more, in the report", count - shown);
}

void explain_tell(const struct explain_facts *facts, struct explain_story *out)
{
    struct explain_finding finding;
    explain_find(facts, find(facts, facts->rank), &finding);
    *out = (struct explain_story){.headline = headline(facts)};
    tell_first(facts, &finding, out);
    tell_where(facts, out);
    tell_caused(facts, out);
    tell_hosts(facts, out);
    tell_loaded(facts, out);
    for (size_t i = 0; i < finding.advice.count; i++)
        say(out, EXPLAIN_DO, "%s", finding.advice.items[i]);
    explain_finding_destroy(&finding);
}

void explain_story_destroy(struct explain_story *story)
{
    free(story->headline);
    for (int part = 0; part < EXPLAIN_PARTS; part++)
        strv_destroy(&story->parts[part]);
    *story = (struct explain_story){.headline = NULL};
}

void explain_story_text(const struct explain_story *story, struct buf *out)
{
    buf_printf(out, "%s\n", story->headline);
    for (int part = 0; part < EXPLAIN_PARTS; part++) {
        const struct strv *lines = &story->parts[part];
        if (lines->count > 0)
            buf_printf(out, "%s:\n", explain_titles[part].title);
        for (size_t i = 0; i < lines->count; i++)
            buf_printf(out, "    %s\n", lines->items[i]);
    }
}
