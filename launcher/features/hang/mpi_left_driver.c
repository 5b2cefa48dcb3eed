/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank has exited with 0 between MPI_Init and MPI_Finalize. Warns once when all others seem to
 * wait in MPI (mpi_wait.h), and ends the job when they surely do for a minute. --hang-timeout ends
 * it by the rules for all hangs instead, and with 0 they wait on.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "features/hang/mpi_wait.h"
#include "features/stacks/look_driver.h"

#define TEXT_MAX ((size_t)1 << 16)
#define PULSE_LIMIT_MS 60000
#define DOUBT_MAX 96

struct data {              /* of a rank */
    char doubt[DOUBT_MAX]; /* "" */
    uint64_t bytes, run_ns;
};

struct mpi_left {
    struct job *job;
    struct loop_timer *timer;           /* NULL: no rank has left */
    struct mpi_wait_rank *before, *now; /* by rank, each with `count` entries */
    struct data *data;                  /* likewise, of the last answer */
    size_t count;
    int64_t period_ms;
    int looks, sure_looks; /* one after another that show the same */
    int answers;           /* of hosts, without a process that a rank has left behind */
    bool warned, met;      /* a rank has met another job, and may wait for it */
    char *text;            /* of the end; NULL */
};

static bool is_on(const struct job *job)
{
    return job->state == JOB_RUNNING && job->times.paused_ms == 0;
}

static int who_left(const struct job *job)
{
    return job_seat_rank(job, job->ranks.left_mpi);
}

/* What comes of it. "": the user has said so. */
static void put_outlook(const struct mpi_left *left, struct buf *out)
{
    int rank;
    const char *doubt = mpi_wait_doubt(left->now, left->job->ranks.size, &rank);
    if (left->job->settings->hang_timeout >= 0)
        return;
    buf_puts(out, "; hvdrun ends the job if it is sure of that for a minute, and --hang-timeout 0 "
                  "lets them wait");
    if (left->sure_looks == 0 && doubt != NULL)
        buf_printf(out, "; it is not sure of rank %d: %s", rank, doubt);
}

/* That is no verdict: they may yet succeed. */
static void warn(struct mpi_left *left)
{
    struct buf outlook AUTO_BUF = BUF_INIT(TEXT_MAX);
    put_outlook(left, &outlook);
    left->warned = true;
    log_warning(
        &left->job->log,
        "rank %d has exited with 0 without MPI_Finalize, and all ranks that run seem to have "
        "been in the same calls of MPI for %d s%s",
        who_left(left->job), (MPI_WAIT_LOOKS - 1) * MPI_WAIT_PERIOD_MS / 1000, buf_text(&outlook));
}

/* All that the ranks can show has been collected. */
static void collected(void *context)
{
    struct mpi_left *left = context;
    if (left->job->state == JOB_RUNNING)
        teardown_launcher(left->job, STATUS_HANG, left->text);
}

static void end_job(struct mpi_left *left, const struct ask *look)
{
    struct job *job = left->job;
    struct buf calls AUTO_BUF = BUF_INIT(TEXT_MAX);
    mpi_wait_text(left->now, job->ranks.size, &calls);
    left->text = mem_printf(
        "the job hangs: rank %d has exited with 0 without MPI_Finalize, and all ranks that run "
        "have waited for %d s: %s; let each rank call MPI_Finalize, or give --hang-timeout 0 to "
        "let the others wait",
        who_left(job), (int)(mpi_wait_sure_ms(left->sure_looks) / 1000), buf_text(&calls));
    look_show(look);
    events_text(job, "hung", left->text);
    struct incident incident = {
        .kind = INCIDENT_HANG, .text = left->text, .rank = who_left(job), .look = look};
    if (!incident_raise(job, &incident, collected, left))
        collected(left);
}

static void take_stack(void *context, int seat, const struct stack *stack)
{
    const struct mpi_left *left = context;
    if ((size_t)seat < left->count)
        mpi_wait_add(&left->now[seat], stack);
}

static void take_whole(void *context, int seat)
{
    const struct mpi_left *left = context;
    if ((size_t)seat < left->count)
        left->now[seat].calls.whole = true;
}

static void take_pulse(struct data *data, const Hvdrun__RankPulse *pulse)
{
    static const uint64_t ns_in_us = 1000;
    data->bytes = pulse->io_bytes + pulse->tcp_bytes;
    data->run_ns = pulse->main_ns + pulse->cpu_us * ns_in_us;
    snprintf(data->doubt, sizeof(data->doubt), "%s", pulse->doubt);
}

static int take_pulses(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct mpi_left *left = job_part(job, mpi_left);
    const Hvdrun__Pulse *message = (const Hvdrun__Pulse *)*answer;
    left->answers += !message->strays;
    for (size_t i = 0; i < message->n_ranks; i++) {
        const Hvdrun__RankPulse *pulse = message->ranks[i];
        if (job_seat_is_on(job, node, pulse->seat) && pulse->seat < left->count)
            take_pulse(&left->data[pulse->seat], pulse);
    }
    return 0;
}

