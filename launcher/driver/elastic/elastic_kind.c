/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/blame.h"
#include "driver/end/teardown.h"
#include "driver/end/warning.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/reach/reach.h"
#include "driver/start/start.h"
#include "driver/tell/events.h"
#include "driver/tell/rank_progress.h"
#include "model/settings/split.h"

#define WITHIN_MAX_MS (INT64_MAX / 1000000 / 2) /* an agent may say anything */
#define NODE_TIMEOUT_MS 5000                    /* the job can go on without the node */

struct elastic_job {
    struct elastic_parts parts; /* first: elastic_parts_of() */
    uint32_t failed_epoch;      /* the last one in which something had failed; 0: none */
    struct strv probe;          /* words of --preempt-probe */
    double percent;             /* the most that the job has said; -1: nothing yet */
    uint32_t progress_epoch;    /* the last one in which it rose */
};

static struct elastic_job *of(const struct job *job)
{
    return job->kind_data;
}

/* The first failure of each epoch: --dump-on-failure and --evidence take a last look at the workers
 * then. An agent looks at its workers before it takes the next order, which may be to end them.
 * `rank` is -1 if a host was lost. Takes `text` over: what has failed. */
static void first_failure(struct job *job, int rank, char *text)
{
    char *owned AUTO_FREE = text;
    struct incident incident = {
        .kind = INCIDENT_FAILURE, .text = owned, .rank = rank, .once = true};
    if (job->state != JOB_RUNNING || of(job)->failed_epoch == job->epoch)
        return;
    of(job)->failed_epoch = job->epoch;
    incident_raise(job, &incident, NULL, NULL);
}

static void feed(struct job *job, const struct elastic_event *event)
{
    elastic_hub_feed(of(job)->parts.hub, event);
}

/* Start and end of the job */

static void act(void *context, const struct elastic_action *action)
{
    const struct elastic_job *own = context;
    elastic_act(&own->parts, action);
}

/* Every host that is listed for the first time gets a node. */
static void add_hosts(void *context)
{
    const struct elastic_job *own = context;
    const struct elastic *core = own->parts.core;
    struct job *job = own->parts.job;
    for (int i = job->node_count; i < elastic_host_count(core); i++) {
        const struct host *entry = elastic_host_facts(core, i).entry;
        struct node_link *node = job_add_node(job, entry->name);
        job_open_node(job, node);
        reach_add_node(job, node, &entry->traits);
    }
}

static int create(struct job *job, struct error *err)
{
    static const struct elastic_hub_ops ops = {.act = act, .listed = add_hosts};
    struct elastic_job *own = mem_alloc(sizeof(*own));
    struct elastic_parts *parts = &own->parts;
    struct elastic_config config;
    own->percent = -1;
    job->kind_data = own;
    elastic_config_from(job, &config);
    parts->job = job;
    parts->hub = elastic_hub_create(job, &config, &ops, own);
    parts->core = elastic_hub_core(parts->hub);
    parts->epoch = elastic_epoch_create(parts->hub);
    parts->story = elastic_story_create(job);
    parts->rendezvous = elastic_rendezvous_create(parts->hub);
    const char *probe = job->settings->preempt_probe;
    if (probe != NULL && words_split(probe, &own->probe, err) < 0)
        return -1;
    parts->source = elastic_source_create(parts->hub, err);
    return parts->source == NULL ? -1 : 0;
}

static void begin(struct job *job)
{
    struct elastic_job *own = of(job);
    struct error err = ERROR_INIT;
    job->times.opened_ns = clock_mono_ns();
    events_job(job, "job_start");
    if (reach_open(job, &err) < 0) {
        teardown_launcher(job, err.status, err.text);
        return;
    }
    elastic_source_begin(own->parts.source);
}

/* No part holds the next epoch any more. */
static void advance(struct job *job)
{
    if (job->state == JOB_RUNNING)
        elastic_epoch_advance(of(job)->parts.epoch);
}

static void pause_limits(struct job *job, bool paused)
{
    elastic_source_pause(of(job)->parts.source, paused);
    elastic_hub_clock_changed(of(job)->parts.hub);
}

