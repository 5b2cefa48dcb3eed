/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/check.h"
#include "agent/crews.h"
#include "agent/departure.h"
#include "agent/ending.h"
#include "agent/hello.h"
#include "agent/keeper_line.h"
#include "agent/mpi_host.h"
#include "agent/notifier.h"
#include "agent/orders.h"
#include "agent/rendezvous_door.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/tls_stream.h"
#include "model/liveness.h"
#include "model/signal_name.h"
#include "node/facts.h"
#include "node/runtime_dir.h"

/* Until WELCOME says otherwise. */
#define NODE_TIMEOUT_MS 30000
#define GRACE_MS 5000

struct agent {
    const struct agent_config *config;
    struct loop *loop;
    struct tls_stream *tls; /* NULL: the link is plain */
    struct link *link;      /* NULL once the driver is lost or has said QUIT */
    struct post post;
    struct reaper *reaper;
    struct loop_signals *signals;
    struct loop_timer *tick;
    struct liveness liveness;
    struct node_facts *facts;
    struct hello *hello;
    struct stream_pool pool;
    struct rendezvous_door *rendezvous;
    struct ending *ending;
    struct keeper_line *keeper; /* NULL: there is none */
    struct modules *modules;
    struct mpi_host *mpi;
    struct crews *crews;
    struct notifier *notifier;
    struct departure *departure;
    struct check *check; /* NULL until the driver asks */
    char *job_id;
    int64_t grace_ms, drain_ms;
    uint32_t end_epoch;  /* of the newest END */
    bool processes_gone; /* nothing is left below us */
    bool quits;          /* QUIT has come: what follows it is ignored */
    bool ended;          /* ENDED was sent; until the next PREPARE or another END */
    int status;
};

static void stop_now(void *context)
{
    loop_stop(context);
}

/* After what is deferred already: a link that was destroyed in this turn is freed there. */
static void agent_quit(struct agent *agent)
{
    loop_defer(agent->loop, stop_now, agent->loop);
}

/* ENDED when no process is left and every stream has been read. */
static void maybe_ended(struct agent *agent)
{
    if (!agent->processes_gone || agent->ended)
        return;
    if (!crews_is_finished(agent->crews))
        return;
    agent->ended = true;
    departure_resume(agent->departure);
    agent->post.epoch = agent->end_epoch;
    post_empty(&agent->post, FRAME_ENDED);
    if (agent->link == NULL)
        agent_quit(agent);
}

static void driver_lost(struct agent *agent)
{
    if (agent->link == NULL)
        return;
    link_destroy(agent->link);
    agent->link = NULL;
    agent->post.link = NULL;
    if (agent->ended) {
        agent_quit(agent);
        return;
    }
    departure_pause(agent->departure);
    crews_stop(agent->crews);
    crews_pause(agent->crews, false);
    stream_pool_resume(&agent->pool); /* nobody may block on output while ending */
    ending_pause(agent->ending, false);
    ending_begin(agent->ending, SIGTERM, agent->grace_ms);
}

static void link_closed(void *context, const char *reason)
{
    (void)reason;
    driver_lost(context);
}

/* Nobody would clean up after us any more, so we do it while we can. */
static void keeper_lost(void *context)
{
    driver_lost(context);
}

static void link_drained(void *context)
{
    struct agent *agent = context;
    stream_pool_resume(&agent->pool);
}

/* Things of the end */

static void ending_signal(void *context, int signal)
{
    const struct agent *agent = context;
    crews_signal(agent->crews, signal);
}

static bool ending_is_worker_group(void *context, pid_t group)
{
    const struct agent *agent = context;
    return crews_has_group(agent->crews, group);
}

static int ending_live(void *context)
{
    const struct agent *agent = context;
    return crews_live(agent->crews);
}

static void ending_gone(void *context, bool all)
{
    struct agent *agent = context;
    (void)all;
    agent->processes_gone = true;
    crews_cut(agent->crews);
    maybe_ended(agent);
}

