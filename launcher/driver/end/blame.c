/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/blame.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "model/exit/root_cause.h"

/* A crash or a kill is never the consequence of another rank's error. */
static bool may_follow(const struct rank_record *record)
{
    if (record->exec_failed || record->state < RANK_EXITED)
        return false;
    return record->aborted || (record->signaled ? record->code == SIGABRT : record->code != 0);
}

static struct root_cause_rank describe(const struct job *job, const struct rank_record *record)
{
    struct root_cause_rank rank = {.took_part = false};
    if (record->epoch == 0 || record->state == RANK_PLANNED)
        return rank;
    rank.rank = record->rank;
    rank.ended_by_us = record->ended_by_us;
    rank.finished = record->state == RANK_FINISHED;
    rank.may_follow = may_follow(record);
    rank.killed = record->signaled && record->code == SIGKILL;
    rank.ended = record->state >= RANK_EXITED;
    rank.took_part = !rank.ended || record->ended_ns >= job->times.started_ns;
    rank.clean = rank.ended && !record->signaled && record->code == 0;
    rank.ended_ns = record->ended_ns;
    rank.ending_ns = record->ending_ns != 0 ? record->ending_ns : record->ended_ns;
    rank.node = record->node;
    rank.app = record->app;
    rank.uncertainty_ns = node_link_uncertainty(job->nodes[record->node]);
    rank.tail = &record->tail;
    return rank;
}

static struct root_cause_rank *describe_all(const struct job *job)
{
    struct root_cause_rank *ranks = mem_array((size_t)job->ranks.size, sizeof(*ranks));
    for (int seat = 0; seat < job->ranks.size; seat++)
        ranks[seat] = describe(job, &job->ranks.records[seat]);
    return ranks;
}

/* What most likely ended the worker on the seat `first`, the first that failed. */
static void find(const struct job *job, int first, struct root_cause *out)
{
    struct root_cause_rank *ranks AUTO_FREE = describe_all(job);
    root_cause_find(ranks, job->ranks.size, first, out);
}

bool blame_follows(const struct job *job, int seat, const struct node_link *node)
{
    const struct root_cause_rank rank = describe(job, &job->ranks.records[seat]);
    const struct exit_loss loss = node_link_loss(node);
    return root_cause_follows(&rank, node->index, &loss);
}

/* In words that follow "it". */
static void describe_end(const struct rank_record *record, struct buf *out)
{
    if (record->exec_failed) {
        buf_puts(out, "could not start");
    } else if (record->signaled) {
        buf_puts(out, "was killed by ");
        exit_signal_name(record->code, out);
    } else {
        buf_printf(out, "exited with code %d", record->code & 0xff);
    }
}

static void explain_left(const struct rank_record *record, bool said, struct buf *out)
{
    bool by_itself = record->state >= RANK_EXITED && !record->ended_by_us;
    buf_puts(out, said ? "it had shut its library down" : "it ");
    if (by_itself) {
        buf_puts(out, said ? " and " : "");
        describe_end(record, out);
    }
    buf_puts(out, said ? "" : ", and only it blames no peer");
}

static void explain(const struct job *job, const struct root_cause *cause, struct buf *out)
{
    buf_printf(out, "rank %d is most likely the cause: ", job_seat_rank(job, cause->seat));
    const struct rank_record *record = &job->ranks.records[cause->seat];
    switch (cause->kind) {
    case ROOT_CAUSE_ERROR: buf_puts(out, cause->symptom.line); break;
    case ROOT_CAUSE_EARLY_EXIT: buf_puts(out, "it exited with code 0 before its peers"); break;
    case ROOT_CAUSE_CRASH:
        buf_puts(out, "it ");
        describe_end(record, out);
        break;
    case ROOT_CAUSE_LEFT: explain_left(record, cause->left, out); break;
    case ROOT_CAUSE_NONE:
    case ROOT_CAUSE_UNKNOWN: break;
    }
}

/* The worker's own exit status, and not one that says only which signal of hvdrun it got. 0: none
 */
static int own_status(const struct rank_record *record)
{
    bool told = record->code == 128 + SIGTERM || record->code == 128 + SIGKILL;
    if (record->state < RANK_EXITED || record->code <= 0)
        return 0;
    if (record->signaled)
        return record->ended_by_us || record->code == SIGTERM ? 0 : 128 + record->code;
    return told ? 0 : record->code & 0xff;
}

/* In words that follow the error. */
static void describe_exits(const struct job *job, int first, const struct root_cause *cause,
                           struct buf *out)
{
    if (cause->early >= 0) {
        const struct rank_record *record = &job->ranks.records[cause->early];
        int64_t before_ns = job->ranks.records[first].ended_ns - record->ended_ns;
        buf_printf(out, ", rank %d exited with code 0", record->rank);
        if (before_ns < INT64_C(100000000))
            buf_puts(out, " just before");
        else
            buf_printf(out, " %.1f s before", (double)before_ns / 1e9);
    }
    if (cause->tied >= 0)
        buf_printf(out, ", rank %d exited with code 0 at the same time",
                   job_seat_rank(job, cause->tied));
}

/* The verdict names a consequence, since nothing better is known. */
static void note_unknown(const struct job *job, struct verdict *verdict,
                         const struct root_cause *cause)
{
    size_t length = strlen(verdict->explanation);
    struct buf others AUTO_BUF = BUF_INIT(160);
    describe_exits(job, verdict->seat, cause, &others);
    snprintf(verdict->explanation + length, sizeof(verdict->explanation) - length,
             "; its error is about %s%s, and hvdrun cannot tell what failed first",
             cause->symptom.of_rank ? "another rank" : "a connection", buf_text(&others));
}

