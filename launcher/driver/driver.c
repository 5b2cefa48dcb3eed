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
#include "driver/elastic/elastic_part.h"
#include "driver/elastic/epoch.h"
#include "driver/end/orphans.h"
#include "driver/end/requeue.h"
#include "driver/end/teardown.h"
#include "driver/end/warning.h"
#include "driver/mpi/mpi_part.h"
#include "driver/reach/progress.h"
#include "driver/reach/reach.h"
#include "driver/run/collect.h"
#include "driver/run/exits.h"
#include "driver/run/job_output.h"
#include "driver/run/rendezvous_part.h"
#include "driver/run/state_report.h"
#include "driver/run/stdin_feed.h"
#include "driver/run/user_signals.h"
#include "driver/start/bringup.h"
#include "driver/start/late_plan.h"
#include "driver/tell/events.h"
#include "driver/tell/report.h"
#include "io/helpers.h"
#include "node/runtime_dir.h"
#include "output/terminal.h"

#define CLOSE_WAIT_MS 5000   /* for agents that were told to quit */
#define ORPHANS_WAIT_MS 5000 /* for what dead agents left */
#define OUTPUT_WAIT_MS 2000  /* for a sink that is stuck when all else is over */

/* Survivors of an elastic job speak in the epoch in which they were started, and an agent may be
 * done with an epoch when the next one has been planned. */
static bool may_be_older(uint8_t type)
{
    return type == FRAME_KILLING || type == FRAME_ENDED || type == FRAME_STARTED ||
           type == FRAME_EXITED || type == FRAME_FINISHED || type == FRAME_ABORT ||
           type == FRAME_OUTPUT || type == FRAME_OUTPUT_SHOW || type == FRAME_STDIN_CREDIT ||
           type == FRAME_STATE_REPORT;
}

/* Frames about the present epoch, or about a worker. -1: the node broke the protocol. */
static int epoch_frame(struct job *job, struct node_link *node, uint8_t type, const uint8_t *body,
                       size_t length)
{
    switch (type) {
    case FRAME_STARTED: return exits_started(job, node, body, length);
    case FRAME_EXITED: return exits_exited(job, node, body, length);
    case FRAME_FINISHED: return exits_finished(job, node, body, length);
    case FRAME_ABORT: return exits_aborted(job, node, body, length);
    case FRAME_KILLING: return exits_killing(job, node, body, length);
    case FRAME_OUTPUT: return collect_bytes(job->collect, node, body, length);
    case FRAME_OUTPUT_SHOW: return collect_show(job->collect, node, body, length);
    case FRAME_STDIN_CREDIT: return stdin_feed_credit(job->stdin_feed, node, body, length);
    case FRAME_STATE_REPORT: return state_report_got(job, node, body, length);
    case FRAME_ENDED:
        if (node->state == NODE_ENDING) {
            node->state = NODE_ENDED;
            elastic_part_node_ended(job->elastic, node);
            job_advance(job);
        }
        return 0;
    default: return mpi_part_frame(job->mpi, node, type, body, length);
    }
}