static void crews_finished(void *context)
{
    maybe_ended(context);
}

/* After ENDED everything may begin anew: the next epoch, or another end. */
static void leave_end(struct agent *agent)
{
    ending_reset(agent->ending);
    agent->processes_gone = false;
    agent->ended = false;
}

static void on_end(struct agent *agent, uint32_t epoch, const uint8_t *body, size_t length)
{
    Hvdrun__End *message = hvdrun__end__unpack(NULL, length, body);
    if (message == NULL)
        return;
    if (agent->ended)
        leave_end(agent); /* each END is answered: that of the job may follow an epoch's */
    agent->end_epoch = epoch;
    agent->post.epoch = epoch; /* it may come before any PREPARE */
    departure_pause(agent->departure);
    crews_stop(agent->crews);
    if (ending_is_idle(agent->ending)) {
        /* What exits from this moment on may do so because of us. */
        Hvdrun__Killing killing = HVDRUN__KILLING__INIT;
        killing.when_ns = (uint64_t)clock_mono_ns();
        post_message(&agent->post, FRAME_KILLING, &killing.base);
    }
    ending_begin(agent->ending, message->signal, message->grace_ms);
    hvdrun__end__free_unpacked(message, NULL);
}

/* After ENDED, or before there was any worker. A driver that sends it at another time wants no more
 * of us, and the workers are ended as when it is lost. */
static void on_quit(struct agent *agent)
{
    agent->quits = true;
    if (crews_live(agent->crews) > 0)
        driver_lost(agent);
    else
        agent_quit(agent);
}

/* Things of the link */

/* The order of frames is part of the protocol: who breaks it is not our driver. */
static void driver_is_wrong(struct agent *agent, const char *what)
{
    log_error(&agent->post.log, "the launcher broke the protocol: %s", what);
    link_flush(agent->link);
    driver_lost(agent);
}

/* Once: crews point to what it says. */
static void on_welcome(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Welcome *message = hvdrun__welcome__unpack(NULL, length, body);
    if (message == NULL || agent->job_id != NULL) {
        driver_is_wrong(agent, message == NULL ? "WELCOME is unreadable" : "WELCOME came twice");
        if (message != NULL)
            hvdrun__welcome__free_unpacked(message, NULL);
        return;
    }
    link_set_node(agent->link, message->node);
    agent->job_id = mem_strdup(message->job_id);
    agent->post.log.level = (enum log_level)message->log_level;
    agent->grace_ms = message->grace_ms;
    agent->drain_ms = message->drain_ms;
    liveness_init(&agent->liveness, LIVENESS_SUSPECT_MS, message->node_timeout_ms, clock_mono_ms());
    departure_welcome(agent->departure, message);
    hvdrun__welcome__free_unpacked(message, NULL);
}

/* The rendezvous of the node: made when the first crew wants it, and then for all. While older
 * crews are there, EPOCH says when it leaves their epoch. */
static void open_rendezvous(struct agent *agent, uint32_t epoch, const Hvdrun__Prepare *message,
                            bool joins)
{
    struct error err = ERROR_INIT;
    if (agent->rendezvous == NULL) {
        agent->rendezvous = rendezvous_door_create(agent->loop, &agent->post, &err);
        if (agent->rendezvous == NULL)
            log_warning(&agent->post.log, "no rendezvous for Horovod: %s", err.text);
    }
    if (agent->rendezvous != NULL)
        rendezvous_door_expect(agent->rendezvous, message->size, message->local_size);
    if (agent->rendezvous != NULL && !joins)
        rendezvous_door_begin(agent->rendezvous, epoch);
}

