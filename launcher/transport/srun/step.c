/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/step.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/helpers.h"
#include "transport/exec/words.h"

#define LAST_WORDS_MS 1000 /* of srun, until the end of its stderr */
#define SAID_MAX ((size_t)8192)
#define FATE_MS 300 /* the cause may come after the news */

enum step_phase { RUNNING, LINGERING, ASKED, GONE };

struct srun_step {
    const struct srun_step_config *config;
    struct srun_call **calls; /* not hung up */
    size_t count;
    enum step_phase phase;
    bool had_agents;
    bool was_cut; /* an agent that was still connected was hung up on: it may be out of reach */
    pid_t pid;    /* of srun; 0: it has ended, was let go, or could not be started */
    int wait_status;
    struct stderr_pipe errors;
    struct buf said;          /* the lines of srun so far */
    struct loop_timer *timer; /* RUNNING: for agents to come; later: for its end */
    struct loop_timer *last_words;
    bool told_over;
};

/* Makes it SRUN_OVER and reports it. The call may be gone after this. */
static void call_fail(struct srun_call *call, enum transport_stage stage, const char *why)
{
    call->state = SRUN_OVER;
    call->events->failed(call->events_context, stage, why);
}

/* `host` NULL: any. `doomed`: only one whose agent will not come. */
static struct srun_call *find(const struct srun_step *step, enum srun_call_state state,
                              const char *host, bool doomed)
{
    for (size_t i = 0; i < step->count; i++) {
        struct srun_call *call = step->calls[i];
        if (call->state == state && (host == NULL || strcmp(call->target->host, host) == 0) &&
            (!doomed || call->fate != NULL))
            return call;
    }
    return NULL;
}

/* Uses a known complaint of srun if there is one, else `otherwise`. */
static void fail(struct srun_step *step, struct srun_call *call, enum transport_stage stage,
                 const char *otherwise)
{
    char line[STDERR_LINE_MAX + 1];
    const char *known = srun_complaint_find(buf_text(&step->said), line, sizeof(line));
    char *text AUTO_FREE = known == NULL ? NULL : mem_printf("%s (%s)", known, line);
    call_fail(call, stage, text == NULL ? otherwise : text);
}

/* A callback may hang up any call, so each search starts from the beginning. */
static void fail_all(struct srun_step *step, enum transport_stage stage, const char *otherwise)
{
    struct srun_call *call = find(step, SRUN_STARTING, NULL, false);
    for (; call != NULL; call = find(step, SRUN_STARTING, NULL, false))
        fail(step, call, stage, otherwise);
}

static void explain(struct srun_call *call, const char *why)
{
    if (call->explained)
        return;
    call->explained = true;
    call->events->lost(call->events_context, why);
}

static void explain_all(struct srun_step *step, const char *why)
{
    for (size_t i = 0; i < step->count; i++) {
        if (step->calls[i]->state == SRUN_UP)
            explain(step->calls[i], why);
    }
}

/* The stream ends; nothing that is still on it is heard. */
static void drop(struct srun_call *call)
{
    dial_back_forget(call->claim);
    call->claim = NULL;
}

static void drop_all(struct srun_step *step, const char *why)
{
    explain_all(step, why);
    for (size_t i = 0; i < step->count; i++) {
        if (step->calls[i]->state == SRUN_UP)
            drop(step->calls[i]);
    }
}

/* The end of the step */

/* The last thing that a callback does: the step may be gone after it. */
static void check_over(struct srun_step *step)
{
    if (step->count > 0 || step->phase != GONE || step->told_over)
        return;
    step->told_over = true;
    loop_timer_set(step->timer, 0);
}

/* No event of srun comes any more. */
static void let_go(struct srun_step *step)
{
    stderr_pipe_close(&step->errors);
    if (step->pid > 0)
        helpers_let_go(step->config->settings->room->helpers, step->pid);
    step->pid = 0;
}

static void timer_fire(void *context)
{
    struct srun_step *step = context;
    switch (step->phase) {
    case RUNNING: {
        char *late AUTO_FREE =
            mem_printf("no agent has dialled back from there within %.3g s: does slurmctld answer "
                       "(scontrol ping)? does a firewall keep the nodes from connecting to this "
                       "machine?",
                       (double)step->config->settings->limit_ms / 1000);
        fail_all(step, STAGE_START, late);
        return;
    }
    case LINGERING:
        step->phase = ASKED;
        if (step->pid > 0)
            kill(-step->pid, SIGTERM); /* a helper leads a group of its own */
        loop_timer_set(step->timer, SRUN_PATIENCE_MS);
        return;
    case ASKED:
        let_go(step);
        step->phase = GONE;
        break;
    case GONE: break;
    }
    step->config->over(step->config->context, step);
}

