/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/departure.h"
#include "agent/ending.h"
#include "agent/gpu_sampler.h"
#include "agent/keeper.h"
#include "agent/mpi_host.h"
#include "agent/part.h"
#include "agent/post.h"
#include "agent/room_test.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "io/child.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "io/tls_stream.h"
#include "model/exit/signal_name.h"
#include "node/facts.h"
#include "node/gpus.h"
#include "node/runtime_dir.h"
#include "wire/control.pb-c.h"

/* HELLO, the first frame of an agent: facts about itself and its node. It is sent at once, unless a
 * program has to be asked for the GPUs (node/gpus.h): then at most some seconds later. */

struct hello {
    const struct post *post;
    struct node_facts *facts;
    const struct agent_config *config;
    struct program *asked; /* NULL: no program was asked, or it has answered */
};

static void send_hello(const struct hello *hello)
{
    const struct node_facts *facts = hello->facts;
    AUTO_STRV struct strv addresses = STRV_INIT;
    Hvdrun__AgentHello message = HVDRUN__AGENT_HELLO__INIT;
    message.protocol = FRAME_VERSION;
    message.version = (char *)HVDRUN_VERSION;
    message.hostname = (char *)facts->hostname;
    message.boot_id = (char *)facts->boot_id;
    message.machine = (char *)facts->machine;
    message.pid = (uint32_t)getpid();
    message.cpus_allowed = (uint32_t)node_facts_cpus(facts);
    message.cpus_online = (uint32_t)facts->cpus_online;
    message.gpus = (uint32_t)facts->gpus;
    message.memory_bytes = facts->memory_bytes;
    message.slots = (uint32_t)hello->config->slots;
    if (hello->config->line != NULL)
        message.line = (char *)hello->config->line;
    for (size_t i = 0; i < facts->address_count; i++) {
        const struct node_address *address = &facts->addresses[i];
        int whole = address->ipv6 ? 128 : 32;
        if (address->up)
            strv_printf(&addresses, "%s %s/%d", address->iface, address->text,
                        address->prefix < 0 ? whole : address->prefix);
    }
    message.interfaces = addresses.items;
    message.n_interfaces = addresses.count;
    post_message(hello->post, FRAME_HELLO, &message.base);
}

static void answered(void *context, const struct program_result *result)
{
    struct hello *hello = context;
    int gpus = gpus_answered(result);
    struct device_list unknown = {.count = 0};
    gpus_fill_unknown(&unknown, gpus);
    hello->asked = NULL;
    hello->facts->gpus_told = gpus;
    hello->facts->gpus = gpus_seen(&unknown);
    device_list_destroy(&unknown);
    send_hello(hello);
}

static struct program *ask(struct hello *hello, struct loop *loop, struct helpers *helpers)
{
    if (hello->facts->gpus_listed > 0 || !hello->facts->gpu_driver)
        return NULL;
    char *program AUTO_FREE = gpus_ask_program("", getenv("PATH"));
    if (program == NULL)
        return NULL;
    return gpus_ask(loop, helpers, program, GPUS_ASK_LIMIT_MS, answered, hello);
}

struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts, const struct agent_config *config)
{
    struct hello *hello = MEM_NEW((struct hello){.post = post, .facts = facts, .config = config});
    hello->asked = ask(hello, loop, helpers);
    if (hello->asked == NULL)
        send_hello(hello);
    return hello;
}

void hello_destroy(struct hello *hello)
{
    if (hello == NULL)
        return;
    program_cancel(hello->asked);
    free(hello);
}

/* The agent's end of the line to its keeper: see agent/keeper.h. */

struct keeper_line {
    int fd;
    struct loop_fd *watch;
    void (*lost)(void *context);
    void *context;
};

/* The keeper never writes: only its end makes the line readable. */
static void ready(void *context, int what)
{
    struct keeper_line *line = context;
    (void)what;
    loop_fd_watch(line->watch, 0);
    line->lost(line->context);
}

struct keeper_line *keeper_line_create(struct loop *loop, int fd, void (*lost)(void *context),
                                       void *context)
{
    if (fd < 0)
        return NULL;
    struct keeper_line *line =
        MEM_NEW((struct keeper_line){.fd = fd, .lost = lost, .context = context});
    line->watch = loop_fd_create(loop, fd, ready, line);
    loop_fd_watch(line->watch, LOOP_READ);
    return line;
}

