/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warns once of a job in which a rank has exited with 0 between MPI_Init and MPI_Finalize, when all
 * others seem to wait in MPI (mpi_wait.h). --hang-timeout ends the job, by the rules for all hangs.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "features/hang/mpi_wait.h"
#include "features/stacks/look_driver.h"

struct mpi_left {
    struct job *job;
    struct loop_timer *timer;           /* NULL: no rank has left */
    struct mpi_wait_rank *before, *now; /* by rank, each with `count` entries */
    size_t count;
    int64_t period_ms;
    int looks; /* one after another that show the same */
};

static bool is_on(const struct job *job)
{
    return job->state == JOB_RUNNING && job->times.paused_ms == 0;
}

static int who_left(const struct job *job)
{
    return job_seat_rank(job, job->ranks.left_mpi);
}

static int waited_ms(const struct mpi_left *left)
{
    return (left->looks - 1) * MPI_WAIT_PERIOD_MS;
}

/* That is no verdict: they may yet succeed. */
static void warn(const struct mpi_left *left)
{
    bool ends = left->job->settings->hang_timeout > 0;
    log_warning(&left->job->log,
                "rank %d has exited with 0 without MPI_Finalize, and all ranks that run have been "
                "in the same calls of MPI for %d s%s",
                who_left(left->job), waited_ms(left) / 1000,
                ends ? "" : "; --hang-timeout can end such a job");
}

static void take_stack(void *context, int seat, const struct look_stack *source)
{
    const struct mpi_left *left = context;
    if ((size_t)seat < left->count)
        mpi_wait_add(&left->now[seat], source->stack);
}

/* Makes room for all ranks: they can spawn others. */
static void reach_ranks(struct mpi_left *left)
{
    size_t count = (size_t)left->job->ranks.size;
    if (count <= left->count)
        return;
    left->before = mem_resize_array(left->before, count, sizeof(*left->before));
    left->now = mem_resize_array(left->now, count, sizeof(*left->now));
    memset(left->before + left->count, 0, (count - left->count) * sizeof(*left->before));
    memset(left->now + left->count, 0, (count - left->count) * sizeof(*left->now));
    left->count = count;
}

static void looked(void *context, const struct ask *look)
{
    struct mpi_left *left = context;
    const struct job *job = left->job;
    reach_ranks(left);
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        left->now[seat] =
            (struct mpi_wait_rank){.runs = record->state == RANK_RUNNING, .output = record->output};
    }
    look_walk(look, take_stack, left);
    left->looks =
        is_on(job) ? mpi_wait_looks(left->before, left->now, job->ranks.size, left->looks) : 0;
    left->period_ms = mpi_wait_next_ms(left->looks, left->period_ms);
    if (left->looks >= MPI_WAIT_LOOKS)
        warn(left);
    else
        loop_timer_set(left->timer, left->period_ms);
    struct mpi_wait_rank *last = left->before;
    left->before = left->now;
    left->now = last;
}

static void look(void *context)
{
    struct mpi_left *left = context;
    if (is_on(left->job))
        look_ask(left->job, LOOK_CALLS, looked, left);
    else if (left->job->state == JOB_RUNNING)
        loop_timer_set(left->timer, left->period_ms);
}

static void ranks_changed(struct job *job)
{
    struct mpi_left *left = job_part(job, mpi_left);
    if (left == NULL || left->timer != NULL || job->ranks.left_mpi < 0)
        return;
    reach_ranks(left);
    left->timer = loop_timer_create(job->loop, look, left);
    loop_timer_set(left->timer, left->period_ms);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers || job->kind->many_epochs ||
        job->settings->on_hang != SET_ON_HANG_KILL)
        return 0;
    struct mpi_left *left = mem_alloc(sizeof(*left));
    *left = (struct mpi_left){.job = job, .period_ms = MPI_WAIT_PERIOD_MS};
    job->own[PART_mpi_left] = left;
    return 0;
}

static void close_part(struct job *job)
{
    struct mpi_left *left = job_part(job, mpi_left);
    ask_forget(job, left);
    loop_timer_destroy(left->timer);
    free(left->before);
    free(left->now);
    free(left);
}

/* It has no data if the job is not ended at a hang, or may go on in another epoch. */
const struct driver_part mpi_left_part = {
    .name = "mpi_left", .open = open_part, .close = close_part, .ranks_changed = ranks_changed};