static void last_words_over(void *context)
{
    struct srun_step *step = context;
    struct srun_call *call = find(step, SRUN_STARTING, NULL, true);
    for (; call != NULL; call = find(step, SRUN_STARTING, NULL, true)) {
        char *otherwise AUTO_FREE =
            mem_printf("its agent ended before it dialled back (%s)", call->fate);
        fail(step, call, STAGE_START, otherwise);
    }
    if (step->phase != GONE)
        return;
    char *end AUTO_FREE = child_end_text("srun", step->wait_status);
    const char *last = step->errors.lines.last;
    char *otherwise AUTO_FREE =
        mem_printf("%s before the agent dialled back%s%s%s", end, last[0] == '\0' ? "" : " (", last,
                   last[0] == '\0' ? "" : ")");
    stderr_pipe_close(&step->errors);
    fail_all(step, STAGE_START, otherwise);
}

static void srun_exited(void *context, int wait_status)
{
    struct srun_step *step = context;
    step->phase = GONE;
    step->pid = 0;
    step->wait_status = wait_status;
    loop_timer_clear(step->timer);
    if (wait_status != 0) {
        char *end AUTO_FREE = child_end_text("srun", step->wait_status);
        char *why AUTO_FREE = mem_printf("%s, and Slurm ends the agents with it", end);
        if (WIFSIGNALED(wait_status))
            drop_all(step, why);
        else
            explain_all(step, why);
    }
    if (find(step, SRUN_STARTING, NULL, false) != NULL)
        loop_timer_set(step->last_words, step->errors.fd < 0 ? 0 : LAST_WORDS_MS);
    else
        stderr_pipe_close(&step->errors);
    check_over(step);
}

/* What srun says */

/* Why the agent of one node does not come, or has gone. */
static void tell_node(struct srun_step *step, const char *host, const char *line, const char *said)
{
    bool by_agent = strncmp(line, DIAL_BACK_CANNOT, strlen(DIAL_BACK_CANNOT)) == 0;
    struct srun_call *call = find(step, SRUN_STARTING, host, false);
    if (call != NULL && by_agent) {
        call_fail(call, STAGE_CONNECT, said);
    } else if (call != NULL && call->fate == NULL) {
        call->fate = mem_strdup(said);
        if (!loop_timer_is_set(step->last_words))
            loop_timer_set(step->last_words, FATE_MS);
    } else if (call == NULL && !by_agent) { /* else a second one of the same name */
        call = find(step, SRUN_UP, host, false);
        char *why AUTO_FREE = mem_printf("Slurm says: %s", said);
        if (call != NULL)
            explain(call, why);
        if (call != NULL && srun_complaint_is_node_failure(said))
            drop(call);
    }
}

static void srun_said(void *context, const char *line)
{
    struct srun_step *step = context;
    const struct srun_settings *settings = step->config->settings;
    AUTO_STRV struct strv nodes = STRV_INIT;
    buf_printf(&step->said, "%s\n", line); /* a line for which there is no room is left out */
    bool is_news = step->phase == RUNNING && step->had_agents;
    settings->note(settings->context, is_news ? LOG_WARNING : LOG_INFO, line);
    const char *said = srun_complaint_about(line, &nodes);
    for (size_t i = 0; said != NULL && i < nodes.count; i++)
        tell_node(step, nodes.items[i], line, said);
    if (said == NULL && srun_complaint_is_end(line)) {
        char *why AUTO_FREE = mem_printf("Slurm says: %s", line);
        explain_all(step, why); /* the streams stay: after scancel agents live on for KillWait */
    }
}

static void srun_silent(void *context)
{
    struct srun_step *step = context;
    if (step->phase == GONE && loop_timer_is_set(step->last_words))
        loop_timer_set(step->last_words, 0);
}

/* The agents */

static void agent_up(void *context, const struct transport_stream *stream)
{
    struct srun_call *call = context;
    struct srun_step *step = call->step;
    if (call->state != SRUN_STARTING) { /* it was given up just before */
        int fd = stream->read_fd;
        fd_close(&fd);
        return;
    }
    call->state = SRUN_UP;
    step->had_agents = true;
    if (step->phase == RUNNING && find(step, SRUN_STARTING, NULL, false) == NULL)
        loop_timer_clear(step->timer);
    call->events->up(call->events_context, stream);
}

