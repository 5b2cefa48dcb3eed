/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/bringup.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/elastic/elastic_part.h"
#include "driver/end/teardown.h"
#include "driver/reach/progress.h"
#include "driver/reach/reach.h"
#include "driver/run/exits.h"
#include "driver/start/late_plan.h"
#include "driver/start/prepare.h"
#include "driver/tell/events.h"
#include "wire/frame.h"

static void start_limit_passed(void *context)
{
    struct job *job = context;
    AUTO_BUF struct buf text = BUF_INIT(ERROR_TEXT_MAX / 2);
    buf_printf(
        &text,
        "the job did not come up within %g s (--start-timeout sets the limit); not heard of:",
        (double)job->settings->start_timeout / 1000);
    reach_describe_missing(job, &text);
    teardown_launcher(job, STATUS_START_TIMEOUT, buf_text(&text));
}

void bringup_begin(struct job *job)
{
    job->start_limit = loop_timer_create(job->loop, start_limit_passed, job);
    loop_timer_set(job->start_limit, job->settings->start_timeout);
    events_job(job->events, "job_start");
    reach_begin(job->reach);
}

static bool is_about_program(uint32_t status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_NOT_EXECUTABLE;
}

/* false: the node's complaint has ended the job. */
static bool accept_problem(struct job *job, struct node_link *node, const char *problem,
                           uint32_t status, uint32_t rank)
{
    if (problem[0] == '\0')
        return true;
    AUTO_FREE char *text = mem_printf("%s: %s", node->host, problem);
    if (!is_about_program(status) || !exits_seat_of(job, node, rank)) {
        teardown_launcher(job, status == 0 ? STATUS_LAUNCHER : (int)status, text);
        return false;
    }
    /* For the verdict it counts from a time that is earlier than our kill whatever error the node's
     * clock is measured with. */
    struct exit_event event = {.rank = (int)rank, .code = (int)status, .when_ns = node->hello_ns};
    rank_exited(&job->ranks, (int)rank, clock_mono_ns());
    job->ranks.records[rank].exec_failed = true;
    if (exit_policy_exec_failed(job->policy, &event, problem))
        teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
    return false;
}

char *bringup_version_problem(const struct node_link *node)
{
    if (strcmp(node->hello->version, HVDRUN_VERSION) == 0)
        return NULL;
    return mem_printf("%s runs hvdrun %s and this is %s; install the same version on both",
                      node->host, node->hello->version, HVDRUN_VERSION);
}

void bringup_welcome(struct job *job, struct node_link *node)
{
    Hvdrun__Welcome welcome = HVDRUN__WELCOME__INIT;
    welcome.protocol = FRAME_VERSION;
    welcome.version = (char *)HVDRUN_VERSION;
    welcome.job_id = (char *)job->request->job_id;
    welcome.node = (uint32_t)node->index;
    welcome.log_level = (uint32_t)job->log.level;
    welcome.node_timeout_ms = (uint32_t)node->liveness.lost_ms;
    welcome.grace_ms = (uint32_t)teardown_grace(job, GRACE_AFTER_FAILURE_MS);
    welcome.drain_ms = (uint32_t)job->settings->drain_timeout;
    if (job->elastic != NULL) {
        const struct strv *probe = elastic_part_probe(job->elastic);
        welcome.preempt_probe = probe->items;
        welcome.n_preempt_probe = probe->count;
        welcome.preempt_period_ms = (uint32_t)job->settings->preempt_period;
    }
    node_link_send(node, FRAME_WELCOME, 0, &welcome.base);

    Hvdrun__Credit credit = HVDRUN__CREDIT__INIT;
    credit.bytes = node->credit.granted;
    node_link_send(node, FRAME_OUTPUT_CREDIT, 0, &credit.base);

    node->hello_ns = clock_mono_ns();
    events_node(job->events, "agent_up", node, NULL);
    log_info(&job->log, "%s: agent %u is up (%u CPUs allowed)", node->host, node->hello->pid,
             node->hello->cpus_allowed);
}

