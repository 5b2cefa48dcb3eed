/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/start.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/reach/call_progress.h"
#include "driver/reach/reach.h"
#include "driver/start/start_test.h"
#include "driver/tell/events.h"
#include "io/child.h"

char *program_here_text(const char *problem, const char *program, const char *path,
                        const char *wdir)
{
    char *found AUTO_FREE = child_find(program, path, wdir, NULL);
    if (found == NULL)
        return mem_strdup(problem);
    return mem_printf(
        "%s; this machine has %s, but it must be at the same path on every host: copy it "
        "there, or use a shared folder",
        problem, found);
}

/* The same for the program of a rank. Returns the problem alone if the node is this machine or has
 * another problem. */
static char *program_here_problem(const struct job *job, const struct node_link *node, int seat,
                                  int status, const char *problem)
{
    const struct app *app = &job->request->apps->items[job->ranks.records[seat].app];
    if (status != STATUS_NOT_FOUND || node->stream.same_machine)
        return mem_strdup(problem);
    const char *wdir = app->wdir != NULL ? app->wdir : job->settings->wdir;
    return program_here_text(problem, app->argv.items[0], getenv("PATH"), wdir);
}

#define SETTLE_MS 5000

struct bringup {
    struct loop_timer *limit;  /* --start-timeout */
    struct loop_timer *settle; /* since the first host that cannot be reached */
    int unreached;
    bool begun;
    bool delayed; /* a part has delayed a node */
};

/* Hosts that cannot be reached */

/* If one host failed, it is the error of the job; several hosts get a line each. */
static void say_unreached(struct job *job)
{
    int unreached = job_part(job, bringup)->unreached;
    char *text AUTO_FREE = NULL;
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        const char *why = reach_why(job, node);
        const char *stage = transport_stage_name(node->stage);
        if (why == NULL)
            continue;
        if (unreached == 1)
            text = mem_printf("%s: %s: %s", node->host, stage, why);
        else
            log_error(&job->log, "%s: %s: %s", node->host, stage, why);
    }
    if (unreached > 1)
        text = mem_printf("%d of %d hosts cannot be reached", unreached, job->node_count);
    teardown_launcher(job, STATUS_LAUNCHER, text);
}

static void settled(void *context)
{
    struct job *job = context;
    if (job->state < JOB_ENDING)
        say_unreached(job);
}

static void look_whether_settled(struct job *job)
{
    const struct bringup *bringup = job_part(job, bringup);
    if (bringup->unreached == 0 || job->state >= JOB_ENDING)
        return;
    if (job->nodes_up + bringup->unreached >= job->node_count)
        loop_timer_set(bringup->settle, 0);
    else if (!loop_timer_is_set(bringup->settle))
        loop_timer_set(bringup->settle, SETTLE_MS);
}

void bringup_unreached(struct job *job, struct node_link *node, const char *why)
{
    (void)node, (void)why; /* reach_why() */
    job_part(job, bringup)->unreached++;
    look_whether_settled(job);
}

/* The time limit */

static void limit_passed(void *context)
{
    struct job *job = context;
    job_advance_now(job);
    if (job->state >= JOB_RUNNING)
        return;
    if (PARTS_ANY(job, delays, NULL)) { /* which has limits of its own */
        loop_timer_set(job_part(job, bringup)->limit, job->settings->start_timeout);
        return;
    }
    AUTO_BUF struct buf text = BUF_INIT(ERROR_TEXT_MAX / 2);
    buf_printf(
        &text,
        "the job did not come up within %g s (--start-timeout sets the limit); no answer from",
        (double)job->settings->start_timeout / 1000);
    reach_describe_missing(job, &text);
    teardown_launcher(job, STATUS_START_TIMEOUT, buf_text(&text));
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    struct bringup *bringup = job_part(job, bringup);
    bringup->limit = loop_timer_create(job->loop, limit_passed, job);
    bringup->settle = loop_timer_create(job->loop, settled, job);
    return 0;
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, bringup)->limit);
    loop_timer_destroy(job_part(job, bringup)->settle);
}

void bringup_begin(struct job *job)
{
    struct bringup *bringup = job_part(job, bringup);
    struct error err = ERROR_INIT;
    bringup->begun = true;
    loop_timer_set(bringup->limit, job->settings->start_timeout);
    events_job(job, "job_start");
    if (reach_begin(job, &err) < 0)
        teardown_launcher(job, err.status, err.text);
}

