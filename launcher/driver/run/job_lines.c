/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/run.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "driver/job/part.h"
#include "driver/tell/stalls.h"
#include "line/packet.h"
#include "wire/control.pb-c.h"

/* Ranks that have ended, as parallel lists for RANKS_ENDED. */
struct ended {
    uint32_t *ranks, *how, *code;
    size_t count;
};

struct job_lines {
    struct ended fresh; /* not sent yet */
    uint32_t epoch;     /* of those */
    bool deferred;
};

static void ended_clear(struct ended *ended)
{
    free(ended->ranks);
    free(ended->how);
    free(ended->code);
    *ended = (struct ended){.count = 0};
}

static void close_part(struct job *job)
{
    ended_clear(&job_part(job, job_lines)->fresh);
}

/* Grows when the count is a power of two. */
static void ended_add(struct ended *ended, const struct line_ended *rank)
{
    if ((ended->count & (ended->count - 1)) == 0) {
        size_t room = ended->count == 0 ? 1 : 2 * ended->count;
        ended->ranks = mem_resize_array(ended->ranks, room, sizeof(*ended->ranks));
        ended->how = mem_resize_array(ended->how, room, sizeof(*ended->how));
        ended->code = mem_resize_array(ended->code, room, sizeof(*ended->code));
    }
    ended->ranks[ended->count] = rank->rank;
    ended->how[ended->count] = rank->how;
    ended->code[ended->count++] = rank->code;
}

static void ended_send(const struct ended *ended, struct node_link *node, uint32_t epoch)
{
    Hvdrun__RanksEnded message = HVDRUN__RANKS_ENDED__INIT;
    message.ranks = ended->ranks;
    message.how = ended->how;
    message.code = ended->code;
    message.n_ranks = message.n_how = message.n_code = ended->count;
    if (ended->count > 0 && node_link_alive(node))
        node_link_send(node, FRAME_RANKS_ENDED, epoch, &message.base);
}

static void send_fresh(void *context)
{
    const struct job *job = context;
    struct job_lines *lines = job_part(job, job_lines);
    lines->deferred = false;
    for (int i = 0; i < job->node_count; i++) {
        if (job->nodes[i]->lines_epoch == lines->epoch)
            ended_send(&lines->fresh, job->nodes[i], lines->epoch);
    }
    ended_clear(&lines->fresh);
}

static bool has_listener(const struct job *job)
{
    for (int i = 0; i < job->node_count; i++) {
        if (job->nodes[i]->lines_epoch == job->epoch)
            return true;
    }
    return false;
}

/* Only ranks of the present epoch: a worker that has left the job keeps the number that it had, and
 * another one may have this number now. */
static bool is_present(const struct job *job, const struct rank_record *record)
{
    return record->epoch != 0 && record->joined == job->epoch;
}

static struct line_ended how_of(const struct rank_record *record)
{
    struct line_ended rank = {.rank = (uint32_t)record->rank, .how = LINE_LOST};
    if (record->state >= RANK_EXITED) {
        rank.how = record->signaled ? LINE_KILLED : LINE_EXITED;
        rank.code = (uint8_t)record->code;
    }
    return rank;
}

/* Those that end in one turn of the loop go into one frame. */
static void add(struct job *job, const struct rank_record *record)
{
    struct job_lines *lines = job_part(job, job_lines);
    if (!is_present(job, record))
        return;
    if (lines->fresh.count > 0 && lines->epoch != job->epoch)
        ended_clear(&lines->fresh); /* nobody is in that epoch any more */
    lines->epoch = job->epoch;
    struct line_ended rank = how_of(record);
    ended_add(&lines->fresh, &rank);
    if (!lines->deferred)
        loop_defer(job->loop, send_fresh, job);
    lines->deferred = true;
}

void job_lines_rank_ended(struct job *job, int seat)
{
    if (has_listener(job))
        add(job, &job->ranks.records[seat]);
}