void bringup_hello(struct job *job, struct node_link *node)
{
    const Hvdrun__AgentHello *hello = node->hello;
    AUTO_FREE char *problem = bringup_version_problem(node);
    if (problem != NULL) {
        teardown_launcher(job, STATUS_LAUNCHER, problem);
        return;
    }
    bringup_welcome(job, node);
    if (node->state != NODE_UP ||
        !accept_problem(job, node, hello->problem, hello->status, UINT32_MAX))
        return;
    job->nodes_up++;
    reach_node_up(job->reach, node);
    job_advance(job);
}

static void print_lines(const struct job *job, const struct node_link *node, char *const *lines,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        log_notice(&job->log, "%s: %s", node->host, lines[i]);
}

void bringup_take_ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *ready)
{
    if (ready->master_port != 0 && job->master_addr == NULL) {
        job->master_port = ready->master_port;
        job->jax_port = ready->jax_port;
        job->master_addr = mem_strdup(ready->address[0] != '\0' ? ready->address : "127.0.0.1");
    }
    if (ready->interface[0] != '\0')
        log_info(&job->log, "%s: workers use %s (%s)", node->host, ready->interface,
                 ready->address);
    for (size_t i = 0; i < ready->n_mpi; i++)
        log_info(&job->log, "%s: %s", node->host, ready->mpi[i]);
    print_lines(job, node, ready->bindings, ready->n_bindings);
}

void bringup_ready(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, length, body);
    bool prepared = node->state == NODE_UP && job->state == JOB_PREPARING;
    bool expected = prepared || node->state == NODE_ENDING;
    if (ready == NULL || !expected) {
        node_link_give_up(node, "its agent answered out of turn");
        if (ready != NULL)
            hvdrun__ready__free_unpacked(ready, NULL);
        return;
    }
    node->ready_ns = clock_mono_ns();
    bringup_take_ready(job, node, ready);
    /* The first complaint ends the job; the user wants to read those of the other hosts too. */
    if (node->state == NODE_ENDING && ready->problem[0] != '\0' && !is_about_program(ready->status))
        log_error(&job->log, "%s: %s", node->host, ready->problem);
    if (node->state == NODE_UP &&
        accept_problem(job, node, ready->problem, ready->status, ready->rank)) {
        node->state = NODE_READY;
        job->nodes_ready++;
        job_advance(job);
    }
    hvdrun__ready__free_unpacked(ready, NULL);
}

void bringup_send_start(const struct job *job, struct node_link *node)
{
    Hvdrun__Start message = HVDRUN__START__INIT;
    message.master_addr = job->master_addr == NULL ? (char *)"127.0.0.1" : job->master_addr;
    message.master_port = job->master_port;
    message.jax_port = job->jax_port;
    node->state = NODE_RUNNING;
    node_link_send(node, FRAME_START, job->epoch, &message.base);
}

static void start_all(struct job *job)
{
    job->state = JOB_RUNNING;
    progress_end(job->progress);
    job->started_ns = clock_mono_ns();
    loop_timer_clear(job->start_limit);
    for (int i = 0; i < job->plan->node_count; i++)
        bringup_send_start(job, job->places[i]);
    events_job(job->events, "job_running");
    if (job->settings->timeout > 0)
        loop_timer_set(job->time_limit, job->settings->timeout);
}

void bringup_advance(struct job *job)
{
    static const struct prepare_epoch all = {.restart_count = 0};
    if (job->state == JOB_CONNECTING && job->nodes_up == job->node_count) {
        if (late_plan_take(job) && prepare_send(job, &all))
            job->state = JOB_PREPARING;
    } else if (job->state == JOB_PREPARING && job->nodes_ready == job->plan->node_count) {
        start_all(job);
    }
}
