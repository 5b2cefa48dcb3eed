/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/mpi/mpi.h"
#include "driver/reach/reach.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/run.h"
#include "driver/start/start.h"
#include "driver/tell/stalls.h"

/*
 * The start of the new workers of a plan: PREPARE to the agents that get some, READY from them,
 * START.
 *
 *   IDLE       take()                           WANTED
 *   WANTED     every agent concerned is idle,   SENT     (PREPARE sent)
 *              and no part holds a restart
 *   SENT       every agent concerned is READY   READY
 *   READY      start()                          IDLE
 *   any        cancel()                         IDLE
 * An agent is idle when it has ended all workers of the epoch before. If workers of other epochs
 * go on beside the new ones, it is always idle.
 */

enum elastic_launch_stage { LAUNCH_IDLE, LAUNCH_WANTED, LAUNCH_SENT, LAUNCH_READY };

struct elastic_launch {
    enum elastic_launch_stage stage;
    struct plan
        *plan; /* as the rest of the driver knows plans; nodes without workers have no place */
    struct node_link **places;
    struct elastic_member *members;
    bool *ready; /* by place */
    struct prepare_epoch prepare;
};

static void launch_destroy(struct elastic_launch *launch)
{
    plan_destroy(launch->plan);
    free(launch->places);
    free(launch->members);
    free(launch->ready);
    *launch = (struct elastic_launch){.stage = LAUNCH_IDLE};
}

static struct plan *make_plan(const struct job *job, const struct elastic_plan *from)
{
    struct plan *plan = mem_alloc(sizeof(*plan));
    int *place_of AUTO_FREE = mem_array((size_t)job->node_count, sizeof(*place_of));
    *plan = (struct plan){.size = from->size, .node_count = from->host_count};
    plan->nodes = mem_array((size_t)plan->node_count, sizeof(*plan->nodes));
    plan->ranks = mem_array((size_t)plan->size, sizeof(*plan->ranks));
    for (int i = 0; i < from->host_count; i++) {
        const struct node_link *node = job->nodes[from->hosts[i]];
        plan->nodes[i].name = mem_strdup(node->host);
        host_traits_copy(&plan->nodes[i].traits, reach_traits(job, node));
        place_of[from->hosts[i]] = i;
    }
    for (int i = 0; i < plan->size; i++) {
        const struct elastic_member *member = &from->members[i];
        plan->nodes[place_of[member->host]].slots = member->local_size;
        plan->ranks[i] = (struct plan_rank){.rank = i,
                                            .app_rank = i,
                                            .node = place_of[member->host],
                                            .local_rank = member->local_rank,
                                            .cross_rank = member->cross_rank,
                                            .cross_size = member->cross_size};
    }
    plan_gather(plan);
    return plan;
}

/* Forgets the plan that it had, which nothing may borrow any more. */
static void launch_take(struct elastic_launch *launch, const struct job *job,
                        const struct elastic_plan *from)
{
    launch_destroy(launch);
    launch->stage = LAUNCH_WANTED;
    launch->plan = make_plan(job, from);
    launch->places = mem_array((size_t)from->host_count, sizeof(*launch->places));
    for (int i = 0; i < from->host_count; i++)
        launch->places[i] = job->nodes[from->hosts[i]];
    launch->members = mem_dup(from->members, (size_t)from->size * sizeof(*launch->members));
    launch->ready = mem_array((size_t)from->host_count, sizeof(*launch->ready));
    launch->prepare = (struct prepare_epoch){.number = from->epoch,
                                             .plan = launch->plan,
                                             .places = launch->places,
                                             .members = launch->members,
                                             .restart_count = from->restart_count,
                                             .beside_others = !from->fresh};
}

static bool all_idle(const struct elastic_launch *launch)
{
    for (int i = 0; i < launch->plan->node_count; i++) {
        const struct node_link *node = launch->places[i];
        bool goes_on = launch->prepare.beside_others && node->state == NODE_RUNNING;
        if (prepare_concerns(&launch->prepare, i) && node->state != NODE_UP && !goes_on)
            return false;
    }
    return true;
}

struct elastic_epoch {
    struct job *job;
    struct elastic_hub *hub;
    struct elastic_launch next; /* job->plan points to its plan */
    struct elastic_launch newcomers;
};

struct elastic_epoch *elastic_epoch_create(struct elastic_hub *hub)
{
    return MEM_NEW((struct elastic_epoch){.job = elastic_hub_job(hub), .hub = hub});
}

void elastic_epoch_destroy(struct elastic_epoch *epoch)
{
    if (epoch == NULL)
        return;
    launch_destroy(&epoch->next);
    launch_destroy(&epoch->newcomers);
    free(epoch);
}

/* Perhaps every agent concerned is READY now. */
static void look(struct elastic_epoch *epoch, struct elastic_launch *launch)
{
    for (int i = 0; i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i) && !launch->ready[i])
            return;
    }
    launch->stage = LAUNCH_READY;
    elastic_hub_feed(epoch->hub, &(struct elastic_event){.kind = ELASTIC_PREPARED,
                                                         .epoch = launch->prepare.number});
}

