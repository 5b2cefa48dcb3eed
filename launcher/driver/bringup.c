/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/bringup.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/events.h"
#include "driver/exits.h"
#include "driver/teardown.h"
#include "output/terminal.h"
#include "wire/frame.h"

static bool node_waited_for(const struct job *job, const struct node_link *node)
{
    return node->state == NODE_STARTING || (node->state == NODE_UP && job->state == JOB_PREPARING);
}

static void start_limit_passed(void *context)
{
    struct job *job = context;
    AUTO_BUF struct buf text = BUF_INIT(ERROR_TEXT_MAX / 2);
    buf_printf(&text, "the job did not come up within %g s; not heard of:",
               (double)job->settings->start_timeout / 1000);
    for (int i = 0; i < job->plan->node_count; i++) {
        if (node_waited_for(job, &job->nodes[i]))
            buf_printf(&text, " %s (%s)", job->nodes[i].host, node_state_name(job->nodes[i].state));
    }
    buf_puts(&text, " (--start-timeout sets the limit)");
    teardown_launcher(job, STATUS_START_TIMEOUT, buf_text(&text));
}

void bringup_begin(struct job *job)
{
    job->start_limit = loop_timer_create(job->loop, start_limit_passed, job);
    loop_timer_set(job->start_limit, job->settings->start_timeout);
    events_job(job->events, "job_start");
}

/* false: the node's complaint has ended the job. */
static bool accept_problem(struct job *job, struct node_link *node, const char *problem,
                           uint32_t status, uint32_t rank)
{
    if (problem[0] == '\0')
        return true;
    AUTO_FREE char *text = mem_printf("%s: %s", node->host, problem);
    bool about_program = status == STATUS_NOT_FOUND || status == STATUS_NOT_EXECUTABLE;
    if (!about_program || !exits_rank_of(job, node, rank)) {
        teardown_launcher(job, status == 0 ? STATUS_LAUNCHER : (int)status, text);
        return false;
    }
    struct exit_event event = {.rank = (int)rank, .code = (int)status, .when_ns = clock_mono_ns()};
    rank_exited(&job->ranks, (int)rank, event.when_ns);
    job->ranks.records[rank].exec_failed = true;
    if (exit_policy_exec_failed(job->policy, &event, problem))
        teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
    return false;
}

void bringup_hello(struct job *job, struct node_link *node)
{
    Hvdrun__AgentHello *hello = node->hello;
    if (strcmp(hello->version, HVDRUN_VERSION) != 0) {
        AUTO_FREE char *text =
            mem_printf("%s runs hvdrun %s and this is %s; install the same version on both",
                       node->host, hello->version, HVDRUN_VERSION);
        teardown_launcher(job, STATUS_LAUNCHER, text);
        return;
    }
    Hvdrun__Welcome welcome = HVDRUN__WELCOME__INIT;
    welcome.protocol = FRAME_VERSION;
    welcome.version = (char *)HVDRUN_VERSION;
    welcome.job_id = (char *)job->request->job_id;
    welcome.node = (uint32_t)node->index;
    welcome.log_level = (uint32_t)job->log.level;
    welcome.node_timeout_ms = (uint32_t)node->liveness.lost_ms;
    welcome.grace_ms = (uint32_t)teardown_grace(job, GRACE_AFTER_FAILURE_MS);
    welcome.drain_ms = (uint32_t)job->settings->drain_timeout;
    node_link_send(node, FRAME_WELCOME, 0, &welcome.base);

    Hvdrun__Credit credit = HVDRUN__CREDIT__INIT;
    credit.bytes = node->credit.granted;
    node_link_send(node, FRAME_OUTPUT_CREDIT, 0, &credit.base);

    node->hello_ns = clock_mono_ns();
    events_node(job->events, "agent_up", node, NULL);
    log_info(&job->log, "%s: agent %u is up (%u CPUs allowed)", node->host, hello->pid,
             hello->cpus_allowed);
    if (node->state != NODE_UP ||
        !accept_problem(job, node, hello->problem, hello->status, UINT32_MAX))
        return;
    job->nodes_up++;
    job_advance(job);
}

/* The soft limits of the user's shell, which the agent gives to its workers. */
static size_t fill_limits(Hvdrun__Limit *limits, Hvdrun__Limit **pointers)
{
    static const int resources[] = {RLIMIT_CORE,      RLIMIT_DATA,  RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                                    RLIMIT_NOFILE,    RLIMIT_STACK, RLIMIT_AS,    RLIMIT_CPU,
                                    RLIMIT_NPROC,     RLIMIT_RSS,   RLIMIT_NICE,  RLIMIT_RTPRIO,
                                    RLIMIT_SIGPENDING};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resources[i], &limit) < 0)
            continue;
        limits[count] = (Hvdrun__Limit)HVDRUN__LIMIT__INIT;
        limits[count].resource = (uint32_t)resources[i];
        limits[count].soft = (uint64_t)limit.rlim_cur;
        pointers[count] = &limits[count];
        count++;
    }
    return count;
}