/* The process that made the line; it is still ours to signal if it is our parent. */
static void wake_keeper(const struct keeper_line *line)
{
    struct ucred peer = {.pid = 0};
    socklen_t length = sizeof(peer);
    if (getsockopt(line->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 &&
        peer.pid == getppid())
        kill(peer.pid, SIGCONT);
}

void keeper_line_destroy(struct keeper_line *line)
{
    if (line == NULL)
        return;
    wake_keeper(line);
    loop_fd_destroy(line->watch);
    fd_close(&line->fd);
    free(line);
}

static void keeper_line_beat(struct keeper_line *line, int64_t silence_ms, int64_t grace_ms)
{
    if (line == NULL)
        return;
    struct keeper_beat beat = {silence_ms, grace_ms};
    /* One that does not fit need not be said: the keeper is stalled and has enough to read. */
    send(line->fd, &beat, sizeof(beat), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Until WELCOME says otherwise. */
#define NODE_TIMEOUT_MS 30000
#define GRACE_MS 5000

static void link_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    orders_frame(context, header, body);
}

static void link_closed(void *context, const char *reason)
{
    (void)reason;
    agent_end_driver_lost(context);
}

static void link_refused(void *context, const char *reason)
{
    orders_refused(context, reason);
}

/* The driver will see the end of the link, and not the reason. */
static void link_mute(void *context, const char *reason)
{
    (void)context;
    fprintf(stderr, "hvdrun-agent: %s\n", reason);
}

/* No process would clean up after us any longer, so we do it while we can. */
static void keeper_lost(void *context)
{
    agent_end_driver_lost(context);
}

static void link_drained(void *context)
{
    struct agent *agent = context;
    stream_pool_resume(&agent->pool);
}

/* What a worker has left running may still use them: then they go with the crew. */
static void leave_folders(void *context)
{
    struct agent *agent = context;
    if (crews_is_finished(agent->crews) && !reaper_has_children())
        crews_leave_folders(agent->crews);
}

static void crews_finished(void *context)
{
    struct agent *agent = context;
    agent_end_check(agent);
    loop_defer(agent->loop, leave_folders, agent); /* while the driver reads FINISHED */
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
    bool holds = agent->config->holder != NULL;
    if (driver > 0 && (holds ? kill(driver, 0) == 0 : getppid() == driver))
        liveness_heard(&agent->liveness, now); /* it may be stopped (a debugger), but it is there */
    if (liveness_wants_bytes(&agent->liveness, now) && link_has_come(agent->link))
        liveness_bytes_wait(&agent->liveness, now);
    if (liveness_tick(&agent->liveness, now) == LIVENESS_LOST) {
        agent_end_driver_silent(agent, liveness_silence_ms(&agent->liveness, now));
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
    if (crews_exited(agent->crews, exit))
        return;
    if (!helpers_has(agent->helpers, exit->pid))
        agent_parts_stranger(agent, exit);
    helpers_exited(agent->helpers, exit);
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
        agent->terminated = true;
        departure_sigterm(agent->departure, agent->config->term_grace_ms);
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

/* This program itself, if it is hvdrun-agent. */
static char *helper_program(const char *module_dir)
{
    return module_dir[0] == '\0' ? mem_strdup("/proc/self/exe")
                                 : mem_printf("%s/hvdrun-agent", module_dir);
}

static int agent_open(struct agent *agent, struct error *err)
{
    static const struct link_ops link_ops = {.frame = link_frame,
                                             .closed = link_closed,
                                             .drained = link_drained,
                                             .mute = link_mute,
                                             .refused = link_refused};
#define SIGNAL_WATCHED(name) name,
    static const int signals[] = {SIGCHLD, SIGNAL_PASSED_LIST(SIGNAL_WATCHED) 0};
    agent->loop = loop_create(err);
    if (agent->loop == NULL)
        return -1;
    if (open_link(agent, &link_ops, err) < 0)
        return -1;
    post_init(&agent->post, agent->link);
    agent->take = orders_take;
    agent->keeper = keeper_line_create(agent->loop, agent->config->keeper_fd, keeper_lost, agent);
    agent->reaper = reaper_create(child_exited, agent);
    agent->helpers = helpers_create();
    agent->signals = loop_signals_create(agent->loop, signals, got_signal, agent, err);
    if (agent->signals == NULL)
        return -1;
    agent->ending = agent_end_create(agent);
    agent->pool = (struct stream_pool){.loop = agent->loop, .post = &agent->post};
    TAILQ_INIT(&agent->pool.streams);
    liveness_init(&agent->liveness, LIVENESS_SUSPECT_MS, NODE_TIMEOUT_MS, clock_mono_ms());
    agent->tick = loop_timer_create(agent->loop, on_tick, agent);
    loop_timer_set(agent->tick, LIVENESS_PERIOD_MS);
    agent->facts = node_facts_read();
    agent->mpi = mpi_host_create(agent->loop, &agent->post);
    agent->modules = modules_create(agent->config->module_dir);
    agent->helper_program = helper_program(agent->config->module_dir);
    agent->gpus =
        gpu_sampler_create(agent->loop, agent->helpers, agent->helper_program, GPU_LIMITS_USUAL);
    agent->crews = crews_create(agent->loop, crews_finished, agent);
    agent->departure = departure_create(agent->loop, agent->helpers, &agent->post, agent->crews);
    agent_parts_open(agent);
    return 0;
}

/* What needs no PREPARE is made while the driver reads HELLO. */
static void make_ahead(struct agent *agent)
{
    struct error none = ERROR_INIT; /* the crew tries again, and says why it cannot */
    link_flush(agent->link);
    agent->folder = runtime_dir_create(&none);
}

static void agent_close(struct agent *agent)
{
    mpi_host_abandon(agent->mpi);
    crews_destroy(agent->crews);
    runtime_dir_destroy(agent->folder);
    mpi_host_destroy(agent->mpi);
    hello_destroy(agent->hello);
    departure_destroy(agent->departure);
    gpu_sampler_destroy(agent->gpus);
    agent_parts_close(agent);
    helpers_destroy(agent->helpers);
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
    free(agent->helper_program);
    free(agent->job_id);
}

int agent_run(const struct agent_config *config)
{
    struct agent agent = {.config = config, .grace_ms = GRACE_MS, .drain_ms = 2000};
    struct error err = ERROR_INIT;
    prctl(PR_SET_NAME, "hvdrun-agent");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child_ignore_signals();
    raise_descriptor_limit();
    if (agent_open(&agent, &err) == 0) {
        agent.hello = hello_create(agent.loop, agent.helpers, &agent.post, agent.facts, config);
        make_ahead(&agent);
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
    if (has_thread && config->holder == NULL) /* the exec of a holder ends it */
        _exit(agent.status);
    return agent.status;
}
