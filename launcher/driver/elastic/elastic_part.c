/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/elastic_part.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/control/control.h"
#include "driver/control/keeper.h"
#include "driver/elastic/act.h"
#include "driver/elastic/config.h"
#include "driver/elastic/control.h"
#include "driver/elastic/epoch.h"
#include "driver/elastic/rejoin.h"
#include "driver/elastic/source.h"
#include "driver/elastic/story.h"
#include "driver/end/teardown.h"
#include "driver/reach/reach.h"
#include "driver/start/bringup.h"
#include "driver/tell/events.h"
#include "model/exit/record.h"
#include "model/settings/split.h"

struct waiting_event {
    struct elastic_event event;
    char *text; /* of the event; NULL */
};

struct elastic_part {
    struct job *job;
    struct elastic *core;
    struct elastic_epoch *epoch;
    struct elastic_rejoin *rejoin;
    struct elastic_story *story;
    struct elastic_source *source;
    struct control *control;       /* NULL: none could be made */
    struct control_keeper *keeper; /* NULL: nobody removes its folder but we */
    struct loop_timer *timer;
    struct strv probe; /* words of --preempt-probe */
    struct waiting_event *queue;
    size_t queued, room;
    bool feeding;
};

/* The events */

int64_t elastic_part_now_ms(const struct elastic_part *part)
{
    const struct job *job = part->job;
    int64_t now = job->paused_ms != 0 ? job->paused_ms : clock_mono_ms();
    return now - job->stood_still_ms;
}

static void set_timer(struct elastic_part *part)
{
    int64_t due = elastic_deadline(part->core);
    if (due < 0 || part->job->paused_ms != 0) {
        loop_timer_clear(part->timer);
        return;
    }
    int64_t left = due - elastic_part_now_ms(part);
    loop_timer_set(part->timer, left > 0 ? left : 0);
}

/* Every host that was listed for the first time gets its node. */
static void add_hosts(struct elastic_part *part)
{
    struct job *job = part->job;
    for (int i = job->node_count; i < elastic_host_count(part->core); i++) {
        const struct host *entry = elastic_host_facts(part->core, i).entry;
        struct node_link *node = job_add_node(job, entry->name);
        driver_open_node(job, node);
        reach_add_node(job->reach, node, &entry->traits);
    }
}

static void process(struct elastic_part *part, const struct elastic_event *event)
{
    struct elastic_actions actions = {.count = 0};
    const struct log *log = &part->job->log;
    elastic_event(part->core, event, elastic_part_now_ms(part), &actions);
    log_debug(log, "elastic: %s: host %d, seat %d: %s", elastic_event_name(event->kind),
              event->host, event->seat, elastic_state_name(elastic_state(part->core)));
    add_hosts(part);
    for (size_t i = 0; i < actions.count; i++) {
        log_debug(log, "elastic: -> %s: host %d, seat %d",
                  elastic_action_name(actions.items[i].kind), actions.items[i].host,
                  actions.items[i].seat);
        elastic_act(part->job, &actions.items[i]);
    }
    elastic_actions_destroy(&actions);
}

static void enqueue(struct elastic_part *part, const struct elastic_event *event)
{
    if (part->queued == part->room) {
        part->room = part->room == 0 ? 16 : 2 * part->room;
        part->queue = mem_resize_array(part->queue, part->room, sizeof(*part->queue));
    }
    struct waiting_event *waiting = &part->queue[part->queued++];
    *waiting = (struct waiting_event){*event, mem_strdup(event->text)};
    waiting->event.text = waiting->text;
}

void elastic_part_feed(struct elastic_part *part, const struct elastic_event *event)
{
    enqueue(part, event);
    if (part->feeding)
        return;
    part->feeding = true;
    for (size_t i = 0; i < part->queued; i++) {
        struct elastic_event next = part->queue[i].event; /* the queue may move */
        process(part, &next);
        free(part->queue[i].text);
    }
    part->queued = 0;
    part->feeding = false;
    set_timer(part);
}

static void tick(void *context)
{
    elastic_part_feed(context, &(struct elastic_event){.kind = ELASTIC_TICK});
}

/* News of a node */

static void feed_host(struct elastic_part *part, enum elastic_event_kind kind,
                      const struct node_link *node, const char *text)
{
    struct elastic_event event = {.kind = kind,
                                  .host = node->index,
                                  .text = text,
                                  .since_ms = elastic_part_now_ms(part),
                                  .deadline_ms = -1};
    elastic_part_feed(part, &event);
}

void elastic_part_hello(struct elastic_part *part, struct node_link *node)
{
    AUTO_FREE char *problem = bringup_version_problem(node);
    if (problem == NULL && node->hello->problem[0] != '\0')
        problem = mem_strdup(node->hello->problem);
    if (problem != NULL) {
        node_link_give_up(node, problem);
        return;
    }
    bringup_welcome(part->job, node);
    reach_node_up(part->job->reach, node);
    if (node->state == NODE_UP)
        feed_host(part, ELASTIC_HOST_CAME, node, node->hello->boot_id);
}

