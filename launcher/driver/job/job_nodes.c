/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job_nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "wire/frame.h"

struct node_link *job_add_node(struct job *job, const char *host)
{
    struct node_link *node = mem_alloc(sizeof(*node));
    node->index = job->node_count;
    node->place = -1;
    node->host = mem_strdup(host);
    MEM_ADD(job->nodes, job->node_count) = node;
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
    rank_table_keep(&job->ranks, job->plan->size);
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

int job_node_slots(const struct job *job, int place)
{
    int slots = job->plan->nodes[place].slots;
    const Hvdrun__AgentHello *hello = job->places[place]->hello;
    bool named = job->settings->hosts != NULL || job->settings->hostfile != NULL ||
                 job->request->allocation != NULL;
    bool lends = !named && hello != NULL && hello->cpus_allowed <= INT32_MAX;
    return lends && (int)hello->cpus_allowed > slots ? (int)hello->cpus_allowed : slots;
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

static void node_frame(void *context, struct node_link *node, const struct frame_header *header,
                       const uint8_t *body)
{
    struct job *job = context;
    if (frames_take(job, node, header, body) < 0)
        node_link_give_up(node, "its agent broke the protocol");
}

/* Whatever else holds data about the node goes first, then the kind of job decides. */
static void node_closed(void *context, struct node_link *node, const char *why)
{
    struct job *job = context;
    PARTS_TELL(job, node_closed, node);
    if (node->state == NODE_LOST) {
        PARTS_TELL(job, node_event, node, "node_lost", why);
        PARTS_TELL(job, node_lost, node);
        KIND_TELL(job, lost, node, why);
    } else {
        KIND_TELL(job, gone, node);
    }
    job_advance(job);
}

static void node_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    struct job *job = context;
    double limit_s = (double)liveness_limit_ms(&node->liveness) / 1000;
    bool may_answer = node_link_may_answer(node);
    if (silent && may_answer)
        log_warning(&job->log,
                    "%s: no heartbeat for %.1f s; after %.0f s, or %.0f s if it still answers, "
                    "the host counts as lost",
                    node->host, (double)silence_ms / 1000, limit_s, 2 * limit_s);
    else if (silent)
        log_warning(&job->log, "%s: no heartbeat for %.1f s; after %.0f s the host counts as lost",
                    node->host, (double)silence_ms / 1000, limit_s);
    else
        log_notice(&job->log, "%s: answers again", node->host);
    PARTS_TELL(job, node_event, node, silent ? "node_suspect" : "node_heard", NULL);
}

void job_open_node(struct job *job, struct node_link *node)
{
    static const struct node_link_ops ops = {
        .frame = node_frame, .closed = node_closed, .suspect = node_suspect};
    credit_init(&node->credit, &job->budget, (uint64_t)job->node_count);
    node->doubted = job->kind->many_epochs; /* otherwise the limit is longer anyway */
    node_link_init(node, job->loop, job_node_timeout(job), &job->log, &ops, job);
}

int job_connect_node(struct job *job, struct node_link *node, struct error *err)
{
    const struct transport_stream *streams = job->request->streams;
    bool forked = streams != NULL && streams[node->index].read_fd >= 0;
    return forked ? node_link_connect(node, &streams[node->index], err) : 0;
}

/* Agents exit roughly in the order of the QUIT messages, so the search starts behind the last
 * one found. */
void job_agent_exited(struct job *job, const struct reaper_exit *exit)
{
    for (int i = 0; i < job->node_count; i++) {
        int at = (job->node_reaped + i) % job->node_count;
        struct node_link *node = job->nodes[at];
        if (node->stream.pid != exit->pid)
            continue;
        /* nobody misses an agent that fails at the very end, but its folder may remain */
        job->lost_here |= node->stream.same_machine && exit->wait_status != 0;
        job->node_reaped = at + 1;
        node_link_exited(node, exit->wait_status);
        break;
    }
}

void job_free_nodes(struct job *job)
{
    for (int i = 0; i < job->node_count; i++)
        node_link_destroy(job->nodes[i]);
    free(job->places);
    free(job->nodes);
}

static int take_hello(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)frame; /* the link has decoded it: node->hello */
    KIND_TELL(job, hello, node);
    return 0;
}

static const struct frame_rule *rule_of(const struct job *job, uint8_t type)
{
    static const struct frame_rule hello = {take_hello, NULL, EPOCHS_ALL, NODE_STARTING, false};
    if (type == FRAME_HELLO)
        return &hello;
    return job->frames[type] != NULL ? job->frames[type] : &job->kind->frames[type];
}

static bool is_late(const struct job *job, const struct frame_rule *rule, uint32_t epoch)
{
    bool any =
        rule->epochs == EPOCHS_ALL || (rule->epochs == EPOCHS_OF_WORKERS && job->kind->many_epochs);
    return !any && !job_epoch_runs(job, epoch);
}

int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body)
{
    if (header->type >= FRAME_TYPES)
        return -1;
    const struct frame_rule *rule = rule_of(job, header->type);
    struct agent_frame frame = {header->type, header->epoch, body, header->length, NULL};
    if (rule->take == NULL || (!job->kind->many_epochs && node->state < rule->least))
        return -1;
    if (is_late(job, rule, frame.epoch) || (rule->placed && node->place < 0))
        return 0;
    if (rule->message != NULL)
        frame.message = message_read(rule->message, body, frame.length);
    bool broken = rule->message != NULL && frame.message == NULL;
    int result = broken ? -1 : rule->take(job, node, &frame);
    message_free(frame.message);
    return result;
}
