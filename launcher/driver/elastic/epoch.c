/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/epoch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/elastic/launch.h"
#include "driver/job/job_nodes.h"
#include "driver/mpi/job_mpi.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/stdin_feed.h"
#include "driver/start/handshake.h"
#include "driver/tell/stalls.h"

struct elastic_epoch {
    struct job *job;
    struct elastic_hub *hub;
    struct elastic_launch next; /* job->plan points to its plan */
    struct elastic_launch newcomers;
};

struct elastic_epoch *elastic_epoch_create(struct elastic_hub *hub)
{
    struct elastic_epoch *epoch = mem_alloc(sizeof(*epoch));
    *epoch = (struct elastic_epoch){.job = elastic_hub_job(hub), .hub = hub};
    return epoch;
}

void elastic_epoch_destroy(struct elastic_epoch *epoch)
{
    if (epoch == NULL)
        return;
    elastic_launch_destroy(&epoch->next);
    elastic_launch_destroy(&epoch->newcomers);
    free(epoch);
}

static void tell_prepared(struct elastic_epoch *epoch, const struct elastic_launch *launch)
{
    elastic_hub_feed(epoch->hub, &(struct elastic_event){.kind = ELASTIC_PREPARED,
                                                         .epoch = launch->prepare.number});
}

static void advance(struct elastic_epoch *epoch, struct elastic_launch *launch)
{
    if (elastic_launch_advance(launch, epoch->job))
        tell_prepared(epoch, launch);
}

void elastic_epoch_advance(struct elastic_epoch *epoch)
{
    advance(epoch, &epoch->next);
    advance(epoch, &epoch->newcomers);
}

void elastic_epoch_prepare(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    job_mpi_end_epoch(job_part(job, job_mpi)); /* it borrows the old plan */
    elastic_launch_take(&epoch->next, job, plan);
    job->plan = epoch->next.plan;
    job->epoch = plan->epoch;
    job_set_places(job, epoch->next.places);
    advance(epoch, &epoch->next);
}

void elastic_epoch_prepare_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    if (plan == NULL)
        return; /* dismissed by another timer that was due at the same time */
    elastic_launch_take(&epoch->newcomers, epoch->job, plan);
    advance(epoch, &epoch->newcomers);
}

void elastic_epoch_cancel(struct elastic_epoch *epoch)
{
    elastic_launch_cancel(&epoch->next);
}

void elastic_epoch_cancel_newcomers(struct elastic_epoch *epoch)
{
    elastic_launch_cancel(&epoch->newcomers);
}

static void seat_member(struct job *job, const struct elastic_member *member, uint32_t number)
{
    if (member->is_new) {
        struct output_seat who = {member->rank, member->local_rank, job->nodes[member->host]->host};
        output_seat(job->output, member->seat, &who); /* before the old one is forgotten */
        rank_table_seat(&job->ranks, member->seat)->epoch = number;
    }
    struct rank_record *record = &job->ranks.records[member->seat];
    record->joined = number;
    record->rank = member->rank;
    record->local_rank = member->local_rank;
    record->node = member->host;
}

static void first_start(struct job *job)
{
    stdin_feed_begin(job);
    handshake_running(job);
}

void elastic_epoch_start(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    for (int i = 0; i < plan->size; i++)
        seat_member(job, &plan->members[i], plan->epoch);
    if (plan->repairs)
        job_rendezvous_repair(job_part(job, job_rendezvous));
    else
        job_rendezvous_begin(job_part(job, job_rendezvous));
    if (job->state < JOB_RUNNING)
        first_start(job);
    else
        stdin_feed_stop(job_part(job, stdin_feed)); /* what was read cannot be read again */
    stall_list_all_over(job_part(job, stall_list));
    for (int i = 0; i < job->plan->node_count; i++)
        node_link_send(job->places[i], FRAME_EPOCH, job->epoch, NULL);
    elastic_launch_start(&epoch->next, job);
}

void elastic_epoch_start_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan)
{
    struct job *job = epoch->job;
    for (int i = 0; i < plan->size; i++) {
        if (plan->members[i].is_new)
            seat_member(job, &plan->members[i], plan->epoch);
    }
    elastic_launch_start(&epoch->newcomers, job);
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
        refuse(epoch, node, frame->epoch, ready);
    } else if (launch != NULL) {
        handshake_take_ready(epoch->job, node, ready);
        if (elastic_launch_node_ready(launch, node))
            tell_prepared(epoch, launch);
    }
    return 0;
}