void elastic_part_unreached(struct elastic_part *part, struct node_link *node, const char *why)
{
    feed_host(part, ELASTIC_HOST_UNREACHED, node, why);
}

void elastic_part_node_lost(struct elastic_part *part, struct node_link *node, const char *why)
{
    bool silent =
        node->liveness.state == LIVENESS_LOST; /* since it was last heard; else just now */
    int64_t when_ms = silent ? node->liveness.heard_ms : clock_mono_ms();
    elastic_rejoin_node_lost(part->rejoin, node);
    bool came = elastic_host_facts(part->core, node->index).state != ELASTIC_HOST_CALLING;
    struct elastic_event event = {.kind = came ? ELASTIC_HOST_LOST : ELASTIC_HOST_UNREACHED,
                                  .host = node->index,
                                  .text = why,
                                  .since_ms = when_ms - part->job->stood_still_ms};
    elastic_part_feed(part, &event);
    elastic_part_node_gone(part, node);
}

void elastic_part_node_gone(struct elastic_part *part, struct node_link *node)
{
    elastic_act_node_gone(part->job, node);
    elastic_epoch_advance(part->epoch);
}

void elastic_part_node_ended(struct elastic_part *part, struct node_link *node)
{
    if (part == NULL || part->job->state >= JOB_ENDING)
        return;
    node->state = NODE_UP; /* it can take the next epoch */
    elastic_epoch_advance(part->epoch);
}

int elastic_part_terminate(struct elastic_part *part, struct node_link *node, const uint8_t *body,
                           size_t length)
{
    Hvdrun__Terminate *message = hvdrun__terminate__unpack(NULL, length, body);
    if (message == NULL)
        return -1;
    bool signaled = message->why[0] == '\0';
    struct elastic_event event = {
        .kind = ELASTIC_HOST_DRAIN,
        .host = node->index,
        .text = signaled ? "its agent was asked to end" : message->why,
        .deadline_ms =
            message->has_deadline ? elastic_part_now_ms(part) + (int64_t)message->within_ms : -1};
    elastic_part_feed(part, &event);
    hvdrun__terminate__free_unpacked(message, NULL);
    return 0;
}

int elastic_part_notified(struct elastic_part *part, struct node_link *node, const uint8_t *body,
                          size_t length)
{
    Hvdrun__Notified *message = hvdrun__notified__unpack(NULL, length, body);
    if (part == NULL || message == NULL) {
        if (message != NULL)
            hvdrun__notified__free_unpacked(message, NULL);
        return -1;
    }
    if (message->problem[0] != '\0')
        log_warning(&part->job->log,
                    "%s: the worker with rank 0 could not be told that hosts have changed: %s",
                    node->host, message->problem);
    hvdrun__notified__free_unpacked(message, NULL);
    return 0;
}

/* News of a worker */

static void feed_worker(struct elastic_part *part, enum elastic_event_kind kind, int seat)
{
    elastic_part_feed(part, &(struct elastic_event){.kind = kind, .seat = seat});
}

void elastic_part_started(struct elastic_part *part, int seat)
{
    feed_worker(part, ELASTIC_STARTED, seat);
}

void elastic_part_exited(struct elastic_part *part, const struct exit_event *exit)
{
    struct elastic_event event = {.kind = ELASTIC_EXITED,
                                  .seat = exit->rank,
                                  .code = exit->code,
                                  .signaled = exit->signaled,
                                  .since_ms = exit->when_ns / 1000000 - part->job->stood_still_ms};
    elastic_rejoin_forget(part->rejoin, exit->rank);
    elastic_part_feed(part, &event);
}

void elastic_part_finished(struct elastic_part *part, int seat)
{
    feed_worker(part, ELASTIC_FINISHED, seat);
}

/* MPI_Abort: the process that asked for it may wait to be ended. */
void elastic_part_aborted(struct elastic_part *part, int seat)
{
    elastic_act_kill(part->job, seat, teardown_grace(part->job, GRACE_OF_STRAYS_MS));
}

/* The life of it */

void elastic_part_pause(struct elastic_part *part, bool paused)
{
    elastic_source_pause(part->source, paused);
    set_timer(part);
}

void elastic_part_ending(struct elastic_part *part)
{
    elastic_source_stop(part->source);
    elastic_part_feed(part, &(struct elastic_event){.kind = ELASTIC_END});
}

struct elastic_part *elastic_part_create(struct job *job, struct error *err)
{
    struct elastic_part *part = mem_alloc(sizeof(*part));
    *part = (struct elastic_part){.job = job};
    struct elastic_config config;
    elastic_config_from(job, &config);
    part->core = elastic_create(&config, elastic_part_now_ms(part));
    part->epoch = elastic_epoch_create(job);
    part->rejoin = elastic_rejoin_create(job);
    part->story = elastic_story_create(job);
    part->timer = loop_timer_create(job->loop, tick, part);
    const char *probe = job->settings->preempt_probe;
    bool right = probe == NULL || words_split(probe, &part->probe, err) == 0;
    part->source = right ? elastic_source_create(job, err) : NULL;
    if (part->source == NULL) {
        elastic_part_destroy(part);
        return NULL;
    }
    return part;
}