/* Sends PREPARE if the launch is WANTED and every agent concerned is idle. */
static void advance(struct elastic_epoch *epoch, struct elastic_launch *launch)
{
    if (launch->stage != LAUNCH_WANTED || !all_idle(launch))
        return;
    bool restarts = !launch->prepare.beside_others && launch->prepare.restart_count > 0;
    if (restarts && PARTS_ANY(epoch->job, holds, launch->prepare.number))
        return; /* elastic_epoch_advance() comes again */
    if (!launch->prepare.beside_others)
        handshake_forget_ports(epoch->job); /* new ones are chosen */
    launch->stage = LAUNCH_SENT;
    if (prepare_send(epoch->job, &launch->prepare))
        look(epoch, launch); /* perhaps nobody is to start */
}

void elastic_epoch_advance(struct elastic_epoch *epoch)
{
    advance(epoch, &epoch->next);
    advance(epoch, &epoch->newcomers);
}

void elastic_epoch_prepare(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    job_mpi_end_epoch(job); /* it borrows the old plan */
    launch_take(&epoch->next, job, plan);
    job->plan = epoch->next.plan;
    job->epoch = plan->epoch;
    job_set_places(job, epoch->next.places);
    advance(epoch, &epoch->next);
}

void elastic_epoch_prepare_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    if (plan == NULL)
        return; /* dismissed by another timer that was due at the same time */
    launch_take(&epoch->newcomers, epoch->job, plan);
    advance(epoch, &epoch->newcomers);
}

void elastic_epoch_cancel(struct elastic_epoch *epoch, bool newcomers)
{
    struct elastic_launch *launch = newcomers ? &epoch->newcomers : &epoch->next;
    for (int i = 0; launch->stage >= LAUNCH_SENT && i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i))
            node_link_send(launch->places[i], FRAME_CANCEL, launch->prepare.number, NULL);
    }
    launch->stage = LAUNCH_IDLE;
}

static void launch_start(struct elastic_launch *launch, const struct job *job)
{
    for (int i = 0; i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i))
            handshake_send_start(job, launch->places[i], launch->prepare.number);
    }
    launch->stage = LAUNCH_IDLE;
}

static void seat_member(struct job *job, const struct elastic_member *member, uint32_t number)
{
    if (member->is_new) {
        struct output_seat who = {.rank = member->rank,
                                  .local_rank = member->local_rank,
                                  .host = job->nodes[member->host]->host};
        output_seat(job->output, member->seat, &who); /* before the old one is forgotten */
        rank_table_seat(&job->ranks, member->seat)->epoch = number;
    }
    struct rank_record *record = &job->ranks.records[member->seat];
    record->joined = number;
    record->rank = member->rank;
    record->local_rank = member->local_rank;
    record->node = member->host;
}

void elastic_epoch_start(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    for (int i = 0; i < plan->size; i++)
        seat_member(job, &plan->members[i], plan->epoch);
    if (plan->repairs)
        job_rendezvous_repair(job);
    else
        job_rendezvous_begin(job);
    if (job->state < JOB_RUNNING) {
        stdin_feed_begin(job);
        handshake_running(job);
    } else {
        stdin_feed_stop(job_part(job, stdin_feed)); /* what was read cannot be read again */
    }
    stall_list_all_over(job_part(job, stall_list));
    for (int i = 0; i < job->plan->node_count; i++)
        node_link_send(job->places[i], FRAME_EPOCH, job->epoch, NULL);
    launch_start(&epoch->next, job);
}

void elastic_epoch_start_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    for (int i = 0; i < plan->size; i++) {
        if (plan->members[i].is_new)
            seat_member(job, &plan->members[i], plan->epoch);
    }
    launch_start(&epoch->newcomers, job);
}

/* The launch that this READY is about; NULL: it was cancelled meanwhile. */
static struct elastic_launch *find(struct elastic_epoch *epoch, uint32_t number)
{
    if (epoch->next.stage == LAUNCH_SENT && epoch->next.prepare.number == number)
        return &epoch->next;
    bool newcomers =
        epoch->newcomers.stage == LAUNCH_SENT && epoch->newcomers.prepare.number == number;
    return newcomers ? &epoch->newcomers : NULL;
}

int elastic_epoch_ready(struct elastic_epoch *epoch, struct node_link *node,
                        const struct agent_frame *frame)
{
    const Hvdrun__Ready *ready = frame->message;
    struct elastic_launch *launch = find(epoch, frame->epoch);
    node->ready_ns = clock_mono_ns();
    if (ready->problem[0] != '\0') {
        elastic_hub_feed(epoch->hub, &(struct elastic_event){.kind = ELASTIC_PREPARE_FAILED,
                                                             .epoch = frame->epoch,
                                                             .host = node->index,
                                                             .code = (int)ready->status,
                                                             .text = ready->problem});
    } else if (launch != NULL) {
        handshake_take_ready(epoch->job, node, ready);
        for (int i = 0; i < launch->plan->node_count; i++)
            launch->ready[i] |= launch->places[i] == node;
        look(epoch, launch);
    }
    return 0;
}
