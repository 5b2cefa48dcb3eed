/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job_nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"

struct node_link *job_add_node(struct job *job, const char *host)
{
    struct node_link *node = mem_alloc(sizeof(*node));
    job->nodes = mem_resize_array(job->nodes, (size_t)job->node_count + 1, sizeof(*job->nodes));
    node->index = job->node_count;
    node->place = -1;
    node->host = mem_strdup(host);
    job->nodes[job->node_count++] = node;
    return node;
}

void job_set_places(struct job *job, struct node_link *const *places)
{
    size_t count = (size_t)job->plan->node_count;
    for (int i = 0; i < job->node_count; i++)
        job->nodes[i]->place = -1;
    free(job->places);
    job->places = mem_array(count, sizeof(*job->places));
    for (size_t i = 0; i < count; i++) {
        job->places[i] = places[i];
        places[i]->place = (int)i;
    }
}

void job_seat_ranks(struct job *job)
{
    for (int rank = 0; rank < job->plan->size; rank++) {
        const struct plan_rank *place = &job->plan->ranks[rank];
        struct rank_record *record = rank_table_seat(&job->ranks, rank);
        record->rank = rank;
        record->local_rank = place->local_rank;
        record->app = place->app;
        record->node = job->places[place->node]->index;
        record->epoch = record->joined = job->epoch;
    }
}

void job_take_plan(struct job *job)
{
    for (int i = 0; i < job->plan->node_count; i++)
        job_add_node(job, job->plan->nodes[i].name);
    job_set_places(job, job->nodes);
    job_seat_ranks(job);
}

int64_t job_node_timeout(const struct job *job)
{
    if (job->settings->node_timeout >= 0)
        return job->settings->node_timeout;
    return job->kind->node_timeout_ms;
}

bool job_all_nodes(struct job *job, bool (*is_so)(const struct node_link *node))
{
    for (int seen = 0; seen < job->node_count; seen++) {
        if (job->node_behind >= job->node_count)
            job->node_behind = 0;
        if (!is_so(job->nodes[job->node_behind]))
            return false;
        job->node_behind++;
    }
    return true;
}

void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message)
{
    for (int i = 0; i < job->node_count; i++)
        node_link_send(job->nodes[i], type, job->epoch, message);
}

void job_open_node(struct job *job, struct node_link *node)
{
    credit_init(&node->credit, &job->budget, (uint64_t)job->node_count);
    node->doubted = job->kind->many_epochs; /* otherwise the limit is longer anyway */
    node_link_init(node, job->loop, job_node_timeout(job), &job->log, job->hooks->node, job);
}

int job_connect_node(struct job *job, struct node_link *node, struct error *err)
{
    const struct transport_stream *streams = job->request->streams;
    bool forked = streams != NULL && streams[node->index].read_fd >= 0;
    return forked ? node_link_connect(node, &streams[node->index], err) : 0;
}
