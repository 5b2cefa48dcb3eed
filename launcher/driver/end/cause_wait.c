/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/cause_wait.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/end/blame.h"

#define CAUSE_WAIT_MS 3000
#define OUTPUT_WAIT_MS \
    200 /* for what the first rank wrote last, if a child keeps its stderr open */

struct cause_wait {
    struct job *job;
    void (*over)(struct job *job);
    struct loop_timer *timer;
    int first;    /* the rank that failed first; -1: it does not wait */
    bool is_sure; /* that rank blames a peer */
};

static void time_over(void *context);

struct cause_wait *cause_wait_create(struct job *job, void (*over)(struct job *job))
{
    struct cause_wait *wait = mem_alloc(sizeof(*wait));
    *wait = (struct cause_wait){.job = job, .over = over, .first = -1};
    wait->timer = loop_timer_create(job->loop, time_over, wait);
    return wait;
}

void cause_wait_destroy(struct cause_wait *wait)
{
    if (wait == NULL)
        return;
    loop_timer_destroy(wait->timer);
    free(wait);
}

void cause_wait_end(struct cause_wait *wait)
{
    if (wait->first < 0)
        return;
    wait->first = -1;
    loop_timer_clear(wait->timer);
    if (wait->job->state == JOB_RUNNING)
        wait->over(wait->job);
}

/* All of its output is there, as far as it will come in time. */
static void take_first(struct cause_wait *wait)
{
    if (!blame_comes(wait->job, wait->first)) {
        cause_wait_end(wait);
        return;
    }
    wait->is_sure = true;
    loop_timer_set(wait->timer, CAUSE_WAIT_MS);
}

/* The ranks of a suspended job cannot end. */
static void time_over(void *context)
{
    struct cause_wait *wait = context;
    if (wait->job->times.suspended)
        loop_timer_set(wait->timer, CAUSE_WAIT_MS);
    else if (wait->is_sure)
        cause_wait_end(wait);
    else
        take_first(wait);
}

static bool has_finished(const struct job *job, int rank)
{
    return job->ranks.records[rank].state == RANK_FINISHED;
}

bool cause_wait_begin(struct cause_wait *wait, int rank)
{
    const struct job *job = wait->job;
    bool finished = has_finished(job, rank);
    if (!blame_may_follow(job, rank) || (finished && !blame_comes(job, rank)))
        return false;
    wait->first = rank;
    wait->is_sure = finished;
    loop_timer_set(wait->timer, finished ? CAUSE_WAIT_MS : OUTPUT_WAIT_MS);
    return true;
}

void cause_wait_exited(struct cause_wait *wait, int rank)
{
    if (wait->first >= 0 && rank != wait->first && blame_came(wait->job, rank))
        cause_wait_end(wait);
}

void cause_wait_finished(struct cause_wait *wait, int rank)
{
    if (wait->first < 0)
        return;
    const struct rank_table *ranks = &wait->job->ranks;
    bool last = ranks->finished == ranks->size;
    if (rank == wait->first && !wait->is_sure)
        take_first(wait);
    else if (last || (rank != wait->first && blame_came(wait->job, rank)))
        cause_wait_end(wait);
}