void blame_refine(const struct job *job, struct verdict *verdict)
{
    bool by_rank = verdict->cause == CAUSE_EXIT || verdict->cause == CAUSE_SIGNAL ||
                   verdict->cause == CAUSE_ABORT;
    struct root_cause cause;
    if (!by_rank || verdict->seat < 0)
        return;
    find(job, verdict->seat, &cause);
    if (cause.kind == ROOT_CAUSE_NONE)
        return;
    if (cause.kind == ROOT_CAUSE_UNKNOWN) {
        note_unknown(job, verdict, &cause);
        return;
    }
    struct buf text AUTO_BUF = BUF_INIT(sizeof(verdict->explanation) - 1);
    explain(job, &cause, &text);
    struct buf rest AUTO_BUF = BUF_INIT(sizeof(verdict->explanation) + 2);
    buf_printf(&rest, "; %s", verdict->explanation);
    size_t room = text.limit - text.length;
    buf_append(&text, buf_text(&rest), rest.length < room ? rest.length : room);
    memcpy(verdict->explanation, buf_text(&text), text.length + 1);
    const struct rank_record *record = &job->ranks.records[cause.seat];
    verdict->likely = true;
    verdict->first_seat = verdict->seat;
    verdict->seat = cause.seat;
    verdict->node = record->node;
    if (job->settings->exit_policy == EXIT_FIRST && own_status(record) != 0)
        verdict->status = own_status(record);
}

static bool is_first_failure(const struct job *job, int seat)
{
    const struct rank_record *mine = &job->ranks.records[seat];
    for (int other = 0; other < job->ranks.size; other++) {
        const struct rank_record *record = &job->ranks.records[other];
        if (other != seat && record->state >= RANK_EXITED &&
            (record->signaled || record->code != 0) && record->ended_ns >= job->times.started_ns &&
            record->ended_ns < mine->ended_ns)
            return false;
    }
    return mine->ended_ns >= job->times.started_ns;
}

void blame_say(const struct job *job, int seat)
{
    struct root_cause cause;
    if (!job->kind->many_epochs || job->state != JOB_RUNNING ||
        !may_follow(&job->ranks.records[seat]) || !is_first_failure(job, seat))
        return;
    find(job, seat, &cause);
    if (cause.seat < 0)
        return;
    struct buf text AUTO_BUF = BUF_INIT(1024);
    explain(job, &cause, &text);
    log_notice(&job->log, "%s", buf_text(&text));
    events_likely_cause(job, cause.seat, seat, buf_text(&text));
}

#define CAUSE_WAIT_MS 3000
#define OUTPUT_WAIT_MS \
    200 /* for what the first rank wrote last, if a child keeps its stderr open */

struct cause_wait {
    struct loop_timer *timer;
    bool waits;
    int first;    /* the rank that failed first */
    bool is_sure; /* that rank blames a peer */
};

void cause_wait_end(struct job *job)
{
    struct cause_wait *wait = job_part(job, cause_wait);
    if (!wait->waits)
        return;
    wait->waits = false;
    loop_timer_clear(wait->timer);
    if (job->state == JOB_RUNNING)
        teardown_after_failure(job);
}

/* root_cause_comes() and root_cause_came() (model/exit/root_cause.h) */
static bool comes(const struct job *job, int seat)
{
    struct root_cause_rank *ranks AUTO_FREE = describe_all(job);
    return root_cause_comes(ranks, job->ranks.size, seat);
}

static bool came(const struct job *job, int seat)
{
    const struct root_cause_rank rank = describe(job, &job->ranks.records[seat]);
    return root_cause_came(&rank);
}

/* All of its output is there, as far as it will come in time. */
static void take_first(struct job *job)
{
    struct cause_wait *wait = job_part(job, cause_wait);
    if (!comes(job, wait->first)) {
        cause_wait_end(job);
        return;
    }
    wait->is_sure = true;
    loop_timer_set(wait->timer, CAUSE_WAIT_MS);
}

/* The ranks of a suspended job cannot end. */
static void time_over(void *context)
{
    struct job *job = context;
    const struct cause_wait *wait = job_part(job, cause_wait);
    if (job->times.suspended)
        loop_timer_set(wait->timer, CAUSE_WAIT_MS);
    else if (wait->is_sure)
        cause_wait_end(job);
    else
        take_first(job);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, cause_wait)->timer = loop_timer_create(job->loop, time_over, job);
    return 0;
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, cause_wait)->timer);
}

const struct driver_part cause_wait_part = {.name = "cause_wait",
                                            .size = sizeof(struct cause_wait),
                                            .open = open_part,
                                            .close = close_part};

bool cause_wait_begin(struct job *job, int rank)
{
    struct cause_wait *wait = job_part(job, cause_wait);
    bool finished = job->ranks.records[rank].state == RANK_FINISHED;
    if (!may_follow(&job->ranks.records[rank]) || (finished && !comes(job, rank)))
        return false;
    wait->waits = true;
    wait->first = rank;
    wait->is_sure = finished;
    loop_timer_set(wait->timer, finished ? CAUSE_WAIT_MS : OUTPUT_WAIT_MS);
    return true;
}

void cause_wait_exited(struct job *job, int rank)
{
    const struct cause_wait *wait = job_part(job, cause_wait);
    if (wait->waits && rank != wait->first && came(job, rank))
        cause_wait_end(job);
}

void cause_wait_finished(struct job *job, int rank)
{
    const struct cause_wait *wait = job_part(job, cause_wait);
    if (wait->waits && rank == wait->first && !wait->is_sure)
        take_first(job);
    else if (job->ranks.finished == job->ranks.size)
        cause_wait_end(job);
    else
        cause_wait_exited(job, rank);
}
