/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/launch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/reach/reach.h"
#include "driver/start/handshake.h"
#include "driver/start/prepare.h"

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

void elastic_launch_destroy(struct elastic_launch *launch)
{
    plan_free(launch->plan);
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
        host_traits_copy(&plan->nodes[i].traits, reach_traits(job_part(job, reach), node));
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

void elastic_launch_take(struct elastic_launch *launch, const struct job *job,
                         const struct elastic_plan *from)
{
    elastic_launch_destroy(launch);
    launch->stage = LAUNCH_WANTED;
    launch->plan = make_plan(job, from);
    launch->places = mem_array((size_t)from->host_count, sizeof(*launch->places));
    for (int i = 0; i < from->host_count; i++)
        launch->places[i] = job->nodes[from->hosts[i]];
    launch->members = mem_array((size_t)from->size, sizeof(*launch->members));
    for (int i = 0; i < from->size; i++)
        launch->members[i] = from->members[i];
    launch->ready = mem_array((size_t)from->host_count, sizeof(*launch->ready));
    launch->prepare = (struct prepare_epoch){.number = from->epoch,
                                             .plan = launch->plan,
                                             .places = launch->places,
                                             .members = launch->members,
                                             .restart_count = from->restart_count,
                                             .beside_others = !from->fresh};
}

/* True: now, every agent concerned is READY. */
static bool look(struct elastic_launch *launch)
{
    for (int i = 0; i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i) && !launch->ready[i])
            return false;
    }
    launch->stage = LAUNCH_READY;
    return true;
}

bool elastic_launch_advance(struct elastic_launch *launch, struct job *job)
{
    if (launch->stage != LAUNCH_WANTED)
        return false;
    for (int i = 0; i < launch->plan->node_count; i++) {
        const struct node_link *node = launch->places[i];
        bool goes_on = launch->prepare.beside_others && node->state == NODE_RUNNING;
        if (prepare_concerns(&launch->prepare, i) && node->state != NODE_UP && !goes_on)
            return false;
    }
    if (!launch->prepare.beside_others)
        mem_free_at(&job->ports.master_addr); /* a new one is chosen */
    launch->stage = LAUNCH_SENT;
    return prepare_send(job, &launch->prepare) && look(launch); /* perhaps nobody is to start */
}

bool elastic_launch_node_ready(struct elastic_launch *launch, const struct node_link *node)
{
    if (launch->stage != LAUNCH_SENT)
        return false;
    for (int i = 0; i < launch->plan->node_count; i++) {
        if (launch->places[i] == node)
            launch->ready[i] = true;
    }
    return look(launch);
}

void elastic_launch_cancel(struct elastic_launch *launch)
{
    for (int i = 0; launch->stage >= LAUNCH_SENT && i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i))
            node_link_send(launch->places[i], FRAME_CANCEL, launch->prepare.number, NULL);
    }
    launch->stage = LAUNCH_IDLE;
}

void elastic_launch_start(struct elastic_launch *launch, const struct job *job)
{
    for (int i = 0; i < launch->plan->node_count; i++) {
        if (prepare_concerns(&launch->prepare, i))
            handshake_send_start(job, launch->places[i], launch->prepare.number);
    }
    launch->stage = LAUNCH_IDLE;
}
