/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/elastic/newcomers.h"

#define SHOWN_PROBLEMS_MAX 5

static void end_decisions(struct elastic *e)
{
    for (int t = 0; t < ELASTIC_TIMERS; t++)
        e->timers[t] = ELASTIC_OFF;
    elastic_workers_forget_planned(&e->workers);
    elastic_newcomers_forget(e);
    e->timers[ELASTIC_TIMER_END] = e->now_ms + e->config.grace_ms + e->config.patience_ms;
    e->state = ELASTIC_ENDING;
}

/* About nobody, or a host. */
static void set(struct elastic_verdict *verdict, enum elastic_end end, int host)
{
    *verdict = (struct elastic_verdict){.end = end, .seat = -1, .rank = -1, .host = host};
}

void elastic_verdict_give(struct elastic *e, enum elastic_end end,
                          const struct elastic_failure *failure, const char *format, ...)
{
    struct elastic_verdict *verdict = &e->verdict;
    set(verdict, end, -1);
    if (failure != NULL) {
        verdict->seat = failure->seat;
        verdict->rank = failure->rank;
        verdict->host = failure->host;
        verdict->code = failure->code;
        verdict->signaled = failure->signaled;
    }
    /* one that ended with 0 too early has failed all the same */
    bool crashed = failure != NULL && failure->kind == ELASTIC_FAILURE_CRASH;
    if ((end == ELASTIC_END_CRASH || end == ELASTIC_END_FAULT || crashed) && verdict->code == 0)
        verdict->code = 1;
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->text, sizeof(verdict->text), format, args);
    va_end(args);
    end_decisions(e);
    elastic_emit(e, ELASTIC_VERDICT);
}

/* With --on-failure stop, the job would have ended as well. Else it cannot go on any more, and the
 * text says what is known. */
void elastic_verdict_revise(struct elastic *e, const struct elastic_failure *loss)
{
    struct elastic_verdict *verdict = &e->verdict;
    if (verdict->end != ELASTIC_END_CRASH && verdict->end != ELASTIC_END_FAULT)
        return;
    if (e->config.mode == ELASTIC_STOP) {
        set(verdict, ELASTIC_END_HOST_LOST, loss->host);
        snprintf(verdict->text, sizeof(verdict->text), "%s", loss->text);
        return;
    }
    size_t length = strlen(verdict->text);
    snprintf(verdict->text + length, sizeof(verdict->text) - length, "; before that: %s",
             loss->text);
}

static void give_unread(struct elastic *e)
{
    struct elastic_verdict *verdict = &e->verdict;
    set(verdict, ELASTIC_END_HOST_LOST, e->unread.host);
    snprintf(verdict->text, sizeof(verdict->text),
             "%s; all ranks exited with code 0, but output of rank %d may be missing",
             e->unread.text, e->unread.rank);
}

void elastic_verdict_success(struct elastic *e)
{
    elastic_verdict_give(e, ELASTIC_END_SUCCESS, NULL, "%s", "");
    if (e->unread.kind != ELASTIC_FAILURE_NONE)
        give_unread(e);
}

void elastic_verdict_unread(struct elastic *e, int rank, const struct elastic_failure *loss)
{
    if (e->unread.kind != ELASTIC_FAILURE_NONE)
        return;
    e->unread = *loss;
    e->unread.rank = rank;
    if (e->verdict.end == ELASTIC_END_SUCCESS)
        give_unread(e);
}

void elastic_verdict_driver(struct elastic *e)
{
    if (e->verdict.end == ELASTIC_END_NONE)
        set(&e->verdict, ELASTIC_END_DRIVER, -1);
    end_decisions(e);
}

/* Which listed hosts could not be used, and why. */
static void add_problems(const struct elastic *e, struct buf *text)
{
    int shown = 0, more = 0;
    for (int i = 0; i < e->hosts.count; i++) {
        const struct elastic_host *host = &e->hosts.items[i];
        bool is_called = host->state == ELASTIC_HOST_CALLING;
        const char *problem = host->problem;
        if (problem == NULL && is_called)
            problem = "no answer yet";
        if (!host->listed || problem == NULL || elastic_hosts_usable(host) > 0)
            continue;
        if (shown == SHOWN_PROBLEMS_MAX) {
            more++;
            continue;
        }
        buf_printf(text, "%s%s: %.160s", shown++ == 0 ? " (" : "; ", elastic_host_name(e, i),
                   problem);
    }
    if (more > 0)
        buf_printf(text, "; and %d more host%s", more, elastic_plural(more));
    if (shown > 0)
        buf_puts(text, ")");
}

void elastic_verdict_no_hosts(struct elastic *e, int wanted, int64_t found)
{
    struct buf problems AUTO_BUF = BUF_INIT(4096);
    add_problems(e, &problems);
    elastic_verdict_give(
        e, ELASTIC_END_NO_HOSTS, NULL,
        "not enough slots for %lld s: %d wanted, %lld found%s; give more hosts, or "
        "wait longer with --elastic-timeout",
        (long long)(e->config.elastic_timeout_ms / 1000), wanted, (long long)found,
        buf_text(&problems));
}

bool elastic_verdict_at_limit(const struct elastic *e)
{
    return e->config.reset_limit >= 0 && e->started - e->refills > e->config.reset_limit;
}

bool elastic_verdict_reset_limit(struct elastic *e)
{
    if (!elastic_verdict_at_limit(e))
        return false;
    const char *cause = buf_text(&e->change.text);
    if (cause[0] == '\0')
        cause = e->change.asker.text;
    const struct elastic_failure *failure = &e->change.cause;
    if (failure->kind == ELASTIC_FAILURE_NONE)
        failure = NULL; /* no rank is to blame for a host that drains */
    elastic_verdict_give(e, ELASTIC_END_RESET_LIMIT, failure,
                         "no more changes: %d allowed (--reset-limit)%s%s", e->config.reset_limit,
                         cause[0] != '\0' ? "; the last: " : "", cause);
    return true;
}