static void add_crew(struct agent *agent, uint32_t epoch, Hvdrun__Prepare *message)
{
    bool joins = crews_make_way(agent->crews) > 0;
    agent->post.epoch = epoch;
    if (!message->mpi_controller)
        open_rendezvous(agent, epoch, message, joins);
    struct crew_config config = {
        .loop = agent->loop,
        .post = &agent->post,
        .epoch = epoch,
        .pool = &agent->pool,
        .reaper = agent->reaper,
        .facts = agent->facts,
        .mpi = joins ? NULL : agent->mpi,
        .mask = agent->config->mask,
        .modules = agent->modules,
        .job_id = agent->job_id,
        .drain_ms = agent->drain_ms,
        .rendezvous_port = agent->rendezvous == NULL ? 0 : rendezvous_door_port(agent->rendezvous)};
    departure_tell(agent->departure, crews_add(agent->crews, &config, message));
}

/* Of the next epoch: after an end all anew, else beside the workers that go on. */
static void on_prepare(struct agent *agent, uint32_t epoch, const uint8_t *body, size_t length)
{
    Hvdrun__Prepare *message = hvdrun__prepare__unpack(NULL, length, body);
    if (message == NULL || agent->job_id == NULL) {
        driver_is_wrong(agent,
                        message == NULL ? "PREPARE is unreadable" : "PREPARE before WELCOME");
        if (message != NULL)
            hvdrun__prepare__free_unpacked(message, NULL);
        return;
    }
    if (agent->ended) {
        crews_clear(agent->crews);
        leave_end(agent);
    }
    if (ending_is_idle(agent->ending) && crews_is_newer(agent->crews, epoch))
        add_crew(agent, epoch, message);
    else
        hvdrun__prepare__free_unpacked(message, NULL);
}

static void on_epoch(struct agent *agent, uint32_t epoch)
{
    agent->post.epoch = epoch;
    if (agent->rendezvous != NULL)
        rendezvous_door_begin(agent->rendezvous, epoch);
}

static void on_credit(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Credit *message = hvdrun__credit__unpack(NULL, length, body);
    if (message == NULL)
        return;
    if (message->bytes > agent->pool.granted)
        agent->pool.granted = message->bytes;
    hvdrun__credit__free_unpacked(message, NULL);
    stream_pool_resume(&agent->pool);
}

static void on_heartbeat(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Heartbeat *message = hvdrun__heartbeat__unpack(NULL, length, body);
    if (message == NULL)
        return;
    message->reply_ns = (uint64_t)clock_mono_ns();
    post_message(&agent->post, FRAME_HEARTBEAT_REPLY, &message->base);
    hvdrun__heartbeat__free_unpacked(message, NULL);
}

/* The workers stand in sessions of their own, where SIGTSTP has no effect: SIGSTOP has. */
static void on_suspend(struct agent *agent, bool suspend)
{
    liveness_suspend(&agent->liveness, suspend, clock_mono_ms());
    ending_pause(agent->ending, suspend);
    crews_pause(agent->crews, suspend);
    crews_signal(agent->crews, suspend ? SIGSTOP : SIGCONT);
    if (suspend)
        post_empty(&agent->post, FRAME_SUSPENDED);
}

static void on_notify(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Notify *message = hvdrun__notify__unpack(NULL, length, body);
    if (message == NULL)
        return;
    notifier_send(agent->notifier, message->seat, message->timestamp, (int)message->result,
                  message->registration.data, message->registration.len);
    hvdrun__notify__free_unpacked(message, NULL);
}

static void notified(void *context, uint32_t seat, uint64_t timestamp, const char *problem)
{
    const struct agent *agent = context;
    Hvdrun__Notified message = HVDRUN__NOTIFIED__INIT;
    message.seat = seat;
    message.timestamp = timestamp;
    message.problem = (char *)(problem == NULL ? "" : problem); /* protobuf-c only reads it */
    post_message(&agent->post, FRAME_NOTIFIED, &message.base);
}

static void on_check(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->check == NULL)
        agent->check = check_create(agent->loop, &agent->post, agent->facts, agent->modules);
    check_frame(agent->check, header->type, body, header->length);
}