static void ending(struct job *job)
{
    elastic_source_stop(of(job)->parts.source);
    feed(job, &(struct elastic_event){.kind = ELASTIC_END});
}

static void over(struct job *job)
{
    struct elastic_job *own = of(job);
    elastic_story_end(own->parts.story, elastic_facts(own->parts.core));
}

static void verdict(const struct job *job, struct verdict *out)
{
    elastic_verdict_of(job, of(job)->parts.core, out);
}

static void report(const struct job *job, struct json_t *root)
{
    const struct elastic_parts *parts = &of(job)->parts;
    elastic_story_report(parts->story, elastic_facts(parts->core), root);
}

static void destroy(struct job *job)
{
    struct elastic_job *own = of(job);
    if (own == NULL)
        return;
    elastic_source_destroy(own->parts.source);
    elastic_rendezvous_destroy(own->parts.rendezvous);
    elastic_story_destroy(own->parts.story);
    elastic_epoch_destroy(own->parts.epoch);
    elastic_hub_destroy(own->parts.hub);
    strv_destroy(&own->probe);
    free(own);
}

/* Nodes */

static const char *stranger(struct job *job, const char *name)
{
    const char *why = "the job ends";
    if (job->state >= JOB_ENDING ||
        elastic_source_come(of(job)->parts.source, name, elastic_max_np(job->settings), &why) < 0)
        return why;
    return NULL;
}

static void welcome(const struct job *job, Hvdrun__Welcome *welcome)
{
    const struct strv *probe = &of(job)->probe;
    welcome->preempt_probe = probe->items;
    welcome->n_preempt_probe = probe->count;
    welcome->preempt_period_ms = (uint32_t)job->settings->preempt_period;
}

static void feed_host(struct job *job, enum elastic_event_kind kind, const struct node_link *node,
                      const char *text)
{
    feed(job, &(struct elastic_event){.kind = kind,
                                      .host = node->index,
                                      .text = text,
                                      .since_ms = job_running_ms(job),
                                      .deadline_ms = -1});
}

/* The numbers of ranks that the job needs come from the slots of the driver's own line. */
static char *slots_problem(const struct job *job, const struct node_link *node)
{
    const struct host *host = hosts_find(job->request->hosts, node->host);
    if (host == NULL || node->hello->slots == 0 || node->hello->slots == (uint32_t)host->slots)
        return NULL;
    return mem_printf("its line wants %u for the ranks of each host, and that of the driver %d; "
                      "with restarts or MIN:MAX, all hosts need the same number",
                      node->hello->slots, host->slots);
}

/* The agent quits, says why, and closes the link: the node is lost for this reason. */
static void refuse(const struct job *job, struct node_link *node, char *why)
{
    Hvdrun__Quit message = HVDRUN__QUIT__INIT;
    message.over = true;
    message.status = STATUS_LAUNCHER;
    message.refused = why;
    node_link_explain(node, why);
    node_link_send(node, FRAME_QUIT, job->epoch, &message.base);
}

static void hello(struct job *job, struct node_link *node)
{
    AUTO_FREE char *problem = handshake_problem(node);
    if (problem == NULL)
        problem = slots_problem(job, node);
    if (problem != NULL) {
        refuse(job, node, problem);
        return;
    }
    handshake_welcome(job, node);
    if (node->state == NODE_UP)
        kind_welcomed(job, node);
    if (PARTS_ANY(job, delays, NULL))
        feed(job, &(struct elastic_event){.kind = ELASTIC_TICK});
}

static void came(struct job *job, struct node_link *node)
{
    feed_host(job, ELASTIC_HOST_CAME, node, node->hello->boot_id);
}

/* Where nobody has listed hosts, one that has gone is forgotten until its agent comes again. */
static void leave(struct job *job, const struct node_link *node)
{
    if (job_is_open(job) && job->state < JOB_ENDING)
        elastic_source_leave(of(job)->parts.source, node->host);
}

static void unreached(struct job *job, struct node_link *node, const char *why)
{
    feed_host(job, ELASTIC_HOST_UNREACHED, node, why);
    leave(job, node);
}