static void ask_pulses(struct job *job)
{
    static const struct question question = {&topic_pulse, take_pulses, .keep = false};
    Hvdrun__PulseRequest request = HVDRUN__PULSE_REQUEST__INIT;
    request.tcp = true;
    ask_all(job, &question, &request.base, PULSE_LIMIT_MS, NULL, NULL);
}

/* Makes room for all ranks: they can spawn others. */
static void reach_ranks(struct mpi_left *left)
{
    size_t count = (size_t)left->job->ranks.size;
    if (count <= left->count)
        return;
    left->before = mem_resize_array(left->before, count, sizeof(*left->before));
    left->now = mem_resize_array(left->now, count, sizeof(*left->now));
    left->data = mem_resize_array(left->data, count, sizeof(*left->data));
    memset(left->data + left->count, 0, (count - left->count) * sizeof(*left->data));
    memset(left->before + left->count, 0, (count - left->count) * sizeof(*left->before));
    memset(left->now + left->count, 0, (count - left->count) * sizeof(*left->now));
    left->count = count;
}

/* Counts what the look in `now` shows. */
static void count_look(struct mpi_left *left)
{
    int size = left->job->ranks.size;
    bool on = is_on(left->job);
    left->looks = on ? mpi_wait_looks(left->before, left->now, size, left->looks) : 0;
    left->sure_looks =
        on ? mpi_wait_sure_looks(left->before, left->now, size, left->sure_looks) : 0;
    bool sure = left->warned || left->sure_looks > left->looks;
    int most = sure ? left->sure_looks : left->looks;
    left->period_ms = mpi_wait_next_ms(most, left->period_ms);
}

static int used_hosts(const struct job *job)
{
    int used = 0;
    for (int i = 0; i < job->node_count; i++)
        used += job->nodes[i]->place >= 0; /* the agents of the others have quit */
    return used;
}

static void looked(void *context, const struct ask *look)
{
    struct mpi_left *left = context;
    const struct job *job = left->job;
    bool ends = job->settings->hang_timeout < 0;
    reach_ranks(left);
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        const struct data *data = &left->data[seat];
        left->now[seat] = (struct mpi_wait_rank){
            .runs = record->state == RANK_RUNNING || record->state == RANK_PLANNED,
            .output = record->output,
            .data_bytes = data->bytes,
            .run_ns = data->run_ns,
            .doubt = data->doubt[0] != '\0' ? data->doubt : NULL};
    }
    look_walk(look, take_stack, left);
    look_walk_whole(look, take_whole, left);
    for (int seat = 0; seat < job->ranks.size; seat++)
        left->met = left->met || left->now[seat].meets;
    const char *doubt = left->met ? "ranks may have connected with another job"
                        : left->answers < used_hosts(job)
                            ? "a rank that has exited may go on in a process that it left behind"
                            : NULL;
    for (int seat = 0; doubt != NULL && seat < job->ranks.size; seat++)
        left->now[seat].doubt =
            left->now[seat].doubt == NULL || left->met ? doubt : left->now[seat].doubt;
    count_look(left);
    bool waits = left->looks >= MPI_WAIT_LOOKS || left->sure_looks >= MPI_WAIT_LOOKS;
    if (waits && !left->warned)
        warn(left);
    if (ends && left->sure_looks >= MPI_WAIT_SURE_LOOKS)
        end_job(left, look);
    else if (ends || !left->warned)
        loop_timer_set(left->timer, left->period_ms);
    struct mpi_wait_rank *last = left->before;
    left->before = left->now;
    left->now = last;
}

static void look(void *context)
{
    struct mpi_left *left = context;
    for (size_t i = 0; i < left->count; i++)
        left->data[i] = (struct data){.doubt = "it has not said what it does"};
    left->answers = 0;
    if (is_on(left->job)) {
        ask_pulses(left->job);
        look_ask(left->job, LOOK_CALLS, looked, left);
    } else if (left->job->state == JOB_RUNNING) {
        loop_timer_set(left->timer, left->period_ms);
    }
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
    job->own[PART_mpi_left] =
        MEM_NEW((struct mpi_left){.job = job, .period_ms = MPI_WAIT_PERIOD_MS});
    return 0;
}

static void close_part(struct job *job)
{
    struct mpi_left *left = job_part(job, mpi_left);
    ask_forget(job, left);
    loop_timer_destroy(left->timer);
    free(left->before);
    free(left->now);
    free(left->data);
    free(left->text);
    free(left);
}

/* It has no data if the job is not ended at a hang, or may go on in another epoch. */
const struct driver_part mpi_left_part = {
    .name = "mpi_left", .open = open_part, .close = close_part, .ranks_changed = ranks_changed};
