/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/job_rendezvous.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"

enum stuck { STUCK_NOT, STUCK_AT_GATE, STUCK_IN_SCOPE };

struct job_rendezvous {
    struct rendezvous_store *store; /* made when the first request comes */
    struct loop_timer *expiry;
    struct rendezvous_store_ops ops;
    const struct rendezvous_store_ops *elastic; /* NULL: nobody wants it */
    /* what the store has said, and the elastic part learns after this turn of the loop */
    bool met, telling;
    enum stuck *stuck; /* by rank */
    int stuck_room;
};

static void reply(void *context, struct rendezvous_source source, int status, const void *body,
                  size_t length)
{
    const struct job *job = context;
    Hvdrun__KvReply message = HVDRUN__KV_REPLY__INIT;
    message.token = source.id;
    message.status = (uint32_t)status;
    message.body.data = (uint8_t *)body; /* protobuf-c only reads it */
    message.body.len = length;
    node_link_send(job->nodes[source.node], FRAME_KV_REPLY, job->epoch, &message.base);
}

static void problem(void *context, const char *text)
{
    const struct job *job = context;
    log_warning(&job->log, "%s", text);
}

static void set_expiry(const struct job_rendezvous *part)
{
    int64_t deadline = rendezvous_store_next_deadline(part->store);
    if (deadline < 0)
        loop_timer_clear(part->expiry);
    else
        loop_timer_set(part->expiry, deadline - clock_mono_ms());
}

static void expire(void *context)
{
    struct job_rendezvous *part = job_part((struct job *)context, job_rendezvous);
    rendezvous_store_expire(part->store, clock_mono_ms());
    set_expiry(part);
}

static void close_part(struct job *job)
{
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    loop_timer_destroy(part->expiry);
    rendezvous_store_destroy(part->store);
    free(part->stuck);
}

static void tell(void *context)
{
    struct job_rendezvous *part = job_part((struct job *)context, job_rendezvous);
    bool met = part->met;
    part->telling = part->met = false;
    if (met)
        part->elastic->met(context);
    for (int rank = 0; rank < part->stuck_room; rank++) {
        enum stuck stuck = part->stuck[rank];
        part->stuck[rank] = STUCK_NOT;
        if (stuck != STUCK_NOT)
            part->elastic->stuck(context, rank, stuck == STUCK_AT_GATE);
    }
}

static void tell_later(struct job *job)
{
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (!part->telling)
        loop_defer(job->loop, tell, job);
    part->telling = true;
}

static void elastic_met(void *context)
{
    job_part((struct job *)context, job_rendezvous)->met = true;
    tell_later(context);
}

static void elastic_stuck(void *context, int rank, bool at_gate)
{
    struct job *job = context;
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (rank >= part->stuck_room) {
        int room = job->plan->size > rank ? job->plan->size : rank + 1;
        part->stuck = mem_resize_array(part->stuck, (size_t)room, sizeof(*part->stuck));
        for (int i = part->stuck_room; i < room; i++)
            part->stuck[i] = STUCK_NOT;
        part->stuck_room = room;
    }
    part->stuck[rank] = at_gate ? STUCK_AT_GATE : STUCK_IN_SCOPE;
    tell_later(job);
}

void job_rendezvous_take_elastic(struct job *job, const struct rendezvous_store_ops *ops)
{
    job_part(job, job_rendezvous)->elastic = ops;
}

/* What was said about the epoch before is of no use any more. */
static void forget_said(struct job_rendezvous *part)
{
    part->met = false;
    for (int rank = 0; rank < part->stuck_room; rank++)
        part->stuck[rank] = STUCK_NOT;
}

static void begin(const struct job *job)
{
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    forget_said(part);
    rendezvous_store_begin(part->store, job->epoch, job->plan);
}

/* In a static job, some may have ended before the first request came. */
static void note_gone(const struct job *job)
{
    for (int seat = 0; !job->kind->many_epochs && seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].state >= RANK_EXITED)
            rendezvous_store_rank_gone(job_part(job, job_rendezvous)->store, seat);
    }
}

void job_rendezvous_open(struct job *job)
{
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (part->store != NULL)
        return;
    if (part->elastic != NULL) {
        part->ops = *part->elastic;
        part->ops.met = elastic_met;
        part->ops.stuck = elastic_stuck;
    }
    part->ops.reply = reply;
    part->ops.problem = problem;
    part->store = rendezvous_store_create(&part->ops, job, 0);
    part->expiry = loop_timer_create(job->loop, expire, job);
    begin(job);
    note_gone(job);
}

void job_rendezvous_begin(struct job *job)
{
    const struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (part->store == NULL)
        job_rendezvous_open(job); /* a rank may end before the others send the first request */
    else
        begin(job);
    set_expiry(part);
}

void job_rendezvous_repair(struct job *job)
{
    struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (part->store == NULL)
        return;
    forget_said(part);
    rendezvous_store_repair(part->store, job->epoch);
    set_expiry(part);
}

void job_rendezvous_rank_gone(struct job *job, int rank)
{
    const struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (part->store == NULL)
        return;
    rendezvous_store_rank_gone(part->store, rank);
    set_expiry(part);
}

/* In this epoch, which may be an earlier one. */
static void take(struct job *job, uint32_t epoch, struct rendezvous_source source,
                 const struct rendezvous_request *request)
{
    const struct job_rendezvous *part = job_part(job, job_rendezvous);
    job_rendezvous_open(job);
    rendezvous_store_request(part->store, clock_mono_ms(), epoch, source, request);
    set_expiry(part);
}

void job_rendezvous_again(struct job *job, struct rendezvous_source source,
                          const struct rendezvous_request *request)
{
    take(job, job->epoch, source, request);
}

/* KV_REQUEST, KV_DROPPED, of any epoch: a stale request gets an answer too, because its client
 * would wait for ever without one. -1: the frame cannot be decoded. */
static int take_request(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__KvRequest *message = frame->message;
    struct rendezvous_request request = {.method = (enum rendezvous_method)message->method,
                                         .scope = message->scope,
                                         .key = message->key,
                                         .body = message->body.data,
                                         .length = message->body.len};
    struct rendezvous_source source = {(uint32_t)node->index, message->token};
    take(job, frame->epoch, source, &request);
    return 0;
}

static int take_dropped(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const struct job_rendezvous *part = job_part(job, job_rendezvous);
    const Hvdrun__KvNotice *message = frame->message;
    struct rendezvous_source source = {(uint32_t)node->index, message->token};
    if (part->store != NULL)
        rendezvous_store_drop(part->store, source);
    return 0;
}

static void node_lost(struct job *job, struct node_link *node)
{
    const struct job_rendezvous *part = job_part(job, job_rendezvous);
    if (part->store != NULL)
        rendezvous_store_drop_node(part->store, (uint32_t)node->index);
}

static const struct part_frame frames[] = {
    {FRAME_KV_REQUEST,
     {take_request, &hvdrun__kv_request__descriptor, EPOCHS_ALL, NODE_RUNNING, false}},
    {FRAME_KV_DROPPED,
     {take_dropped, &hvdrun__kv_notice__descriptor, EPOCHS_ALL, NODE_RUNNING, false}},
    {0}};
const struct driver_part job_rendezvous_part = {.name = "job_rendezvous",
                                                .size = sizeof(struct job_rendezvous),
                                                .close = close_part,
                                                .frames = frames,
                                                .node_lost = node_lost};
