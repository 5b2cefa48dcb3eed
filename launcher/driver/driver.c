/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/check/check.h"
#include "driver/elastic/elastic_kind.h"
#include "driver/end/orphans.h"
#include "driver/end/requeue.h"
#include "driver/end/teardown.h"
#include "driver/end/verdict.h"
#include "driver/end/warning.h"
#include "driver/frames.h"
#include "driver/job/ask.h"
#include "driver/job/job_nodes.h"
#include "driver/job_control.h"
#include "driver/mpi/job_mpi.h"
#include "driver/reach/call_progress.h"
#include "driver/reach/reach.h"
#include "driver/run/collect.h"
#include "driver/run/evidence_folder.h"
#include "driver/run/hang_watch.h"
#include "driver/run/job_lines.h"
#include "driver/run/job_output.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/stdin_feed.h"
#include "driver/run/straggler_watch.h"
#include "driver/run/suspension.h"
#include "driver/run/time_limit.h"
#include "driver/run/user_signals.h"
#include "driver/serve/metrics_out.h"
#include "driver/serve/page_file.h"
#include "driver/start/static_kind.h"
#include "driver/tell/events.h"
#include "driver/tell/line_log.h"
#include "driver/tell/rank_progress.h"
#include "driver/tell/rank_tails.h"
#include "driver/tell/recent.h"
#include "driver/tell/report.h"
#include "driver/usage/sampler.h"
#include "io/child.h"
#include "io/helpers.h"
#include "node/runtime_dir.h"
#include "output/terminal.h"
#include "stacks/tree.h"

#define CLOSE_WAIT_MS 5000   /* for agents to exit after QUIT */
#define ORPHANS_WAIT_MS 5000 /* for killing the processes of dead agents */
#define OUTPUT_WAIT_MS 2000  /* for a stuck sink at the very end */

static void node_frame(void *context, struct node_link *node, const struct frame_header *header,
                       const uint8_t *body)
{
    struct job *job = context;
    if (frames_take(job, node, header, body) < 0)
        node_link_give_up(node, "its agent broke the protocol");
    job_control_look(job->control);
}

/* Whatever else holds data about the node goes first, then the kind of job decides. */
static void node_lost(struct job *job, struct node_link *node, const char *why)
{
    events_node(job->events, "node_lost", node, why);
    job_rendezvous_node_lost(job->rendezvous, node);
    job_mpi_node_lost(job->mpi, node);
    job_lines_node_lost(job->lines, node);
    if (node->stream.same_machine) {
        job->lost_here = true;
        if (node->stream.pid > 0)
            kill(node->stream.pid, SIGKILL); /* it may hang */
        orphans_sweep(job->orphans);
    }
    reach_hang_up(job->reach, node);
    kind_lost(job, node, why);
}

static void node_closed(void *context, struct node_link *node, const char *why)
{
    struct job *job = context;
    ask_node_closed(job, node);
    if (node->state == NODE_LOST)
        node_lost(job, node, why);
    else
        kind_gone(job, node);
    job_advance(job);
}

static void node_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    struct job *job = context;
    if (silent)
        log_warning(&job->log, "%s: no heartbeat for %.1f s; after %.0f s the host counts as lost",
                    node->host, (double)silence_ms / 1000, (double)node->liveness.lost_ms / 1000);
    else
        log_notice(&job->log, "%s: answers again", node->host);
    events_node(job->events, silent ? "node_suspect" : "node_heard", node, NULL);
}

static void output_written(void *context)
{
    struct job *job = context;
    job->state = JOB_DONE;
    loop_stop(job->loop);
}

static void close_agents(struct job *job)
{
    job->state = JOB_CLOSING;
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (!node_link_alive(node))
            continue;
        node->state = NODE_CLOSING;
        node_link_send(node, FRAME_QUIT, job->epoch, NULL);
    }
    teardown_expect_quit(job, CLOSE_WAIT_MS);
}

/* The verdict is made when nothing more can happen and all output has arrived. */
static void finish(struct job *job)
{
    teardown_over(job);
    job->state = JOB_FLUSHING;
    reach_close(job->reach);
    warning_close(job->warning);
    kind_over(job);
    if (!orphans_end(job->orphans, ORPHANS_WAIT_MS))
        log_error(&job->log, "could not kill some processes of the job");
    if (job->lost_here)
        runtime_dir_sweep(); /* an agent may have died before it could name its folders */
    job->ended_ns = clock_mono_ns();
    verdict_make(job);
    output_flush(job->output, output_written, job);
}