#define LIMITS_MAX 16

/* What PREPARE says to every node alike; the arrays live as long as this struct. */
struct prepare_parts {
    Hvdrun__Limit limits[LIMITS_MAX];
    Hvdrun__Limit *limit_pointers[LIMITS_MAX];
    Hvdrun__App *apps;
    Hvdrun__App **app_pointers;
    struct strv *envs; /* by app: the user's -x, then the app's own */
    size_t app_count;
    char **hosts;
    uint32_t *host_ranks;
    Hvdrun__Worker *workers; /* of all nodes, by rank */
    Hvdrun__Worker **worker_pointers;
    uint32_t *stdin_ranks;
    size_t stdin_count;
    char *interfaces;
};

static void fill_apps(const struct job *job, struct prepare_parts *parts)
{
    const struct app_list *apps = job->request->apps;
    parts->apps = mem_array(apps->count, sizeof(*parts->apps));
    parts->envs = mem_array(apps->count, sizeof(*parts->envs));
    parts->app_count = apps->count;
    parts->app_pointers = mem_array(apps->count, sizeof(Hvdrun__App *));
    for (size_t i = 0; i < apps->count; i++) {
        const struct app *app = &apps->items[i];
        Hvdrun__App *message = parts->app_pointers[i] = &parts->apps[i];
        *message = (Hvdrun__App)HVDRUN__APP__INIT;
        message->argv = app->argv.items;
        message->n_argv = app->argv.count;
        struct strv *env = &parts->envs[i];
        strv_copy(env, job->settings->env.items);
        for (size_t j = 0; j < app->env.count; j++)
            strv_env_put(env, app->env.items[j]);
        message->env = env->items;
        message->n_env = env->count;
        message->wdir = app->wdir == NULL ? (char *)"" : app->wdir;
        message->mpi = (char *)mpi_kind_name((enum mpi_kind)job->settings->mpi);
    }
    for (int rank = 0; rank < job->plan->size; rank++)
        parts->apps[job->plan->ranks[rank].app].np++;
}

static void fill_workers(const struct job *job, struct prepare_parts *parts)
{
    size_t size = (size_t)job->plan->size;
    parts->workers = mem_array(size, sizeof(*parts->workers));
    parts->worker_pointers = mem_array(size, sizeof(Hvdrun__Worker *));
    for (size_t i = 0; i < size; i++) {
        const struct plan_rank *rank = &job->plan->ranks[i];
        Hvdrun__Worker *message = parts->worker_pointers[i] = &parts->workers[i];
        *message = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
        message->rank = (uint32_t)rank->rank;
        message->app = (uint32_t)rank->app;
        message->app_rank = (uint32_t)rank->app_rank;
        message->cross_rank = (uint32_t)rank->cross_rank;
        message->cross_size = (uint32_t)rank->cross_size;
    }
}

static void fill_hosts(const struct job *job, struct prepare_parts *parts)
{
    size_t count = (size_t)job->plan->node_count;
    parts->hosts = mem_array(count, sizeof(char *));
    parts->host_ranks = mem_array(count, sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        parts->hosts[i] = job->plan->nodes[i].name;
        parts->host_ranks[i] = (uint32_t)job->plan->nodes[i].local_size;
    }
}

static void fill_stdin(const struct job *job, struct prepare_parts *parts)
{
    size_t size = (size_t)job->plan->size;
    int64_t wanted = job_stdin_rank(job);
    parts->stdin_ranks = mem_array(size, sizeof(uint32_t));
    for (size_t rank = 0; rank < size; rank++) {
        if (wanted == SET_RANK_ALL || wanted == (int64_t)rank)
            parts->stdin_ranks[parts->stdin_count++] = (uint32_t)rank;
    }
}

static void prepare_parts_fill(const struct job *job, struct prepare_parts *parts)
{
    fill_apps(job, parts);
    fill_workers(job, parts);
    fill_hosts(job, parts);
    fill_stdin(job, parts);
    AUTO_BUF struct buf interfaces = BUF_INIT(4096);
    const struct strv *names = &job->settings->network_interfaces;
    for (size_t i = 0; i < names->count; i++)
        buf_printf(&interfaces, "%s%s", i > 0 ? "," : "", names->items[i]);
    parts->interfaces = mem_strdup(buf_text(&interfaces));
}

static void prepare_parts_free(struct prepare_parts *parts)
{
    for (size_t i = 0; i < parts->app_count; i++)
        strv_destroy(&parts->envs[i]);
    free(parts->envs);
    free(parts->apps);
    free(parts->app_pointers);
    free(parts->hosts);
    free(parts->host_ranks);
    free(parts->workers);
    free(parts->worker_pointers);
    free(parts->stdin_ranks);
    free(parts->interfaces);
}

