/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/reach/call_progress.h"
#include "driver/reach/ways.h"
#include "driver/tell/events.h"
#include "node/facts.h"
#include "transport/boot/agent_image.h"
#include "transport/resolve.h"
#include "transport/transports.h"

/* How long the end of the job waits for the HELLO of a started agent, which has no workers yet. */
#define GREETING_MS 3000
#define LOOKUP_MS 2000 /* to find out whether a name is that of this machine */
#define STAGE_MS 10000
#define SHARE_OF_START 3 /* a stage may take this share of --start-timeout */

/* What this part knows about a node, beside its link. */
struct reach_node {
    struct reach *reach;
    struct node_link *link;
    bool is_here; /* known without asking a resolver */
    struct transport_target target;
    struct host_traits traits; /* what `target` points to */
    enum way way;              /* if it is not here */
    char *no_way;              /* why the way cannot be opened, until that is reported; NULL */
    struct transport_call *call;
    struct resolve_request *lookup; /* while a resolver looks up whether it is this machine */
    char *why;                      /* it cannot be reached; NULL */
};

struct reach {
    struct job *job;
    struct transport_room room;
    struct agent_image image;
    struct exec_transport local_exec;
    struct ways *ways; /* to hosts that are not this machine */
    struct resolver *resolver;
    struct reach_node **nodes; /* by index of the link */
    int count;
    struct loop_timer *refusals;
    struct loop_timer *greeting; /* after reach_stop(): for agents that have not sent HELLO */
    bool stopped;
};

static void node_failed(void *context, enum transport_stage stage, const char *why)
{
    struct reach_node *node = context;
    struct reach *reach = node->reach;
    if (node->why != NULL || reach->stopped)
        return;
    node->why = mem_strdup(why);
    node->link->stage = stage;
    node_link_unreached(node->link);
    events_node(reach->job, "node_unreached", node->link, why);
    KIND_TELL(reach->job, unreached, node->link, why);
}

/* Events of the transports */

static void call_stage(void *context, enum transport_stage stage)
{
    struct reach_node *node = context;
    node->link->stage = stage;
    node->link->stage_ns[stage] = clock_mono_ns();
}

static void call_up(void *context, const struct transport_stream *stream)
{
    struct reach_node *node = context;
    struct error err = ERROR_INIT;
    if (node_link_connect(node->link, stream, &err) < 0)
        node_failed(node, STAGE_AGENT, err.text);
}

static void call_lost(void *context, const char *why)
{
    struct reach_node *node = context;
    node_link_explain(node->link, why);
}

static void call_note(void *context, enum log_level level, const char *line)
{
    const struct reach_node *node = context;
    KIND_TELL(node->reach->job, note, node->link, line);
    log_print(&node->reach->job->log, level, "%s: %s", node->link->host, line);
}

static void call(struct reach_node *node, const struct transport *transport)
{
    static const struct transport_events events = {.stage = call_stage,
                                                   .up = call_up,
                                                   .failed = node_failed,
                                                   .lost = call_lost,
                                                   .note = call_note};
    node->call = transport_call(transport, &node->target, &events, node);
}

/* The way to a node */

static const struct transport *open_way(struct reach *reach, enum way way, struct error *err)
{
    bool sends_agent = way != WAY_SRUN && way != WAY_DIAL; /* to read and hash it takes time */
    if (sends_agent && reach->image.bytes == NULL &&
        agent_image_open(reach->job->request->agent_path, &reach->image, err) < 0) {
        agent_image_close(&reach->image);
        return NULL;
    }
    return ways_open(reach->ways, way, err);
}

/* If a way cannot be opened, the node fails, from the loop like all failures. */
static void call_away(struct reach_node *node)
{
    struct reach *reach = node->reach;
    struct error err = ERROR_INIT;
    const struct transport *transport = open_way(reach, node->way, &err);
    if (transport != NULL) {
        call(node, transport);
        return;
    }
    mem_replace(&node->no_way, err.text);
    loop_timer_set(reach->refusals, 0);
}

static void refuse(void *context)
{
    const struct reach *reach = context;
    for (int i = 0; i < reach->count; i++) {
        AUTO_FREE char *why = reach->nodes[i]->no_way;
        reach->nodes[i]->no_way = NULL;
        if (why != NULL)
            node_failed(reach->nodes[i], STAGE_WAITING, why);
    }
}

/* Starts an agent on this machine, later than the forked ones (D1). */
static void call_local(struct reach_node *node)
{
    struct reach *reach = node->reach;
    if (reach->local_exec.room == NULL) {
        reach->local_exec.room = &reach->room;
        reach->local_exec.same_machine = true;
        strv_add(&reach->local_exec.words, reach->job->request->agent_path);
    }
    struct transport local = exec_transport(&reach->local_exec);
    call(node, &local);
}