static bool has_ended(const struct node_link *node)
{
    return node->state >= NODE_ENDED;
}

static bool has_closed(const struct node_link *node)
{
    return !node_link_alive(node);
}

static void advance(struct job *job)
{
    kind_advance(job);
    if (job->state == JOB_ENDING && job_all_nodes(job, has_ended))
        close_agents(job);
    if (job->state == JOB_CLOSING && job_all_nodes(job, has_closed) &&
        !warning_is_asking(job->warning) && reach_end(job->reach))
        finish(job);
}

static void ending(struct job *job)
{
    kind_ending(job);
    hang_watch_ending(job->hang_watch);
    time_limit_stop(job->time_limit);
    stdin_feed_stop(job->stdin_feed);
    reach_stop(job->reach);
}

/* Agents exit roughly in the order of the QUIT messages, so the search starts behind the last
 * one found. */
static void agent_reaped(struct job *job, const struct reaper_exit *exit)
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

static void reaped(void *context, const struct reaper_exit *exit)
{
    struct job *job = context;
    helpers_exited(job->helpers, exit); /* first: the transport can explain the end */
    agent_reaped(job, exit);
    log_debug(&job->log, "process %d has ended (wait status %#x)", (int)exit->pid,
              (unsigned)exit->wait_status);
}

/* In the order in which the parts need each other. The kind of the job needs all of them. */
static int job_open(struct job *job, struct error *err)
{
    job->loop = loop_create(err);
    if (job->loop == NULL)
        return -1;
    job->reaper = reaper_create(reaped, job);
    job->helpers = helpers_create();
    job->collect = collect_create();
    rank_table_init(&job->ranks, job->plan->size);
    credit_budget_init(&job->budget, CREDIT_BUDGET);
    job->teardown = teardown_create(job);
    job->orphans = orphans_create(job);
    job->asks = asks_create();
    if (job->kind->has_workers)
        evidence_folder_create(job, job_control_evidence_place);
    job->time_limit = time_limit_create(job);
    job->straggler_watch = straggler_watch_create(job);
    job->suspension = suspension_create(job);
    job->sampler = sampler_create(job);
    job->warning = warning_create(job, user_signals_end, err);
    job->signals = job->warning == NULL ? NULL : user_signals_create(job, err);
    if (job->signals == NULL || job_open_output(job, err) < 0)
        return -1;
    if (job->kind->has_workers && stdin_feed_check(job, err) < 0)
        return -1;
    if (events_open(job, err) < 0 || hang_watch_open(job, err) < 0)
        return -1;
    job->rendezvous = job_rendezvous_create(job);
    job->mpi = job_mpi_create(job);
    job->lines = job_lines_create(job);
    job->progress_list = progress_list_create();
    job->call_progress = call_progress_create(job);
    job->reach = reach_create(job);
    if (job->settings->pty >= 0 && job_stdin_rank(job) == job->settings->pty)
        job->terminal = terminal_raw();
    if (job->kind->has_workers)
        job->control = job_control_create(job);
    if (job->kind->has_workers && metrics_out_open(job, err) < 0)
        return -1;
    return kind_create(job, err);
}

static void write_file(struct job *job, const char *path, char *text)
{
    struct output_file *file = output_file_open(job->output, path, false);
    output_file_write(file, text, strlen(text));
    output_file_close(file);
    free(text);
}

/* After the output of the ranks: report, events, and the failure block. */
static void tell(struct job *job)
{
    AUTO_BUF struct buf block = BUF_INIT((size_t)1 << 20);
    if (job->settings->report != NULL)
        write_file(job, job->settings->report, report_json(job, &job->verdict));
    page_file_write(job);
    evidence_folder_end(job);
    events_end(job->events, job, &job->verdict);
    if (!job->gone)
        report_failure(job, &job->verdict, &block);
    if (block.length == 0)
        return;
    output_block(job->output, buf_text(&block));
    struct recent_piece piece = {.rank = RECENT_LAUNCHER,
                                 .is_stderr = true,
                                 .wall_ns = clock_wall_ns(),
                                 .text = buf_text(&block),
                                 .length = block.length};
    line_log_add(job->line_log, &piece, false);
}

