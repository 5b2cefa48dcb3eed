/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun check`: a job without workers. It calls all hosts as a job does, asks each agent for the
 * facts of its host, and lets the agents connect to each other. Then it judges and prints the
 * results, and the agents quit.
 *
 *   phase     all answered or failed   all listen   all tried       last round   user's end
 *   LOOKING   OPENING                                                            OVER
 *   OPENING                            TRYING                                    OVER
 *   TRYING                                          SENDING, GPUS                OVER
 *   SENDING                                                         GPUS         OVER
 *   GPUS      BETWEEN                                                            OVER
 *   BETWEEN   OVER                                                               OVER
 * With fewer than two hosts there are no connections to try, and LOOKING goes to GPUS. SENDING
 * happens only with --net, GPUS and BETWEEN only with --gpu: else it is OVER at once. A host that
 * fails in any phase is reported with its stage; the others go on. Each phase has a time limit.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/reach/call_progress.h"
#include "driver/reach/reach.h"
#include "driver/run/run.h"
#include "driver/start/start.h"
#include "driver/tell/events.h"
#include "features/check/check.h"
#include "features/check/check_steps_driver.h"
#include "output/output.h"

#define NODE_TIMEOUT_MS 30000 /* as for a static job */
#define ANSWER_MS 10000       /* for a node's facts: a file system there may hang */
#define REPORT_MAX ((size_t)1 << 30)

struct check_job {
    struct job *job;
    const struct check_request *request;
    struct check_result result;
    struct check_findings findings;
    bool *done; /* by number of the host, which is that of its node: it has answered or failed */
    int open;   /* hosts that have neither answered nor failed */
    struct loop_timer *start_limit;
    struct check_probe *probe;     /* NULL: still looking */
    struct check_between *between; /* NULL: not yet */
    bool over;
};

const char check_feature[] = "hvdrun check, which checks the hosts before a job does";

static struct check_job *of(const struct job *job)
{
    return job->kind_data;
}

static bool is_ending(const struct check_job *check)
{
    return check->over || check->job->state >= JOB_ENDING;
}

static void finish(void *context)
{
    struct check_job *check = context;
    if (is_ending(check))
        return;
    check->over = true;
    loop_timer_clear(check->start_limit);
    teardown_begin(check->job, SIGTERM, 0);
}

static void tested(void *context, const struct ask *ask)
{
    struct check_job *check = context;
    check_gpus_take(&check->result, ask);
    if (is_ending(check))
        return;
    check->between =
        check_between_begin(check->job, &check->result, check->request->python, finish, check);
}

static void connected(void *context)
{
    struct check_job *check = context;
    if (is_ending(check))
        return;
    if (check->request->gpu)
        check_gpus_ask(check->job, &check->result, check->request->python, tested, check);
    else
        finish(check);
}

/* All hosts that can be asked have answered. */
static void looked(struct check_job *check)
{
    call_progress_end(check->job);
    loop_timer_clear(check->start_limit);
    check->probe =
        check_probe_begin(check->job, &check->result, check->request->net, connected, check);
}

static void settle(struct check_job *check, int host)
{
    if (check->done[host])
        return;
    check->done[host] = true;
    check->open--;
    if (check->open == 0 && !is_ending(check))
        looked(check);
}

/* Only the first reason is kept. */
static void fail(struct check_job *check, int number, const char *stage, const char *why)
{
    struct check_host *host = &check->result.hosts[number];
    if (host->why == NULL) {
        host->stage = mem_strdup(stage);
        host->why = mem_strdup(why);
    }
    if (check->probe != NULL && !is_ending(check))
        check_probe_host_failed(check->probe, number);
    settle(check, number);
}

/* The facts that the host has sent are kept. */
static void give_up(struct check_job *check, struct node_link *node, const char *stage,
                    const char *why)
{
    fail(check, node->index, stage, why);
    node_link_give_up(node, why);
}

/* Time limits */

static void facts_are_over(void *context, const struct ask *ask)
{
    struct check_job *check = context;
    struct node_link *node = ask->answers[0].node;
    char why[160];
    if (check->done[node->index] || is_ending(check))
        return;
    snprintf(why, sizeof(why),
             "its agent started but did not answer within %d s: most likely a file system hangs "
             "there (/tmp, /dev/shm, or the one with its libraries)",
             ANSWER_MS / 1000);
    give_up(check, node, "agent", why);
}

static void start_limit_passed(void *context)
{
    struct check_job *check = context;
    struct job *job = check->job;
    char why[96];
    snprintf(why, sizeof(why), "no answer within %g s (--start-timeout sets the limit)",
             (double)job->settings->start_timeout / 1000);
    for (int i = 0; i < check->result.count; i++) {
        struct node_link *node = job->nodes[i];
        if (check->done[i] || node->hello != NULL)
            continue;
        node_link_unreached(node);
        reach_hang_up(job, node);
        fail(check, i, transport_stage_name(node->stage), why);
    }
}

/* Nodes */

static void unreached(struct job *job, struct node_link *node, const char *why)
{
    fail(of(job), node->index, transport_stage_name(node->stage), why);
}

static void lost(struct job *job, struct node_link *node, const char *why)
{
    if (!is_ending(of(job)))
        fail(of(job), node->index, node->hello == NULL ? "agent" : "lost", why);
}

static void note(struct job *job, const struct node_link *node, const char *line)
{
    struct check_host *host = &of(job)->result.hosts[node->index];
    const char *key = strstr(line, "host key ");
    if (host->login == NULL && key != NULL && strstr(key, "SHA256:") != NULL)
        host->login = mem_strdup(line);
}

/* The heartbeats tell how far apart the monotonic clocks are, and the first of them is older than
 * this answer. */
static void compare_clocks(struct check_host *host, const struct node_link *node)
{
    int64_t error = node_link_uncertainty(node);
    host->clock_known = error < CLOCK_UNKNOWN;
    host->clock_error_ns = error;
    check_host_clock(host, clock_wall_ns() - clock_mono_ns(),
                     node->same_clock ? 0 : node->clock.offset_ns);
}

static int take_facts(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct check_job *check = of(job);
    struct check_host *host = &check->result.hosts[node->index];
    if (is_ending(check))
        return 0;
    host->facts = (Hvdrun__Facts *)*answer;
    *answer = NULL;
    compare_clocks(host, node);
    settle(check, node->index);
    return 0;
}

static void hello(struct job *job, struct node_link *node)
{
    static const struct question question = {&topic_facts, take_facts, .keep = false};
    struct check_job *check = of(job);
    struct check_host *host = &check->result.hosts[node->index];
    char *problem AUTO_FREE = handshake_problem(node);
    host->hello = node->hello;
    host->peer = node->stream.peer;
    host->is_here = node->stream.same_machine;
    if (problem != NULL) {
        give_up(check, node, "agent", problem);
        return;
    }
    handshake_welcome(job, node);
    job->nodes_up++;
    if (node->state == NODE_UP && !is_ending(check) && !check->done[node->index])
        ask_node(ask_begin(job, &question, ANSWER_MS, facts_are_over, check), node, NULL);
}

/* Start and end of the check */

static uint64_t soft_limit(__rlimit_resource_t resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

static int create(struct job *job, struct error *err)
{
    (void)err;
    struct check_job *check = mem_alloc(sizeof(*check));
    job->kind_data = check;
    const struct host_list *hosts = job->request->hosts;
    *check = (struct check_job){.job = job, .request = job->request->check};
    check->result =
        (struct check_result){.count = (int)hosts->count,
                              .hosts = mem_array(hosts->count, sizeof(struct check_host)),
                              .simulated = job->settings->transport == SET_TRANSPORT_LOCAL,
                              .needs_pmix = job->settings->mpi == MPI_PMIX,
                              .net = check->request->net,
                              .gpu = check->request->gpu,
                              .nofile = job->open_files,
                              .nproc = soft_limit(RLIMIT_NPROC),
                              .memlock = soft_limit(RLIMIT_MEMLOCK)};
    check->done = mem_array(hosts->count, sizeof(*check->done));
    check->open = check->result.count;
    check->start_limit = loop_timer_create(job->loop, start_limit_passed, check);
    return 0;
}

static void begin(struct job *job)
{
    struct check_job *check = of(job);
    struct error err = ERROR_INIT;
    const struct host_list *hosts = job->request->hosts;
    for (int i = 0; i < check->result.count; i++) {
        struct node_link *node = job_add_node(job, hosts->items[i].name);
        check->result.hosts[i].name = node->host;
        check->result.hosts[i].peer = "";
        reach_add_node(job, node, &hosts->items[i].traits);
    }
    for (int i = 0; i < check->result.count; i++) {
        job_open_node(job, job->nodes[i]);
        if (job_connect_node(job, job->nodes[i], &err) < 0)
            fail(check, i, "agent", err.text);
    }
    job->times.opened_ns = clock_mono_ns();
    events_job(job, "job_start");
    loop_timer_set(check->start_limit, job->settings->start_timeout);
    if (reach_begin(job, &err) < 0)
        teardown_launcher(job, err.status, err.text);
}

static void destroy(struct job *job)
{
    struct check_job *check = of(job);
    if (check == NULL)
        return;
    check_probe_destroy(check->probe);
    check_between_destroy(check->between);
    ask_forget(job, check);
    loop_timer_destroy(check->start_limit);
    check_findings_clear(&check->findings);
    check_result_clear(&check->result);
    free(check->done);
    free(check);
}

/* Hosts that had not answered when the check ended. */
static void name_unheard(struct check_job *check)
{
    for (int i = 0; i < check->result.count; i++) {
        struct check_host *host = &check->result.hosts[i];
        if (host->why != NULL || check->done[i])
            continue;
        bool up = host->hello != NULL;
        host->stage = mem_strdup(up ? "agent" : transport_stage_name(check->job->nodes[i]->stage));
        host->why = mem_strdup("no answer before the check ended");
    }
}

static void over(struct job *job)
{
    struct check_job *check = of(job);
    name_unheard(check);
    check_judge(&check->result, &check->findings);
    for (size_t i = 0; i < check->findings.count; i++) {
        const struct check_finding *finding = &check->findings.items[i];
        if (finding->bad)
            PARTS_TELL(job, host_bad, job->nodes[finding->host], HOST_BAD_CHECKED, finding->text);
    }
}

static void verdict(const struct job *job, struct verdict *out)
{
    int signal = job->outside.interrupted.signal;
    if (job->outside.launcher.status != 0) { /* nothing could be checked */
        exit_outside_blame_launcher(&job->outside, out);
        return;
    }
    verdict_set(out, 0, CAUSE_NONE, NULL);
    if (signal != 0) {
        exit_outside_blame_interruption(&job->outside, out);
        if (signal == SIGPIPE)
            out->explanation[0] = '\0';
    } else if (check_findings_count(&of(job)->findings, true) > 0) {
        out->status = STATUS_LAUNCHER;
    }
}

/* The findings say what is wrong: the failure block of a job has nothing to add. */
static void print(const struct job *job)
{
    const struct check_job *check = of(job);
    AUTO_BUF struct buf text = BUF_INIT(REPORT_MAX);
    if (job->outside.launcher.status != 0 || job->gone)
        return;
    if (check->request->json)
        check_json(&check->result, &check->findings, job->verdict.status, &text);
    else
        check_text(&check->result, &check->findings, job->settings->quiet, &text);
    if (text.length == 0)
        return;
    char *plain AUTO_FREE = buf_take(&text);
    plain_text(plain); /* much of it is from hosts */
    output_print(job->output, plain);
}

static const struct frame_rule frames[FRAME_TYPES] = {
    [FRAME_TERMINATE] = {user_signals_terminate, NULL, EPOCHS_ALL, NODE_STARTING, false},
};

extern const struct job_kind check_kind; /* driver/parts.c names it */

const struct job_kind check_kind = {
    .node_timeout_ms = NODE_TIMEOUT_MS,
    .frames = frames,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .over = over,
    .verdict = verdict,
    .print = print,
    .hello = hello,
    .unreached = unreached,
    .note = note,
    .lost = lost,
};