static void pause_limit(struct job *job, bool paused)
{
    const struct bringup *bringup = job_part(job, bringup);
    if (paused)
        loop_timer_clear(bringup->limit);
    else if (bringup->begun && job->state < JOB_RUNNING)
        loop_timer_set(bringup->limit, job->settings->start_timeout);
}

static void ending(struct job *job)
{
    loop_timer_clear(job_part(job, bringup)->limit);
    loop_timer_clear(job_part(job, bringup)->settle);
}

/* HELLO, PREPARE, READY, START */

static bool is_about_program(uint32_t status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_NOT_EXECUTABLE;
}

/* false: the problem of the node has ended the job. */
static bool accept_problem(struct job *job, const struct node_link *node, const char *problem,
                           uint32_t status, uint32_t rank)
{
    if (problem[0] == '\0')
        return true;
    if (!is_about_program(status) || !job_seat_is_on(job, node, rank)) {
        AUTO_FREE char *text = mem_printf("%s: %s", node->host, problem);
        teardown_told(job, node, (int)status, text);
        return false;
    }
    /* For the verdict it is dated before our first kill, whatever the error of the clock of the
     * node is. */
    struct exit_event event = {.seat = (int)rank, .code = (int)status, .when_ns = node->hello_ns};
    struct rank_record *record = &job->ranks.records[rank];
    if (rank_exited(&job->ranks, (int)rank, clock_mono_ns())) {
        record->exec_failed = true;
        record->text = program_here_problem(job, node, (int)rank, (int)status, problem);
    }
    KIND_TELL(job, exited, &event);
    return false;
}

void bringup_hello(struct job *job, struct node_link *node)
{
    struct bringup *bringup = job_part(job, bringup);
    const Hvdrun__AgentHello *hello = node->hello;
    AUTO_FREE char *problem = handshake_version_problem(node);
    if (problem != NULL) {
        teardown_told(job, node, STATUS_LAUNCHER, problem);
        return;
    }
    handshake_welcome(job, node);
    if (node->state != NODE_UP ||
        !accept_problem(job, node, hello->problem, hello->status, UINT32_MAX))
        return;
    kind_welcomed(job, node);
    bringup->delayed = bringup->delayed || PARTS_ANY(job, delays, NULL);
}

void bringup_came(struct job *job, struct node_link *node)
{
    (void)node;
    struct bringup *bringup = job_part(job, bringup);
    job->nodes_up++;
    if (bringup->delayed && !PARTS_ANY(job, delays, NULL)) {
        bringup->delayed = false;
        pause_limit(job, job->times.paused_ms != 0); /* the limit begins anew */
    }
    look_whether_settled(job);
    job_advance(job);
}

void bringup_prepare(struct job *job)
{
    struct prepare_epoch all = {.number = job->epoch, .plan = job->plan, .places = job->places};
    if (prepare_send(job, &all))
        job->state = JOB_PREPARING;
}

int bringup_ready(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, frame->length, frame->body);
    bool prepared = node->state == NODE_UP && job->state == JOB_PREPARING;
    bool expected = prepared || node->state == NODE_ENDING;
    if (ready == NULL || !expected) {
        node_link_give_up(node, "its agent sent an invalid or unexpected READY");
        if (ready != NULL)
            hvdrun__ready__free_unpacked(ready, NULL);
        return 0;
    }
    node->ready_ns = clock_mono_ns();
    handshake_take_ready(job, node, ready);
    /* The first problem ends the job, but the user wants to read those of the other hosts too. */
    if (node->state == NODE_ENDING && ready->problem[0] != '\0' && !is_about_program(ready->status))
        log_error(&job->log, "%s: %s", node->host, ready->problem);
    if (node->state == NODE_UP &&
        accept_problem(job, node, ready->problem, ready->status, ready->rank)) {
        node->state = NODE_READY;
        job->nodes_ready++;
        job_advance(job);
    }
    hvdrun__ready__free_unpacked(ready, NULL);
    return 0;
}

void bringup_start(struct job *job)
{
    call_progress_end(job);
    loop_timer_clear(job_part(job, bringup)->limit);
    for (int i = 0; i < job->plan->node_count; i++)
        handshake_send_start(job, job->places[i], job->epoch);
    handshake_running(job);
}

const struct driver_part bringup_part = {.name = "bringup",
                                         .size = sizeof(struct bringup),
                                         .open = open_part,
                                         .close = close_part,
                                         .ending = ending,
                                         .pause = pause_limit};