/* -1: the node broke the protocol. */
static int take_frame(struct job *job, struct node_link *node, const struct frame_header *header,
                      const uint8_t *body)
{
    int result = 0;
    switch (header->type) {
    case FRAME_HELLO:
        if (job->elastic != NULL)
            elastic_part_hello(job->elastic, node);
        else if (job->check != NULL)
            check_part_hello(job->check, node);
        else
            bringup_hello(job, node);
        break;
    case FRAME_SUSPENDED:
        job->suspended_nodes++;
        user_signals_suspended(job);
        break;
    case FRAME_TERMINATE:
        if (job->elastic != NULL) {
            result = elastic_part_terminate(job->elastic, node, body, header->length);
            warning_node_term(job->warning);
        } else {
            user_signals_of_node(job, SIGTERM);
        }
        break;
    case FRAME_SIGNALLED: result = user_signals_frame(job, body, header->length); break;
    case FRAME_CHECKED:
    case FRAME_PROBED:
        result = check_part_frame(job->check, node, header->type, body, header->length);
        break;
    case FRAME_NOTIFIED:
        result = elastic_part_notified(job->elastic, node, body, header->length);
        break;
    case FRAME_KV_REQUEST:
        result =
            rendezvous_part_request(job->rendezvous, node, header->epoch, body, header->length);
        break;
    case FRAME_KV_DROPPED:
        result = rendezvous_part_dropped(job->rendezvous, node, body, header->length);
        break;
    case FRAME_READY:
        if (job->elastic != NULL)
            result = elastic_epoch_ready(job, node, header->epoch, body, header->length);
        else if (header->epoch == job->epoch)
            bringup_ready(job, node, body, header->length);
        break;
    default:
        /* a stale one is dropped */
        if (header->epoch == job->epoch || (job->elastic != NULL && may_be_older(header->type)))
            result = epoch_frame(job, node, header->type, body, header->length);
        break;
    }
    return result;
}

static void node_frame(void *context, struct node_link *node, const struct frame_header *header,
                       const uint8_t *body)
{
    struct job *job = context;
    if (exits_is_early(job, node, header->type) || take_frame(job, node, header, body) < 0)
        node_link_give_up(node, "its agent broke the protocol");
}

static void node_closed(void *context, struct node_link *node, const char *why)
{
    struct job *job = context;
    if (node->state == NODE_LOST) {
        /* Silence began when the node was last heard. So did, as far as we can tell, the end of a
         * broken connection: peers may see a host's crash before we do. But of an agent on this
         * machine nobody hears sooner. */
        bool since_heard = node->liveness.state == LIVENESS_LOST || !node->stream.same_machine;
        int64_t when = since_heard ? (node->liveness.heard_ms + 1) * 1000000 : clock_mono_ns();
        events_node(job->events, "node_lost", node, why);
        rendezvous_part_node_lost(job->rendezvous, node);
        mpi_part_node_lost(job->mpi, node);
        if (node->stream.same_machine) {
            job->lost_here = true;
            if (node->stream.pid > 0)
                kill(node->stream.pid, SIGKILL); /* it may hang */
            orphans_sweep(job);
        }
        reach_hang_up(job->reach, node);
        if (job->elastic != NULL)
            elastic_part_node_lost(job->elastic, node, why);
        else if (job->check != NULL)
            check_part_lost(job->check, node, why);
        else if (exit_policy_node_lost(job->policy, node->place, when, why))
            teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
    } else if (job->elastic != NULL) {
        elastic_part_node_gone(job->elastic, node);
    }
    job_advance(job);
}

static void node_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    struct job *job = context;
    if (silent)
        log_warning(&job->log, "%s: nothing heard for %.1f s; it is lost after %.0f s", node->host,
                    (double)silence_ms / 1000, (double)node->liveness.lost_ms / 1000);
    else
        log_notice(&job->log, "%s: heard again", node->host);
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
    loop_timer_set(job->close_limit, CLOSE_WAIT_MS);
}