/* Frames that are not the liveness', nor about certain workers. */
static bool node_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    size_t length = header->length;
    switch (header->type) {
    case FRAME_WELCOME: on_welcome(agent, body, length); break;
    case FRAME_PREPARE: on_prepare(agent, header->epoch, body, length); break;
    case FRAME_EPOCH: on_epoch(agent, header->epoch); break;
    case FRAME_OUTPUT_CREDIT: on_credit(agent, body, length); break;
    case FRAME_NOTIFY: on_notify(agent, body, length); break;
    case FRAME_DEADLINE: departure_deadline(agent->departure, body, length); break;
    case FRAME_END: on_end(agent, header->epoch, body, length); break;
    case FRAME_QUIT: on_quit(agent); break;
    case FRAME_CHECK:
    case FRAME_PROBE: on_check(agent, header, body); break;
    case FRAME_KV_REPLY:
        if (agent->rendezvous != NULL)
            rendezvous_door_reply(agent->rendezvous, body, length);
        break;
    default: return false;
    }
    return true;
}

static void link_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct agent *agent = context;
    if (agent->quits)
        return;
    liveness_heard(&agent->liveness, clock_mono_ms());
    switch (header->type) {
    case FRAME_HEARTBEAT: on_heartbeat(agent, body, header->length); break;
    case FRAME_SUSPEND: on_suspend(agent, true); break;
    case FRAME_RESUME: on_suspend(agent, false); break;
    default:
        if (!node_frame(agent, header, body))
            orders_frame(agent->crews, &agent->post, header, body);
        break;
    }
}

static void on_tick(void *context)
{
    struct agent *agent = context;
    int64_t now = clock_mono_ms();
    keeper_line_beat(agent->keeper, agent->liveness.lost_ms, agent->grace_ms + agent->drain_ms);
    if (agent->link == NULL) {
        loop_timer_set(agent->tick, LIVENESS_PERIOD_MS);
        return;
    }
    pid_t driver = agent->config->driver_pid;
    if (driver > 0 && getppid() == driver)
        liveness_heard(&agent->liveness, now); /* it may be stopped (a debugger), but it is there */
    if (liveness_tick(&agent->liveness, now) == LIVENESS_LOST) {
        driver_lost(agent);
        return;
    }
    Hvdrun__Heartbeat beat = HVDRUN__HEARTBEAT__INIT;
    beat.sent_ns = (uint64_t)clock_mono_ns();
    post_message(&agent->post, FRAME_HEARTBEAT, &beat.base);
    loop_timer_set(agent->tick, liveness_next_ms(&agent->liveness, now));
}

static void child_exited(void *context, const struct reaper_exit *exit)
{
    struct agent *agent = context;
    if (!crews_exited(agent->crews, exit) && !hello_exited(agent->hello, exit))
        departure_exited(agent->departure, exit);
}

static void collect_children(void *context)
{
    struct agent *agent = context;
    reaper_collect(agent->reaper);
    ending_check(agent->ending);
}

static void got_signal(void *context, int signal, int sender)
{
    struct agent *agent = context;
    (void)sender;
    if (signal == SIGCHLD) {
        /* after the pidfds of this turn, which know the order in which workers ended */
        loop_defer(agent->loop, collect_children, agent);
    } else if (signal == SIGTERM) {
        departure_sigterm(agent->departure);
    } else { /* for the driver, which passes on to all nodes what is meant for workers */
        Hvdrun__Signalled message = HVDRUN__SIGNALLED__INIT;
        message.signal = signal;
        post_message(&agent->post, FRAME_SIGNALLED, &message.base);
    }
}

/* Pipes of many ranks need more descriptors than shells allow; workers get the user's limit. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void tls_over(void *context, const char *why)
{
    (void)context; /* the link sees the end of it */
    (void)why;
}

static int open_link(struct agent *agent, const struct link_ops *ops, struct error *err)
{
    int read_fd = agent->config->read_fd, write_fd = agent->config->write_fd;
    if (agent->config->tls != NULL) {
        agent->tls =
            tls_stream_create(agent->loop, agent->config->tls, &read_fd, tls_over, agent, err);
        if (agent->tls == NULL)
            return -1;
        write_fd = read_fd;
    }
    agent->link = link_create(agent->loop, read_fd, write_fd, ops, agent, err);
    return agent->link == NULL ? -1 : 0;
}