static void events_over(void *context)
{
    const struct job *job = context;
    loop_stop(job->loop);
}

static void job_report(struct job *job)
{
    if (job->settings->launch_trace != NULL)
        write_file(job, job->settings->launch_trace, report_trace(job));
    kind_print(job);
    tell(job);
    if (warning_wants_requeue(job->warning) && requeue_run(job) < 0)
        tell(job);
    bool waits =
        job->state == JOB_DONE; /* else the user did not wait for the reader of the output */
    if (waits && events_finish(job->events, events_over, job))
        loop_run(job->loop);
    events_close(job->events);
    job->events = NULL;
    if (!waits)
        return;
    output_flush(job->output, output_written, job);
    loop_run(job->loop);
}

static void job_close(struct job *job)
{
    job_control_destroy(job->control);
    metrics_out_close(job);
    terminal_destroy(job->terminal);
    reach_destroy(job->reach);
    job_mpi_destroy(job->mpi); /* this and the next borrow the plan, which may be the kind's */
    job_rendezvous_destroy(job->rendezvous);
    kind_destroy(job);
    warning_destroy(job->warning);
    events_close(job->events);
    helpers_destroy(job->helpers);
    call_progress_destroy(job->call_progress);
    stdin_feed_destroy(job->stdin_feed);
    for (int i = 0; i < job->node_count; i++)
        node_link_destroy(job->nodes[i]);
    output_destroy(job->output, OUTPUT_WAIT_MS);
    recent_destroy(job->recent);
    rank_tails_destroy(job->rank_tails);
    user_signals_destroy(job->signals);
    sampler_destroy(job->sampler);
    suspension_destroy(job->suspension);
    time_limit_destroy(job->time_limit);
    straggler_watch_destroy(job->straggler_watch);
    hang_watch_destroy(job->hang_watch);
    evidence_folder_destroy(job);
    stack_tree_destroy(job->stacks);
    asks_destroy(job->asks);
    orphans_destroy(job->orphans);
    teardown_destroy(job->teardown);
    job_lines_destroy(job->lines);
    progress_list_destroy(job->progress_list);
    collect_destroy(job->collect);
    exit_outside_clear(&job->outside);
    free(job->requeue_refused);
    rank_table_destroy(&job->ranks);
    reaper_destroy(job->reaper);
    loop_destroy(job->loop);
    free(job->places);
    free(job->nodes);
    free(job->master_addr);
}

#define OPEN_FILES_MAX 65536

/* A host takes up to three descriptors, and the usual soft limit is 1024. */
static void raise_descriptor_limit(struct job *job)
{
    struct rlimit limit = {.rlim_cur = 0};
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    job->open_files = (uint64_t)limit.rlim_cur;
    rlim_t wanted = limit.rlim_max < OPEN_FILES_MAX ? limit.rlim_max : OPEN_FILES_MAX;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static const struct job_kind *kind_for(const struct job_request *request)
{
    if (request->check != NULL)
        return &check_kind;
    return request->plan == NULL ? &elastic_kind : &static_kind;
}

int driver_run(const struct job_request *request, struct error *err)
{
    static const struct plan no_plan = {.size = 0};
    static const struct node_link_ops node_ops = {
        .frame = node_frame, .closed = node_closed, .suspect = node_suspect};
    static const struct job_hooks hooks = {.advance = advance, .ending = ending, .node = &node_ops};
    struct job job = {.request = request,
                      .settings = request->settings,
                      .kind = kind_for(request),
                      .hooks = &hooks,
                      .plan = request->plan != NULL ? request->plan : &no_plan,
                      .epoch = 1};
    job.wall_begun_ns = clock_wall_ns() - (clock_mono_ns() - request->begun_ns);
    child_ignore_signals();
    raise_descriptor_limit(&job);
    int result = job_open(&job, err);
    if (result == 0) {
        kind_begin(&job);
        loop_run(job.loop);
        job_report(&job);
        job_control_end(job.control); /* all of its log is written */
        metrics_out_end(&job);
        result = job.verdict.status;
    }
    job_close(&job);
    return result;
}