static void looked_up(void *context, const struct resolve_result *result)
{
    struct reach_node *node = context;
    bool own = false;
    for (size_t i = 0; i < result->count && !own; i++)
        own = is_local_address((const struct sockaddr *)&result->addresses[i]);
    node->lookup = NULL;
    if (own)
        call_local(node);
    else
        call_away(node);
}

static void begin_node(struct reach_node *node)
{
    struct reach *reach = node->reach;
    const char *name = node->target.address != NULL ? node->target.address : node->link->host;
    if (node->is_here)
        call_local(node);
    else if (way_may_be_here(reach->job->settings, node->way, node->link->host, &node->traits))
        node->lookup = resolver_ask(reach->resolver, name, AF_UNSPEC, LOOKUP_MS, looked_up, node);
    else
        call_away(node);
}

/* Hang up */

static void let_go(struct reach_node *node)
{
    resolver_cancel(node->lookup);
    node->lookup = NULL;
    mem_free_at(&node->no_way);
    transport_hang_up(node->call);
    node->call = NULL;
}

static void greeting_limit_passed(void *context)
{
    const struct reach *reach = context;
    for (int i = 0; i < reach->count; i++) {
        struct reach_node *node = reach->nodes[i];
        if (!node_link_alive(node->link) || node->link->hello != NULL ||
            node->link->stream.same_machine)
            continue;
        node_link_unreached(node->link);
        let_go(node);
    }
    job_advance(reach->job);
}

/* Create, call, close */

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    struct reach *reach = job_part(job, reach);
    int64_t share = job->settings->start_timeout / SHARE_OF_START;
    reach->job = job;
    reach->room = (struct transport_room){.loop = job->loop,
                                          .helpers = job_part(job, helpers),
                                          .image = &reach->image,
                                          .job_id = job->request->job_id,
                                          .limit_ms = share > STAGE_MS ? share : STAGE_MS,
                                          .silence_ms = job_node_timeout(job)};
    reach->greeting = loop_timer_create(job->loop, greeting_limit_passed, reach);
    reach->refusals = loop_timer_create(job->loop, refuse, reach);
    reach->ways = ways_create(job, &reach->room);
    return 0;
}

static void set_traits(struct reach_node *node, const struct host_traits *traits)
{
    host_traits_copy(&node->traits, traits);
    node->target = (struct transport_target){.host = node->link->host,
                                             .address = node->traits.address,
                                             .user = node->traits.user,
                                             .identity = node->traits.identity,
                                             .port = traits->port,
                                             .node = node->link->index};
    const struct job *job = node->reach->job;
    node->way = way_choose(job, traits);
    node->is_here = way_is_here(job->settings, job->request->allocation, node->link->host, traits);
}

void reach_add_node(struct job *job, struct node_link *link, const struct host_traits *traits)
{
    struct reach *reach = job_part(job, reach);
    struct reach_node *node = MEM_NEW((struct reach_node){.reach = reach, .link = link});
    set_traits(node, traits);
    reach->nodes = mem_resize_array(reach->nodes, (size_t)link->index + 1, sizeof(*reach->nodes));
    reach->nodes[reach->count++] = node;
}

int reach_open(struct job *job, struct error *err)
{
    struct reach *reach = job_part(job, reach);
    if (reach->resolver != NULL)
        return 0;
    /* an elastic job has no node yet */
    if (job->settings->transport == SET_TRANSPORT_DIAL && open_way(reach, WAY_DIAL, err) == NULL)
        return -1;
    for (int i = 0; i < reach->count; i++) { /* a problem of a way is a problem of the job */
        const struct reach_node *node = reach->nodes[i];
        if (!node->is_here && open_way(reach, node->way, err) == NULL)
            return -1;
    }
    reach->resolver = resolver_create(job->loop, NULL, err);
    return reach->resolver == NULL ? -1 : 0;
}

int reach_begin(struct job *job, struct error *err)
{
    int called = 0;
    for (int i = 0; i < job->node_count; i++)
        called += job->nodes[i]->state == NODE_CALLING;
    if (called == 0)
        return 0;
    if (reach_open(job, err) < 0)
        return -1;
    call_progress_begin(job);
    for (int i = 0; i < job->node_count; i++) {
        if (job->nodes[i]->state == NODE_CALLING)
            begin_node(job_part(job, reach)->nodes[i]);
    }
    return 0;
}

const struct host_traits *reach_traits(const struct job *job, const struct node_link *node)
{
    return &job_part(job, reach)->nodes[node->index]->traits;
}

bool reach_is_near(const struct job *job, const struct node_link *node)
{
    return job_part(job, reach)->nodes[node->index]->is_here;
}