/* The verdict is made when nothing can happen any more and all output is in. */
static void finish(struct job *job)
{
    loop_timer_clear(job->close_limit);
    job->state = JOB_FLUSHING;
    reach_close(job->reach);
    warning_close(job->warning);
    elastic_part_close(job->elastic);
    if (!orphans_end(job, ORPHANS_WAIT_MS))
        log_error(&job->log, "some processes of the job could not be killed");
    if (job->lost_here)
        runtime_dir_sweep(); /* it may have died before it could name its folders, or while adding
                              */
    exit_policy_verdict(job->policy, &job->verdict);
    if (job->elastic != NULL)
        elastic_part_verdict(job->elastic, &job->verdict);
    if (job->check != NULL)
        check_part_verdict(job->check, &job->verdict);
    warning_verdict(job->warning, &job->verdict);
    job_note_gone(job);
    log_make_plain(job->verdict.explanation);
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

void job_advance(struct job *job)
{
    if (job->elastic == NULL && job->check == NULL)
        bringup_advance(job);
    if (job->elastic == NULL && job->state == JOB_RUNNING && job->ranks.finished == job->plan->size)
        teardown_strays(job);
    if (job->state == JOB_ENDING && job_all_nodes(job, has_ended))
        close_agents(job);
    if (job->state == JOB_CLOSING && job_all_nodes(job, has_closed) &&
        !warning_is_asking(job->warning) && reach_end(job->reach))
        finish(job);
}

static void time_limit_passed(void *context)
{
    state_report_begin(context);
}

/* Agents end about in the order in which they were told to, so the look begins behind the one that
 * was found last. */
static void agent_reaped(struct job *job, const struct reaper_exit *exit)
{
    for (int i = 0; i < job->node_count; i++) {
        int at = (job->node_reaped + i) % job->node_count;
        struct transport_stream *stream = &job->nodes[at]->stream;
        if (stream->pid != exit->pid)
            continue;
        stream->pid = 0; /* the number may be somebody else's from now on */
        /* one that fails when all is over is not missed, but its folder may still be there */
        job->lost_here |= stream->same_machine && exit->wait_status != 0;
        job->node_reaped = at + 1;
        break;
    }
}

static void reaped(void *context, const struct reaper_exit *exit)
{
    struct job *job = context;
    agent_reaped(job, exit);
    helpers_exited(job->helpers, exit);
    log_debug(&job->log, "process %d has ended (wait status %#x)", (int)exit->pid,
              (unsigned)exit->wait_status);
}

void driver_open_node(struct job *job, struct node_link *node)
{
    static const struct node_link_ops ops = {
        .frame = node_frame, .closed = node_closed, .suspect = node_suspect};
    credit_init(&node->credit, &job->budget, (uint64_t)job->node_count);
    node->doubted = job->elastic != NULL; /* a static job has more patience by itself */
    node_link_init(node, job->loop, job_node_timeout(job), &job->log, &ops, job);
}

/* Those of a static job. */
static int open_nodes(struct job *job, struct error *err)
{
    job_take_plan(job);
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        const struct transport_stream *stream = &job->request->streams[i];
        const struct plan_node *place = &job->plan->nodes[i];
        reach_add_node(job->reach, node, &place->traits);
        driver_open_node(job, node);
        if (stream->read_fd >= 0 && node_link_connect(node, stream, err) < 0)
            return -1;
    }
    job->opened_ns = clock_mono_ns();
    return 0;
}

static int job_open(struct job *job, struct error *err)
{
    job->loop = loop_create(err);
    if (job->loop == NULL)
        return -1;
    job->reaper = reaper_create(reaped, job);
    job->policy = exit_policy_create((enum exit_rule)job->settings->exit_policy, job->plan);
    job->collect = collect_create(job);
    rank_table_init(&job->ranks, job->plan->size);
    credit_budget_init(&job->budget, CREDIT_BUDGET);
    job->helpers = helpers_create();
    job->time_limit = loop_timer_create(job->loop, time_limit_passed, job);
    job->warning = warning_create(job, err);
    job->signals = job->warning == NULL ? NULL : user_signals_create(job, err);
    if (job->signals == NULL || job_open_output(job, err) < 0)
        return -1;
    if (job->request->check == NULL && stdin_feed_check(job, err) < 0)
        return -1;
    job->events = events_open(job, job->settings->events);
    job->rendezvous = rendezvous_part_create(job);
    job->mpi = mpi_part_create(job);
    job->progress = progress_create(job);
    if (job->request->check != NULL) {
        job->check = check_part_create(job);
    } else if (job->request->plan == NULL) {
        job->elastic = elastic_part_create(job, err);
        if (job->elastic == NULL)
            return -1;
    }
    job->reach = reach_create(job);
    if (job->elastic == NULL && job->check == NULL)
        job->stdin_feed = stdin_feed_create(job);
    if (job->settings->pty >= 0 && job_stdin_rank(job) == job->settings->pty)
        job->terminal = terminal_raw();
    return open_nodes(job, err);
}

