/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/blame.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/tell/events.h"
#include "model/exit/root_cause.h"
#include "model/settings/words.h"

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
    rank.ended = record->state >= RANK_EXITED;
    rank.took_part = !rank.ended || record->ended_ns >= job->started_ns;
    rank.clean = rank.ended && !record->signaled && record->code == 0;
    rank.ended_ns = record->ended_ns;
    rank.node = record->node;
    rank.app = record->app;
    rank.uncertainty_ns = node_link_uncertainty(job->nodes[record->node]);
    rank.tail = &record->tail;
    return rank;
}

/* What most likely ended the worker on the seat `first`, the first that failed. */
static void find(const struct job *job, int first, struct root_cause *out)
{
    *out = (struct root_cause){.kind = ROOT_CAUSE_NONE, .seat = -1};
    const struct rank_record *records = job->ranks.records;
    if (!may_follow(&records[first]))
        return;
    struct root_cause_rank *ranks AUTO_FREE = mem_array((size_t)job->ranks.size, sizeof(*ranks));
    for (int seat = 0; seat < job->ranks.size; seat++)
        ranks[seat] = describe(job, &records[seat]);
    root_cause_find(ranks, job->ranks.size, first, out);
}

static void explain(const struct job *job, const struct root_cause *cause, struct buf *out)
{
    buf_printf(out, "rank %d is most likely the cause: %s", job_seat_rank(job, cause->seat),
               cause->kind == ROOT_CAUSE_EARLY_EXIT ? "it exited with code 0 before its peers"
                                                    : cause->symptom.line);
}

/* Not one that says only which signal of hvdrun it got. */
static bool has_own_code(const struct rank_record *record)
{
    return record->state >= RANK_EXITED && !record->signaled && record->code > 0 &&
           record->code != 128 + SIGTERM && record->code != 128 + SIGKILL;
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
    if (job->settings->exit_policy == EXIT_FIRST && has_own_code(record))
        verdict->status = record->code & 0xff;
}

static bool is_first_failure(const struct job *job, int seat)
{
    const struct rank_record *mine = &job->ranks.records[seat];
    for (int other = 0; other < job->ranks.size; other++) {
        const struct rank_record *record = &job->ranks.records[other];
        if (other != seat && record->state >= RANK_EXITED &&
            (record->signaled || record->code != 0) && record->ended_ns >= job->started_ns &&
            record->ended_ns < mine->ended_ns)
            return false;
    }
    return mine->ended_ns >= job->started_ns;
}

void blame_say(const struct job *job, int seat)
{
    struct root_cause cause;
    if (!job->kind->many_epochs || job->state != JOB_RUNNING ||
        !may_follow(&job->ranks.records[seat]) || !is_first_failure(job, seat))
        return;
    find(job, seat, &cause);
    if (cause.kind == ROOT_CAUSE_NONE)
        return;
    struct buf text AUTO_BUF = BUF_INIT(1024);
    explain(job, &cause, &text);
    log_notice(&job->log, "%s", buf_text(&text));
    events_likely_cause(job->events, job, cause.seat, seat, buf_text(&text));
}