static void gone(struct job *job, struct node_link *node)
{
    bool may_return = node->may_return;
    node->may_return = false;
    elastic_act_node_gone(&of(job)->parts, node);
    if (may_return) /* what drained is gone, and a new agent would be another one */
        feed(job, &(struct elastic_event){.kind = ELASTIC_HOST_UNDRAIN, .host = node->index});
    leave(job, node);
    elastic_epoch_advance(of(job)->parts.epoch);
}

static void lost(struct job *job, struct node_link *node, const char *why)
{
    const struct elastic_parts *parts = &of(job)->parts;
    bool silent = node->liveness.state == LIVENESS_LOST;
    int64_t when_ms = silent ? node->liveness.heard_ms : clock_mono_ms();
    int crashed = elastic_cause_seat(parts->core);
    bool explains = crashed >= 0 && blame_follows(job, crashed, node);
    first_failure(job, -1, mem_printf("lost %s: %s", node->host, why));
    elastic_rendezvous_node_lost(parts->rendezvous, node);
    enum elastic_host_state state = elastic_host_facts(parts->core, node->index).state;
    bool came = state != ELASTIC_HOST_CALLING;
    feed(job, &(struct elastic_event){.kind = came ? ELASTIC_HOST_LOST : ELASTIC_HOST_UNREACHED,
                                      .host = node->index,
                                      .text = why,
                                      .first = explains,
                                      .since_ms = when_ms - job->times.stood_still_ms});
    gone(job, node);
}

static void unkilled(struct job *job, const struct node_link *node, const char *what)
{
    feed_host(job, ELASTIC_UNKILLED, node, what);
}

/* Workers */

static void feed_worker(struct job *job, enum elastic_event_kind kind, int seat)
{
    feed(job, &(struct elastic_event){.kind = kind, .seat = seat});
}

static void started(struct job *job, int seat)
{
    feed_worker(job, ELASTIC_STARTED, seat);
}

/* A worker that called MPI_Abort may wait until it is killed: its exit counts as the abort that
 * it asked for. */
static void exited(struct job *job, const struct exit_event *exit)
{
    const struct rank_record *record = &job->ranks.records[exit->seat];
    if (record->exec_failed)
        log_error(&job->log, "rank %d on %s could not start: %s", record->rank,
                  job_seat_host(job, exit->seat), record->text == NULL ? "" : record->text);
    struct elastic_event event = {.kind = ELASTIC_EXITED,
                                  .seat = exit->seat,
                                  .code = record->aborted ? record->abort_status : exit->code,
                                  .signaled = exit->signaled && !record->aborted,
                                  .since_ms = exit->when_ns / 1000000 - job->times.stood_still_ms};
    if ((exit->signaled || exit->code != 0) && !record->ended_by_us)
        first_failure(job, record->rank, incident_exit_text(job, exit));
    elastic_rendezvous_exited(of(job)->parts.rendezvous, exit->seat);
    feed(job, &event);
}

static void finished(struct job *job, int seat)
{
    feed_worker(job, ELASTIC_FINISHED, seat);
}

/* An agent starts no worker any more once it has been told to end them: those that it had not
 * started yet, it never reports. */
static void end_unstarted(struct job *job, const struct node_link *node)
{
    int *seats AUTO_FREE = NULL;
    int64_t now_ns = clock_mono_ns();
    int count = rank_end_unstarted(&job->ranks, node->index, SIGTERM, now_ns, &seats);
    for (int i = 0; i < count; i++) {
        struct exit_event exit = {
            .seat = seats[i], .signaled = true, .code = SIGTERM, .when_ns = now_ns};
        if (job->ranks.records[seats[i]].state != RANK_FINISHED)
            continue; /* the last of them may begin the next epoch */
        exited(job, &exit);
        finished(job, seats[i]);
    }
    if (count > 0)
        PARTS_TELL(job, ranks_changed);
}

static void ended(struct job *job, struct node_link *node)
{
    if (job->state >= JOB_ENDING)
        return;
    node->state = NODE_UP; /* it can take the next epoch */
    end_unstarted(job, node);
    elastic_epoch_advance(of(job)->parts.epoch);
}