static void node_lost(struct job *job, struct node_link *node)
{
    for (int seat = 0; has_listener(job) && seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->node == node->index && record->state < RANK_EXITED)
            add(job, record);
    }
}

/* What is still to be sent to all goes to this node now, with all that ended earlier. */
static int take_opened(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct ended all = {.count = 0};
    if (frame->length != 0)
        return -1;
    if (job_part(job, job_lines)->fresh.count > 0)
        send_fresh(job);
    if (node->lines_epoch == job->epoch)
        return 0;
    node->lines_epoch = job->epoch;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (!is_present(job, record))
            continue;
        struct line_ended rank = how_of(record);
        if (record->state >= RANK_EXITED || job->nodes[record->node]->state == NODE_LOST)
            ended_add(&all, &rank);
    }
    ended_send(&all, node, job->epoch);
    ended_clear(&all);
    return 0;
}

/* Stalls */

/* false: a range is not one of ranks of this job. `pairs` has an even number of entries. */
static bool take_ranks(const struct job *job, const uint32_t *pairs, size_t count, bool more,
                       struct stall_ranks *out)
{
    uint32_t next = 0, size = (uint32_t)job->plan->size;
    out->more = more;
    out->list = mem_array(size + 1, sizeof(*out->list));
    for (size_t i = 0; i + 1 < count; i += 2) {
        uint32_t first = pairs[i], last = pairs[i + 1];
        if (first < next || last < first || last >= size)
            return false;
        for (uint32_t rank = first; rank <= last; rank++)
            out->list[out->count++] = (int)rank;
        next = last + 1;
    }
    return count % 2 == 0;
}

static void say(struct job *job, const struct stall *stall)
{
    AUTO_BUF struct buf line = BUF_INIT(8192);
    stall_text(stall, &line);
    log_warning(&job->log, "%s", buf_text(&line));
}

static void begin_stall(struct job *job, const Hvdrun__Stall *message)
{
    struct stall stall = {.seat = (int)message->seat,
                          .rank = job_seat_rank(job, (int)message->seat),
                          .set = message->set,
                          .seconds = message->seconds,
                          .others = message->others,
                          .since_ns = clock_wall_ns(),
                          .reported_ns = clock_mono_ns()};
    bool right = take_ranks(job, message->waiting, message->n_waiting, message->more_waiting,
                            &stall.waiting) &&
                 take_ranks(job, message->missing, message->n_missing, message->more_missing,
                            &stall.missing);
    if (!right) {
        stall_clear(&stall);
        return; /* the worker chose the numbers: this is not the agent's fault */
    }
    stall.operation = mem_strdup(message->operation);
    stall.name = mem_strdup(message->name);
    plain_text(stall.operation);
    plain_text(stall.name);
    if (message->round != 0 && !PARTS_ANY(job, waits, &stall, message->round))
        stall_clear(&stall);
    else if (message->round == 0)
        say(job, stall_list_add(job_part(job, stall_list), &stall));
}

static int take_stall(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Stall *message = frame->message;
    if (!job_seat_is_on(job, node, message->seat))
        return -1;
    if (!is_present(job, &job->ranks.records[message->seat]))
        return 0; /* of another world, whose numbers are not the job's */
    if (message->over)
        stall_list_over(job_part(job, stall_list), (int)message->seat, message->set);
    else if (job->state == JOB_RUNNING)
        begin_stall(job, message);
    return 0;
}

static const struct part_frame frames[] = {
    {FRAME_LINE_OPENED, {take_opened, NULL, EPOCHS_PRESENT, NODE_RUNNING, false}},
    {FRAME_STALL, {take_stall, &hvdrun__stall__descriptor, EPOCHS_PRESENT, NODE_RUNNING, false}},
    {0}};
const struct driver_part job_lines_part = {.name = "job_lines",
                                           .size = sizeof(struct job_lines),
                                           .close = close_part,
                                           .frames = frames,
                                           .node_lost = node_lost};