void reach_call(struct job *job, struct node_link *link, const struct host_traits *traits)
{
    struct reach_node *node = job_part(job, reach)->nodes[link->index];
    let_go(node);
    mem_free_at(&node->why);
    set_traits(node, traits);
    begin_node(node);
}

/* Nodes that are not up yet are given up. A started agent gets a short time for its HELLO, so that
 * it can get QUIT. */
static void stop(struct job *job)
{
    struct reach *reach = job_part(job, reach);
    if (reach->stopped)
        return;
    reach->stopped = true;
    loop_timer_set(reach->greeting, GREETING_MS);
    call_progress_end(job);
    for (int i = 0; i < reach->count; i++) {
        struct reach_node *node = reach->nodes[i];
        if (node->link->state >= NODE_STARTING && node->link->state != NODE_UNREACHED)
            continue;
        let_go(node);
        node_link_unreached(node->link);
    }
}

void reach_hang_up(const struct job *job, const struct node_link *node)
{
    let_go(job_part(job, reach)->nodes[node->index]);
}

/* All agents have exited: hangs up every call. A program that started some of them (srun) may still
 * run; job_advance() is called when it has ended. */
static bool busy(struct job *job)
{
    const struct reach *reach = job_part(job, reach);
    for (int i = 0; i < reach->count; i++)
        let_go(reach->nodes[i]);
    return !ways_are_idle(reach->ways);
}

/* Hangs up every call, and ends every helper. */
static void over(struct job *job)
{
    struct reach *reach = job_part(job, reach);
    stop(job);
    loop_timer_clear(reach->greeting);
    for (int i = 0; i < reach->count; i++)
        let_go(reach->nodes[i]);
    ways_close(reach->ways);
    exec_transport_close(&reach->local_exec);
    resolver_destroy(reach->resolver);
    reach->resolver = NULL;
}

static void close_part(struct job *job)
{
    struct reach *reach = job_part(job, reach);
    over(job);
    for (int i = 0; i < reach->count; i++) {
        free(reach->nodes[i]->why);
        host_traits_clear(&reach->nodes[i]->traits);
        free(reach->nodes[i]);
    }
    ways_destroy(reach->ways);
    strv_destroy(&reach->local_exec.words);
    loop_timer_destroy(reach->greeting);
    loop_timer_destroy(reach->refusals);
    agent_image_close(&reach->image);
    free(reach->nodes);
}

const char *reach_why(const struct job *job, const struct node_link *node)
{
    return job_part(job, reach)->nodes[node->index]->why;
}

static void node_lost(struct job *job, struct node_link *node)
{
    reach_hang_up(job, node);
}

const struct driver_part reach_part = {.name = "reach",
                                       .size = sizeof(struct reach),
                                       .open = open_part,
                                       .close = close_part,
                                       .node_lost = node_lost,
                                       .ending = stop,
                                       .busy = busy,
                                       .over = over};

/* The hosts for which a job waits that does not come up. */

#define MISSING_IN_ONE_LINE 4
#define RANKS_TEXT_MAX 256

/* The job does not wait for a node without a place. */
static bool is_missing(const struct job *job, const struct node_link *node)
{
    if (node->place < 0)
        return false;
    return node->state <= NODE_STARTING || node->state == NODE_UNREACHED ||
           (node->state == NODE_UP && job->state == JOB_PREPARING);
}

static const char *stage_reached(const struct node_link *node)
{
    return node->state == NODE_UP ? "preparing" : transport_stage_name(node->stage);
}

static void say_missing(const struct job *job, const struct node_link *node)
{
    AUTO_BUF struct buf ranks = BUF_INIT(RANKS_TEXT_MAX);
    const char *why = reach_why(job, node);
    plan_node_describe(&job->plan->nodes[node->place], &ranks);
    log_error(&job->log, "%s: %s: %s (%s)", node->host, stage_reached(node),
              why != NULL ? why : "no answer in time", buf_text(&ranks));
}

void reach_describe_missing(const struct job *job, struct buf *out)
{
    int missing = 0;
    bool one_line = true;
    for (int i = 0; i < job->node_count; i++) {
        missing += is_missing(job, job->nodes[i]);
        one_line = one_line && reach_why(job, job->nodes[i]) == NULL;
    }
    one_line = one_line && missing <= MISSING_IN_ONE_LINE;
    if (!one_line)
        buf_printf(out, " the %d of %d hosts named above", missing, job->node_count);
    const char *comma = "";
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        if (!is_missing(job, node))
            continue;
        if (!one_line) {
            say_missing(job, node);
            continue;
        }
        buf_printf(out, "%s %s (%s; ", comma, node->host, stage_reached(node));
        plan_node_describe(&job->plan->nodes[node->place], out);
        buf_printf(out, ")");
        comma = ",";
    }
}