/* The part of the rank-ordered list that belongs to ranks [first, first + count). */
static uint32_t *stdin_slice(const struct prepare_parts *parts, int first, int count, size_t *slice)
{
    size_t start = 0;
    while (start < parts->stdin_count && parts->stdin_ranks[start] < (uint32_t)first)
        start++;
    size_t end = start;
    while (end < parts->stdin_count && parts->stdin_ranks[end] < (uint32_t)(first + count))
        end++;
    *slice = end - start;
    return parts->stdin_ranks + start;
}

static void send_prepare(struct job *job, struct node_link *node, struct prepare_parts *parts)
{
    const struct settings *settings = job->settings;
    const struct plan_node *place = &job->plan->nodes[node->index];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    message.size = (uint32_t)job->plan->size;
    message.node_index = (uint32_t)node->index;
    message.host = place->name;
    message.hosts = parts->hosts;
    message.n_hosts = (size_t)job->plan->node_count;
    message.host_ranks = parts->host_ranks;
    message.n_host_ranks = (size_t)job->plan->node_count;
    message.apps = parts->app_pointers;
    message.n_apps = job->request->apps->count;
    message.workers = parts->worker_pointers + place->first_rank;
    message.n_workers = (size_t)place->local_size;
    message.base_env = job->request->base_env->items;
    message.n_base_env = job->request->base_env->count;
    message.knobs = job->request->knobs->items;
    message.n_knobs = job->request->knobs->count;
    message.wdir = settings->wdir == NULL ? (char *)"" : settings->wdir;
    message.limits = parts->limit_pointers;
    message.n_limits = fill_limits(parts->limits, parts->limit_pointers);
    message.mpi_controller = settings->controller == SET_CONTROLLER_MPI;
    message.wants_master = job->plan->ranks[0].node == node->index;
    message.master_port = (uint32_t)settings->master_port;
    message.hold_port = settings->port_hold;
    message.interfaces = parts->interfaces;
    message.bind = (uint32_t)settings->bind_to;
    message.report_bindings = settings->report_bindings;
    message.pty_rank = settings->pty >= 0 ? (int32_t)settings->pty : -1;
    message.stdin_ranks =
        stdin_slice(parts, place->first_rank, place->local_size, &message.n_stdin_ranks);
    message.merge_stderr = settings->merge_stderr;
    terminal_size(&message.terminal_rows, &message.terminal_columns);
    node_link_send(node, FRAME_PREPARE, job->epoch, &message.base);
}

static void prepare_all(struct job *job)
{
    struct prepare_parts parts = {.stdin_count = 0};
    prepare_parts_fill(job, &parts);
    job->state = JOB_PREPARING;
    for (int i = 0; i < job->plan->node_count; i++)
        send_prepare(job, &job->nodes[i], &parts);
    prepare_parts_free(&parts);
}

static void print_lines(const struct job *job, const struct node_link *node, char *const *lines,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        log_notice(&job->log, "%s: %s", node->host, lines[i]);
}

void bringup_ready(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, length, body);
    bool expected = node->state == NODE_UP || node->state == NODE_ENDING;
    if (ready == NULL || !expected) {
        node_link_give_up(node, "its agent answered out of turn");
        if (ready != NULL)
            hvdrun__ready__free_unpacked(ready, NULL);
        return;
    }
    node->ready_ns = clock_mono_ns();
    if (ready->master_port != 0) {
        job->master_port = ready->master_port;
        job->jax_port = ready->jax_port;
    }
    for (size_t i = 0; i < ready->n_mpi; i++)
        log_info(&job->log, "%s: %s", node->host, ready->mpi[i]);
    print_lines(job, node, ready->bindings, ready->n_bindings);
    if (node->state == NODE_UP &&
        accept_problem(job, node, ready->problem, ready->status, ready->rank)) {
        node->state = NODE_READY;
        job->nodes_ready++;
        job_advance(job);
    }
    hvdrun__ready__free_unpacked(ready, NULL);
}

static void start_all(struct job *job)
{
    Hvdrun__Start message = HVDRUN__START__INIT;
    message.master_addr = job->master_addr;
    message.master_port = job->master_port;
    message.jax_port = job->jax_port;
    job->state = JOB_RUNNING;
    job->started_ns = clock_mono_ns();
    loop_timer_clear(job->start_limit);
    for (int i = 0; i < job->plan->node_count; i++) {
        job->nodes[i].state = NODE_RUNNING;
        node_link_send(&job->nodes[i], FRAME_START, job->epoch, &message.base);
    }
    events_job(job->events, "job_running");
    if (job->settings->timeout > 0)
        loop_timer_set(job->time_limit, job->settings->timeout);
}

void bringup_advance(struct job *job)
{
    if (job->state == JOB_CONNECTING && job->nodes_up == job->plan->node_count)
        prepare_all(job);
    else if (job->state == JOB_PREPARING && job->nodes_ready == job->plan->node_count)
        start_all(job);
}