/* A worker that called MPI_Abort may wait until it is killed. */
static void aborted(struct job *job, const struct exit_event *event, const char *message)
{
    (void)message;
    elastic_act_kill(job, event->seat, teardown_grace(job, GRACE_OF_LEFTOVERS_MS));
}

static void hung(struct job *job, int seat)
{
    feed_worker(job, ELASTIC_HUNG, seat);
}

/* Frames */

/* The core hears once in each epoch that the job has come further than ever. */
static void find_progress(struct job *job)
{
    struct elastic_job *own = of(job);
    const struct progress_report *report = rank_progress(job, rank_progress_of_job(job));
    if (report == NULL || report->progress.percent <= own->percent)
        return;
    own->percent = report->progress.percent;
    if (own->progress_epoch != job->epoch)
        feed(job, &(struct elastic_event){.kind = ELASTIC_PROGRESSED});
    own->progress_epoch = job->epoch;
}

/* What a survivor has said before the epoch may come late. */
static void progressed(struct job *job, int seat, int64_t when_ns)
{
    const struct elastic_parts *parts = &of(job)->parts;
    const struct elastic_facts *facts = elastic_facts(parts->core);
    const struct rank_record *record = &job->ranks.records[seat];
    int64_t at_ms = job_running_ms(job) - (clock_mono_ns() - when_ns) / 1000000;
    bool is_late = record->epoch != job->epoch && at_ms < facts->resumed_ms;
    if (record->joined == job->epoch && facts->epoch == job->epoch && !is_late)
        elastic_story_progressed(parts->story, facts, record->rank, at_ms);
    if (!is_late)
        find_progress(job);
}

static int take_ready(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    return elastic_epoch_ready(of(job)->parts.epoch, node, frame);
}

static int take_terminate(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Terminate *message = frame->message;
    bool signaled = message->why[0] == '\0';
    int64_t within_ms =
        (int64_t)(message->within_ms < WITHIN_MAX_MS ? message->within_ms : WITHIN_MAX_MS);
    struct elastic_event event = {.kind = ELASTIC_HOST_DRAIN,
                                  .host = node->index,
                                  .text = signaled ? "its agent got SIGTERM" : message->why,
                                  .deadline_ms =
                                      message->has_deadline ? job_running_ms(job) + within_ms : -1};
    enum elastic_host_state state = elastic_host_facts(of(job)->parts.core, node->index).state;
    node->may_return |= signaled && node->stream.dialled_in && state != ELASTIC_HOST_DRAINING;
    feed(job, &event);
    warning_node_term(job_part(job, warning));
    return 0;
}

static int take_notified(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Notified *message = frame->message;
    if (message->problem[0] != '\0')
        log_warning(&job->log,
                    "%s: could not notify the worker with rank 0 that the hosts changed: %s",
                    node->host, message->problem);
    return 0;
}

static const struct frame_rule frames[FRAME_TYPES] = {
    [FRAME_READY] = {take_ready, &hvdrun__ready__descriptor, EPOCHS_ALL, NODE_STARTING, false},
    [FRAME_TERMINATE] = {take_terminate, &hvdrun__terminate__descriptor, EPOCHS_ALL, NODE_STARTING,
                         false},
    [FRAME_NOTIFIED] = {take_notified, &hvdrun__notified__descriptor, EPOCHS_ALL, NODE_STARTING,
                        false},
};

const struct job_kind elastic_kind = {
    .many_epochs = true,
    .has_workers = true,
    .node_timeout_ms = NODE_TIMEOUT_MS,
    .frames = frames,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .pause = pause_limits,
    .ending = ending,
    .over = over,
    .verdict = verdict,
    .role = elastic_role_of,
    .report = report,
    .requests = elastic_requests,
    .status = elastic_control_status,
    .welcome = welcome,
    .hello = hello,
    .came = came,
    .stranger = stranger,
    .unreached = unreached,
    .lost = lost,
    .gone = gone,
    .ended = ended,
    .advance = advance,
    .started = started,
    .exited = exited,
    .finished = finished,
    .aborted = aborted,
    .progressed = progressed,
    .unkilled = unkilled,
    .hung = hung,
};