static void write_file(struct job *job, const char *path, char *text)
{
    struct output_file *file = output_file_open(job->output, path, false);
    output_file_write(file, text, strlen(text));
    output_file_close(file);
    free(text);
}

/* After the ranks' output: the files that were asked for, and what went wrong. */
static void tell(struct job *job)
{
    AUTO_BUF struct buf block = BUF_INIT((size_t)1 << 20);
    if (job->settings->report != NULL)
        write_file(job, job->settings->report, report_json(job, &job->verdict));
    events_end(job->events, &job->verdict);
    if (!job->gone)
        report_failure(job, &job->verdict, &block);
    if (block.length > 0)
        output_block(job->output, buf_text(&block));
}

static void job_report(struct job *job)
{
    if (job->settings->launch_trace != NULL)
        write_file(job, job->settings->launch_trace, report_trace(job));
    if (job->check != NULL)
        check_part_report(job->check);
    tell(job);
    if (warning_wants_requeue(job->warning) && requeue_run(job) < 0)
        tell(job);
    events_close(job->events);
    if (job->state != JOB_DONE)
        return; /* the user did not want to wait for the reader of the output */
    output_flush(job->output, output_written, job);
    loop_run(job->loop);
}

static void job_close(struct job *job)
{
    terminal_destroy(job->terminal);
    reach_destroy(job->reach);
    elastic_part_destroy(job->elastic);
    check_part_destroy(job->check);
    warning_destroy(job->warning);
    helpers_destroy(job->helpers);
    progress_destroy(job->progress);
    stdin_feed_destroy(job->stdin_feed);
    rendezvous_part_destroy(job->rendezvous);
    mpi_part_destroy(job->mpi);
    for (int i = 0; i < job->node_count; i++)
        node_link_destroy(job->nodes[i]);
    output_destroy(job->output, OUTPUT_WAIT_MS);
    user_signals_destroy(job->signals);
    struct loop_timer *timers[] = {job->start_limit, job->time_limit,     job->state_limit,
                                   job->close_limit, job->greeting_limit, job->orphan_sweep};
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        loop_timer_destroy(timers[i]);
    collect_destroy(job->collect);
    exit_policy_destroy(job->policy);
    late_plan_destroy(job);
    rank_table_destroy(&job->ranks);
    reaper_destroy(job->reaper);
    loop_destroy(job->loop);
    for (int i = 0; i < job->address_count; i++)
        free(job->addresses[i]);
    free(job->addresses);
    free(job->places);
    free(job->nodes);
    free(job->master_addr);
}

#define OPEN_FILES_MAX 65536

/* A host takes up to three descriptors, and shells allow 1024 in all. */
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

int driver_run(const struct job_request *request, struct error *err)
{
    static const struct plan no_plan = {.size = 0};
    struct job job = {.request = request,
                      .settings = request->settings,
                      .plan = request->plan != NULL ? request->plan : &no_plan,
                      .epoch = 1,
                      .states_wanted = -1};
    job.wall_begun_ns = clock_wall_ns() - (clock_mono_ns() - request->begun_ns);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(&job);
    int result = job_open(&job, err);
    if (result == 0) {
        if (job.elastic != NULL)
            elastic_part_begin(job.elastic);
        else if (job.check != NULL)
            check_part_begin(job.check);
        else
            bringup_begin(&job);
        loop_run(job.loop);
        job_report(&job);
        result = job.verdict.status;
    }
    job_close(&job);
    return result;
}