static void agent_broken(void *context, const char *why)
{
    explain(context, why);
}

static void agent_failed(void *context, const char *why)
{
    struct srun_call *call = context;
    if (call->state == SRUN_STARTING)
        call_fail(call, STAGE_AGENT, why);
}

/* The start of the step */

static int run_srun(struct srun_step *step, struct error *err)
{
    const struct srun_step_config *config = step->config;
    const struct srun_settings *settings = config->settings;
    AUTO_STRV struct strv nodes = STRV_INIT, argv = STRV_INIT, env = STRV_INIT;
    char *path AUTO_FREE = child_in_path("srun");
    if (path == NULL)
        return error_set(err, "srun was not found in PATH: add the folder of Slurm's programs to "
                              "it, or reach the nodes with --transport ssh");
    AUTO_FD int null_fd = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    AUTO_FD int errors_fd = -1;
    if (null_fd >= 0)
        errors_fd =
            stderr_pipe_open(&step->errors, settings->room->loop, srun_said, srun_silent, step);
    if (errors_fd < 0)
        return error_errno(err, errno, "cannot create the streams for srun");
    for (size_t i = 0; i < step->count; i++)
        strv_add(&nodes, step->calls[i]->target->host);
    struct srun_command command = {.options = config->options,
                                   .nodes = strv_items(&nodes),
                                   .arguments = config->arguments,
                                   .agent_path = settings->agent_path};
    struct srun_secrets secrets = {.addresses = settings->addresses,
                                   .port = dial_back_port(config->dial),
                                   .key = dial_back_key(config->dial),
                                   .job_id = settings->room->job_id};
    srun_command_argv(&command, &argv);
    srun_command_env(environ, &secrets, &env);
    struct child_spec child = {.path = path,
                               .argv = strv_items(&argv),
                               .envp = strv_items(&env),
                               .fds = {null_fd, errors_fd, errors_fd},
                               .keep_fd = -1,
                               .lasting = true};
    /* It lasts: without its srun Slurm kills the step, agents in the middle of cleaning up
     * included. They end when we are gone, and srun ends with them. */
    step->pid = helpers_start(settings->room->helpers, &child, srun_exited, step, err);
    return step->pid < 0 ? -1 : 0;
}

struct srun_step *srun_step_create(const struct srun_step_config *config, struct srun_call **calls,
                                   size_t count)
{
    static const struct dial_back_events events = {agent_up, agent_broken, agent_failed};
    struct loop *loop = config->settings->room->loop;
    struct srun_step *step = mem_alloc(sizeof(*step));
    struct error err = ERROR_INIT;
    *step = (struct srun_step){.config = config,
                               .calls = calls,
                               .count = count,
                               .errors = STDERR_PIPE_INIT,
                               .said = BUF_INIT(SAID_MAX)};
    step->timer = loop_timer_create(loop, timer_fire, step);
    step->last_words = loop_timer_create(loop, last_words_over, step);
    for (size_t i = 0; i < count; i++) {
        calls[i]->step = step;
        calls[i]->state = SRUN_STARTING;
        calls[i]->claim = dial_back_expect(config->dial, calls[i]->target->host, &events, calls[i]);
        calls[i]->events->stage(calls[i]->events_context, STAGE_START);
    }
    if (run_srun(step, &err) == 0) {
        int64_t waited = clock_mono_ms() - step->calls[0]->called_ms; /* they are of one turn */
        int64_t left = config->settings->limit_ms - waited;
        loop_timer_set(step->timer, left > 0 ? left : 0);
        return step;
    }
    step->phase = GONE;
    let_go(step);
    fail_all(step, STAGE_START, err.text);
    return step;
}

void srun_step_leave(struct srun_call *call)
{
    struct srun_step *step = call->step;
    size_t at = 0;
    while (step->calls[at] != call)
        at++;
    step->calls[at] = step->calls[--step->count];
    step->was_cut |=
        call->state == SRUN_UP && (call->claim == NULL || !dial_back_has_gone(call->claim));
    if (step->count > 0)
        return;
    if (step->phase == RUNNING) {
        bool ends_by_itself = step->had_agents && !step->was_cut;
        step->phase = LINGERING;
        loop_timer_set(step->timer, ends_by_itself ? SRUN_LINGER_MS : 0);
    }
    check_over(step);
}

void srun_step_destroy(struct srun_step *step)
{
    let_go(step);
    buf_destroy(&step->said);
    loop_timer_destroy(step->timer);
    loop_timer_destroy(step->last_words);
    free(step->calls);
    free(step);
}
