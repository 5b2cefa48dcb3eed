/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_culprit_driver.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "driver/tell/stalls.h"
#include "features/hang/culprit.h"
#include "features/hang/hang_facts_driver.h"
#include "features/hang/stacks_driver.h"
#include "features/hang/stall_lines.h"
#include "model/exit/tail.h"
#include "model/plan/rank_list.h"

#define STALL_TEXT_MAX 8192

/* What PyTorch's watchdog has written. */
static void read_watchdog(const struct tail *tail, struct watchdog_rank *out)
{
    struct tail_walk walk;
    struct tail_line line;
    struct watchdog_state state;
    tail_walk_begin(&walk, tail);
    while (tail_walk_next(&walk, &line)) {
        if (!line.elsewhere && watchdog_read(line.text, line.length, &state))
            watchdog_rank_add(out, &state);
    }
    tail_walk_end(&walk);
}

/* `of` has what NCCL says of each rank. */
static void add_launched(const struct ras_rank *of, struct culprit_rank *ranks, int count)
{
    struct ras_finding finding = {.operation = NULL};
    int64_t *launched AUTO_FREE = mem_array((size_t)count + 1, sizeof(*launched));
    bool found = ras_find(of, (size_t)count, &finding, launched);
    for (int i = 0; i < count; i++) {
        ranks[i].launched = found ? launched[i] : -1;
        ranks[i].operation = finding.operation;
    }
}

static void add_enqueued(const struct watchdog_rank *of, struct culprit_rank *ranks, int count)
{
    int64_t *enqueued AUTO_FREE = mem_array((size_t)count + 1, sizeof(*enqueued));
    (void)watchdog_compare(of, (size_t)count, enqueued);
    for (int i = 0; i < count; i++)
        ranks[i].enqueued = enqueued[i];
}

static int collect_ranks(const struct job *job, const struct hang *hang,
                         const struct ras_facts *ras, const struct places *places,
                         struct culprit_rank *ranks)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct ras_rank *of AUTO_FREE = mem_array(size, sizeof(*of));
    struct watchdog_rank *watchdogs AUTO_FREE = mem_array(size, sizeof(*watchdogs));
    int count = 0;
    /* the time of an expectation may pass without a silence */
    bool pair = job->plan->size == 2 && hang_unmet(hang) < 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->state != RANK_RUNNING)
            continue;
        of[count] = ras_facts_of(ras, seat);
        read_watchdog(&record->tail, &watchdogs[count]);
        ranks[count] = (struct culprit_rank){.rank = job_seat_rank(job, seat),
                                             .host = job->nodes[record->node]->host,
                                             .asleep = pair && hang_sleeps(hang, seat),
                                             .way = hang_way(hang, seat),
                                             .last_ns = record->output_ns};
        const struct program_place *place = places_of(places, ranks[count].rank);
        if (place != NULL)
            ranks[count].place = *place;
        count++;
    }
    add_launched(of, ranks, count);
    add_enqueued(watchdogs, ranks, count);
    return count;
}

/* Fills in what libhvd says, or else Horovod's stall inspector. A warning of it that lists all
 * ranks does not say which of them is late. */
static void find_stall(const struct job *job, const struct hang_facts *facts, int running,
                       struct culprit_stall *out, struct buf *text)
{
    int64_t now_ns = clock_mono_ns();
    const struct stall *stall =
        hang_waits_decide(job_part(job, hang_waits), job_part(job, stall_list), now_ns);
    const struct stall_text *warning = stall_lines_find(facts->stalls, now_ns);
    *out = (struct culprit_stall){.count = 0};
    if (stall != NULL) {
        hang_waits_text(job_part(job, hang_waits), stall, text);
        *out = (struct culprit_stall){buf_text(text), stall->missing.list, stall->missing.count};
    } else if (warning != NULL && warning->count < running) {
        buf_puts(text, "Horovod waits for ");
        rank_ranges(warning->missing, warning->count, text);
        buf_printf(text, " in '%s'", warning->name);
        *out = (struct culprit_stall){buf_text(text), warning->missing, warning->count};
    }
}

/* Those of this epoch that have ended well. */
static int collect_ended(const struct job *job, int *ranks, const char **host)
{
    int count = 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        bool ended = record->state == RANK_EXITED || record->state == RANK_FINISHED;
        if (!ended || record->signaled || record->code != 0 || !job_epoch_runs(job, record->joined))
            continue;
        if (count == 0)
            *host = job->nodes[record->node]->host;
        ranks[count++] = job_seat_rank(job, seat);
    }
    return count;
}

struct culprit hang_culprit(const struct job *job, const struct hang *hang,
                            const struct hang_facts *facts, const struct ask *look, struct buf *out)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct culprit_rank *ranks AUTO_FREE = mem_array(size, sizeof(*ranks));
    int *ended_ranks AUTO_FREE = mem_array(size, sizeof(*ended_ranks));
    struct places *places = stacks_places(look, NULL);
    struct buf text AUTO_BUF = BUF_INIT(STALL_TEXT_MAX);
    struct culprit_stall stall;
    struct culprit_ended ended = {.ranks = ended_ranks};
    ended.count = collect_ended(job, ended_ranks, &ended.host);
    int count = collect_ranks(job, hang, facts->ras, places, ranks);
    find_stall(job, facts, count, &stall, &text);
    struct culprit culprit =
        culprit_find(ranks, count, stall.count > 0 ? &stall : NULL, &ended, out);
    places_destroy(places);
    return culprit;
}