void elastic_part_begin(struct elastic_part *part)
{
    struct job *job = part->job;
    struct error err = ERROR_INIT;
    job->opened_ns = clock_mono_ns();
    events_job(job->events, "job_start");
    if (reach_open(job->reach, &err) < 0) {
        teardown_launcher(job, err.status != 0 ? err.status : STATUS_LAUNCHER, err.text);
        return;
    }
    part->keeper = control_keeper_create(job->helpers);
    part->control =
        control_create(job->loop, job->request->job_id, elastic_control_ops(), job, &err);
    if (part->control == NULL)
        log_info(&job->log, "no control socket: %s", err.text);
    elastic_source_begin(part->source);
}

void elastic_part_close(struct elastic_part *part)
{
    if (part == NULL)
        return;
    control_destroy(part->control);
    control_keeper_destroy(part->keeper);
    part->control = NULL;
    part->keeper = NULL;
}

void elastic_part_destroy(struct elastic_part *part)
{
    if (part == NULL)
        return;
    elastic_part_close(part);
    elastic_source_destroy(part->source);
    loop_timer_destroy(part->timer);
    elastic_story_destroy(part->story);
    elastic_rejoin_destroy(part->rejoin);
    elastic_epoch_destroy(part->epoch);
    elastic_destroy(part->core);
    strv_destroy(&part->probe);
    free(part->queue);
    free(part);
}

static int status_of(const struct elastic_verdict *verdict)
{
    if (verdict->code > 0)
        return verdict->signaled ? 128 + verdict->code : verdict->code & 0xff;
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return 0;
    case ELASTIC_END_HOST_LOST: return STATUS_NODE_LOST;
    case ELASTIC_END_NO_HOSTS: return STATUS_NO_SLOTS;
    case ELASTIC_END_RESET_LIMIT: return verdict->host < 0 ? STATUS_LAUNCHER : STATUS_NODE_LOST;
    default: return STATUS_LAUNCHER;
    }
}

static enum exit_cause cause_of(const struct elastic_verdict *verdict)
{
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return CAUSE_NONE;
    case ELASTIC_END_CRASH:
    case ELASTIC_END_FAULT: return verdict->signaled ? CAUSE_SIGNAL : CAUSE_EXIT;
    case ELASTIC_END_HOST_LOST: return CAUSE_NODE_LOST;
    default: return CAUSE_LAUNCHER;
    }
}

/* The exit policy knows nothing of the ranks, so what it says of them is not used. */
static void ended_by_driver(const struct job *job, struct verdict *out)
{
    AUTO_BUF struct buf text = BUF_INIT(sizeof(out->explanation));
    *out = (struct verdict){
        .status = STATUS_LAUNCHER, .cause = CAUSE_LAUNCHER, .rank = -1, .node = -1};
    int signal = job->gone ? SIGPIPE : job->interrupted;
    if (signal > 0) {
        out->status = 128 + signal;
        out->cause = CAUSE_INTERRUPTED;
        buf_puts(&text, "ended by the user's ");
        exit_signal_name(signal, &text);
    } else {
        buf_puts(&text, "the launcher ended the job without a recorded reason");
    }
    strncpy(out->explanation, buf_text(&text), sizeof(out->explanation) - 1);
}

void elastic_part_verdict(const struct elastic_part *part, struct verdict *out)
{
    const struct elastic_verdict *verdict = elastic_verdict(part->core);
    const struct job *job = part->job;
    elastic_story_end(part->story, elastic_facts(part->core));
    if (out->status != 0 && out->cause != CAUSE_INTERRUPTED)
        return; /* a failure of the launcher */
    if (verdict->end == ELASTIC_END_DRIVER || verdict->end == ELASTIC_END_NONE) {
        ended_by_driver(job, out);
        return;
    }
    *out = (struct verdict){.status = status_of(verdict),
                            .cause = cause_of(verdict),
                            .rank = verdict->seat,
                            .node = verdict->host};
    strncpy(out->explanation, verdict->text, sizeof(out->explanation) - 1);
}

const struct strv *elastic_part_probe(const struct elastic_part *part)
{
    return &part->probe;
}

const struct elastic *elastic_part_core(const struct elastic_part *part)
{
    return part->core;
}

struct elastic_epoch *elastic_part_epoch(const struct elastic_part *part)
{
    return part->epoch;
}

struct elastic_rejoin *elastic_part_rejoin(const struct elastic_part *part)
{
    return part->rejoin;
}

struct elastic_source *elastic_part_source(const struct elastic_part *part)
{
    return part->source;
}

struct elastic_story *elastic_part_story(const struct elastic_part *part)
{
    return part->story;
}