static int agent_open(struct agent *agent, struct error *err)
{
    static const struct link_ops link_ops = {
        .frame = link_frame, .closed = link_closed, .drained = link_drained};
    static const struct ending_ops ending_ops = {.signal = ending_signal,
                                                 .is_worker_group = ending_is_worker_group,
                                                 .live = ending_live,
                                                 .gone = ending_gone};
#define SIGNAL_WATCHED(name) name,
    static const int signals[] = {SIGCHLD, SIGNAL_PASSED_LIST(SIGNAL_WATCHED) 0};
    agent->loop = loop_create(err);
    if (agent->loop == NULL)
        return -1;
    if (open_link(agent, &link_ops, err) < 0)
        return -1;
    post_init(&agent->post, agent->link);
    agent->keeper = keeper_line_create(agent->loop, agent->config->keeper_fd, keeper_lost, agent);
    agent->reaper = reaper_create(child_exited, agent);
    agent->signals = loop_signals_create(agent->loop, signals, got_signal, agent, err);
    if (agent->signals == NULL)
        return -1;
    agent->ending = ending_create(agent->loop, &agent->post.log, &ending_ops, agent);
    agent->pool = (struct stream_pool){.loop = agent->loop, .post = &agent->post};
    liveness_init(&agent->liveness, LIVENESS_SUSPECT_MS, NODE_TIMEOUT_MS, clock_mono_ms());
    agent->tick = loop_timer_create(agent->loop, on_tick, agent);
    loop_timer_set(agent->tick, LIVENESS_PERIOD_MS);
    agent->facts = node_facts_read();
    agent->mpi = mpi_host_create(agent->loop, &agent->post);
    agent->modules = modules_create(agent->config->module_dir);
    agent->crews = crews_create(agent->loop, crews_finished, agent);
    agent->departure = departure_create(agent->loop, &agent->post, agent->crews);
    agent->notifier = notifier_create(agent->loop, notified, agent);
    return 0;
}

static void agent_close(struct agent *agent)
{
    mpi_host_abandon(agent->mpi);
    crews_destroy(agent->crews);
    mpi_host_destroy(agent->mpi);
    rendezvous_door_destroy(agent->rendezvous);
    hello_destroy(agent->hello);
    departure_destroy(agent->departure);
    notifier_destroy(agent->notifier);
    check_destroy(agent->check);
    modules_destroy(agent->modules);
    ending_destroy(agent->ending);
    loop_signals_destroy(agent->signals);
    loop_timer_destroy(agent->tick);
    reaper_destroy(agent->reaper);
    node_facts_destroy(agent->facts);
    link_destroy(agent->link);
    tls_stream_destroy(agent->tls);
    keeper_line_destroy(agent->keeper);
    loop_destroy(agent->loop);
    free(agent->job_id);
}

int agent_run(const struct agent_config *config)
{
    struct agent agent = {.config = config, .grace_ms = GRACE_MS, .drain_ms = 2000};
    struct error err = ERROR_INIT;
    prctl(PR_SET_NAME, "hvdrun-agent");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    if (agent_open(&agent, &err) == 0) {
        agent.hello = hello_create(agent.loop, &agent.post, agent.facts);
        loop_run(agent.loop);
    } else {
        fprintf(stderr, "hvdrun-agent: %s\n", err.text); /* the driver sees the end of the link */
        agent.status = STATUS_LAUNCHER;
    }
    bool has_thread = mpi_host_has_thread(agent.mpi);
    bool deserted = agent.link == NULL;
    agent_close(&agent);
    if (deserted) /* a driver on this machine that was killed has left its folder */
        runtime_dir_sweep();
    if (has_thread)
        _exit(agent.status);
    return agent.status;
}
