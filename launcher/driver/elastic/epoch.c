/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/epoch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_nodes.h"
#include "driver/mpi/job_mpi.h"
#include "driver/reach/reach.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/stdin_feed.h"
#include "driver/start/handshake.h"
#include "driver/start/prepare.h"

enum stage { EPOCH_IDLE, EPOCH_WANTED, EPOCH_SENT, EPOCH_READY };

struct elastic_epoch {
    struct job *job;
    struct elastic_hub *hub;
    enum stage stage;
    struct plan *plan; /* job->plan points to it */
    struct elastic_member *members;
    struct prepare_epoch prepare;
    bool *ready; /* by place */
};

struct elastic_epoch *elastic_epoch_create(struct elastic_hub *hub)
{
    struct elastic_epoch *epoch = mem_alloc(sizeof(*epoch));
    *epoch = (struct elastic_epoch){.job = elastic_hub_job(hub), .hub = hub};
    return epoch;
}

static void plan_free(struct plan *plan)
{
    for (int i = 0; plan != NULL && i < plan->node_count; i++) {
        free(plan->nodes[i].name);
        host_traits_clear(&plan->nodes[i].traits);
    }
    if (plan != NULL) {
        free(plan->nodes);
        free(plan->ranks);
        free(plan->ranks_by_node);
    }
    free(plan);
}

void elastic_epoch_destroy(struct elastic_epoch *epoch)
{
    if (epoch == NULL)
        return;
    plan_free(epoch->plan);
    free(epoch->members);
    free(epoch->ready);
    free(epoch);
}

/* The core's plan as the rest of the driver knows plans: nodes without workers have no place. */
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
        host_traits_copy(&plan->nodes[i].traits, reach_traits(job->reach, node));
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

static void take_plan(struct elastic_epoch *epoch, const struct elastic_plan *from)
{
    struct job *job = epoch->job;
    struct node_link **places AUTO_FREE = mem_array((size_t)from->host_count, sizeof(*places));
    job_mpi_end_epoch(job->mpi); /* it borrows the old plan */
    plan_free(epoch->plan);
    epoch->plan = make_plan(job, from);
    job->plan = epoch->plan;
    job->epoch = from->epoch;
    for (int i = 0; i < from->host_count; i++)
        places[i] = job->nodes[from->hosts[i]];
    job_set_places(job, places);
    free(epoch->members);
    epoch->members = mem_array((size_t)from->size, sizeof(*epoch->members));
    for (int i = 0; i < from->size; i++)
        epoch->members[i] = from->members[i];
    free(epoch->ready);
    epoch->ready = mem_array((size_t)from->host_count, sizeof(*epoch->ready));
    epoch->prepare = (struct prepare_epoch){.members = epoch->members,
                                            .restart_count = from->restart_count,
                                            .beside_others = !from->fresh};
}

static void tell_prepared(struct elastic_epoch *epoch)
{
    struct job *job = epoch->job;
    for (int i = 0; i < job->plan->node_count; i++) {
        if (prepare_concerns(job, &epoch->prepare, i) && !epoch->ready[i])
            return;
    }
    epoch->stage = EPOCH_READY;
    elastic_hub_feed(epoch->hub,
                     &(struct elastic_event){.kind = ELASTIC_PREPARED, .epoch = job->epoch});
}

void elastic_epoch_advance(struct elastic_epoch *epoch)
{
    struct job *job = epoch->job;
    if (epoch->stage != EPOCH_WANTED)
        return;
    for (int i = 0; i < job->plan->node_count; i++) {
        const struct node_link *node = job->places[i];
        bool rejoins = epoch->prepare.beside_others && node->state == NODE_RUNNING;
        if (prepare_concerns(job, &epoch->prepare, i) && node->state != NODE_UP && !rejoins)
            return;
    }
    if (!epoch->prepare.beside_others)
        mem_free_at(&job->master_addr); /* a new one is chosen */
    epoch->stage = EPOCH_SENT;
    if (prepare_send(job, &epoch->prepare))
        tell_prepared(epoch); /* when nobody new is to be started */
}

void elastic_epoch_prepare(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    take_plan(epoch, plan);
    epoch->stage = EPOCH_WANTED;
    elastic_epoch_advance(epoch);
}

void elastic_epoch_cancel(struct elastic_epoch *epoch)
{
    struct job *job = epoch->job;
    for (int i = 0; epoch->stage >= EPOCH_SENT && i < job->plan->node_count; i++) {
        if (prepare_concerns(job, &epoch->prepare, i))
            node_link_send(job->places[i], FRAME_CANCEL, job->epoch, NULL);
    }
    epoch->stage = EPOCH_IDLE;
}

static void seat_member(struct job *job, const struct elastic_member *member)
{
    if (member->is_new) {
        struct output_seat who = {member->rank, member->local_rank, job->nodes[member->host]->host};
        output_seat(job->output, member->seat, &who); /* before the old one is forgotten */
        rank_table_seat(&job->ranks, member->seat)->epoch = job->epoch;
    }
    struct rank_record *record = &job->ranks.records[member->seat];
    record->rank = member->rank;
    record->local_rank = member->local_rank;
    record->node = member->host;
}

static void first_start(struct job *job)
{
    job->stdin_feed = stdin_feed_create(job);
    handshake_running(job);
}

void elastic_epoch_start(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    for (int i = 0; i < plan->size; i++)
        seat_member(job, &plan->members[i]);
    job_rendezvous_begin(job->rendezvous);
    if (job->state < JOB_RUNNING)
        first_start(job);
    else
        stdin_feed_stop(job->stdin_feed); /* what was read cannot be read again */
    for (int i = 0; i < job->plan->node_count; i++)
        node_link_send(job->places[i], FRAME_EPOCH, job->epoch, NULL);
    for (int i = 0; i < job->plan->node_count; i++) {
        if (prepare_concerns(job, &epoch->prepare, i))
            handshake_send_start(job, job->places[i]);
    }
    epoch->stage = EPOCH_IDLE;
}

static void refuse(struct elastic_epoch *epoch, const struct node_link *node, uint32_t number,
                   const Hvdrun__Ready *ready)
{
    struct elastic_event event = {.kind = ELASTIC_PREPARE_FAILED,
                                  .epoch = number,
                                  .host = node->index,
                                  .code = (int)ready->status,
                                  .text = ready->problem};
    elastic_hub_feed(epoch->hub, &event);
}

int elastic_epoch_ready(struct elastic_epoch *epoch, struct node_link *node,
                        const struct agent_frame *frame)
{
    struct job *job = epoch->job;
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, frame->length, frame->body);
    if (ready == NULL)
        return -1;
    bool expected = epoch->stage == EPOCH_SENT && frame->epoch == job->epoch && node->place >= 0;
    node->ready_ns = clock_mono_ns();
    if (ready->problem[0] != '\0') {
        refuse(epoch, node, frame->epoch, ready);
    } else if (expected) {
        handshake_take_ready(job, node, ready);
        epoch->ready[node->place] = true;
        tell_prepared(epoch);
    }
    hvdrun__ready__free_unpacked(ready, NULL);
    return 0;
}
