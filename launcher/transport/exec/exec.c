/* SPDX-License-Identifier: Apache-2.0 */
/* The exec transport: a queue of calls, which begin in their order, so many at the same time. */
#include "transport/transports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "base/text.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "transport/boot/boot.h"
#include "transport/exec/words.h"

/*
 * One call: the command, its stderr, the boot over it. It waits in a queue until it may begin.
 *
 *   begin -> the command runs, boot over its stdin and stdout -> up
 *         -> boot fails; if the stream has just ended, the call waits for the command's last words
 *            and its exit status, LAST_WORDS_MS at most -> failed
 */

#define LAST_WORDS_MS 1000
#define COMPLAINTS_MAX ((size_t)8192) /* of stderr, kept for the failure's message */

struct exec_call {
    struct transport_call_head head;
    struct exec_transport *exec;
    TAILQ_ENTRY(exec_call) place;
    enum { QUEUED, RUNNING, SETTLED } phase; /* SETTLED: its place is for others */
    const struct transport_target *target;
    const struct transport_events *events;
    void *events_context;
    struct boot *boot;
    int fd;
    struct loop_timer *last_words;
    struct stderr_pipe errors;
    struct buf complaints;
    char *program; /* argv[0] */
    pid_t pid;
    int wait_status;
    bool exited, is_up;
    enum transport_stage stage; /* of the failure that waits for the last words */
    char *why;
};

static void next_turn(struct exec_transport *exec)
{
    if (!TAILQ_EMPTY(&exec->queue) && (exec->window <= 0 || exec->running < exec->window))
        loop_timer_set(exec->turn, 0);
}

static void settle(struct exec_call *call)
{
    if (call->phase == QUEUED)
        TAILQ_REMOVE(&call->exec->queue, call, place);
    if (call->phase == RUNNING)
        call->exec->running--;
    call->phase = SETTLED;
    next_turn(call->exec);
}

static void report_failure(struct exec_call *call, enum transport_stage stage, const char *why)
{
    loop_timer_clear(call->last_words);
    settle(call);
    call->events->failed(call->events_context, stage, why); /* the call may be gone after this */
}

/* "ssh ended with exit status 255" */
static char *describe_end(const struct exec_call *call)
{
    return call->exited ? child_end_text(call->program, call->wait_status)
                        : mem_printf("%s closed its output", call->program);
}

/* The stream has ended before any shell said a word: the command's own failure. */
static void explain_command(struct exec_call *call)
{
    struct exec_complaint complaint;
    const char *last = call->errors.lines.last;
    const char *said = last[0] != '\0' ? last : boot_heard(call->boot)->noise;
    char *end AUTO_FREE = describe_end(call);
    char *why AUTO_FREE = NULL;
    enum transport_stage stage = STAGE_CONNECT;
    int status = call->exited && WIFEXITED(call->wait_status) ? WEXITSTATUS(call->wait_status) : -1;
    if (exec_complaint_find(buf_text(&call->complaints), call->exec->is_ssh, &complaint)) {
        stage = complaint.stage;
        why = mem_printf("%s (%s: %s)", complaint.why, call->program, complaint.line);
    } else if (call->exec->is_ssh && login_end_is_plain(status)) {
        stage = STAGE_START;
        why = login_end_text(status, said);
    } else if (status == 0) {
        stage = STAGE_START;
        why = mem_printf(
            "%s ended with exit status 0 before the host answered: check that it passes its "
            "standard input on to the host (kubectl exec and docker exec do so with -i)%s%s",
            call->program, said[0] != '\0' ? "; it said: " : "", said);
    } else if (said[0] != '\0') {
        why = mem_printf("%s: %s", end, said);
    } else {
        why = mem_printf("%s and printed nothing; try the command by hand: %s ... %s", end,
                         call->program, BOOT_COMMAND);
    }
    report_failure(call, stage, why);
}

static void explain(struct exec_call *call)
{
    if (boot_heard(call->boot)->cut && !boot_heard(call->boot)->answered) {
        explain_command(call);
        return;
    }
    const char *last = call->errors.lines.last;
    bool new_words = last[0] != '\0' && strstr(call->why, last) == NULL;
    char *why AUTO_FREE = mem_printf("%s%s%s%s", call->why, new_words ? " (" : "",
                                     new_words ? last : "", new_words ? ")" : "");
    report_failure(call, call->stage, why);
}

static void last_words_over(void *context)
{
    struct exec_call *call = context;
    stderr_lines_end(&call->errors.lines, NULL, NULL);
    explain(call);
}

/* The command has ended and its stderr too: nothing more will come. */
static void check_last_words(void *context)
{
    struct exec_call *call = context;
    if (call->why != NULL && call->phase == RUNNING && call->exited && call->errors.fd < 0)
        loop_timer_set(call->last_words, 0);
}

/* stderr */

static void tell(void *context, const char *line)
{
    struct exec_call *call = context;
    if (!call->is_up) /* a line for which there is no room is left out */
        buf_printf(&call->complaints, "%s\n", line);
    call->events->note(call->events_context, call->is_up ? LOG_WARNING : LOG_INFO, line);
}

/* Boot */

static void boot_stage(void *context, enum transport_stage stage)
{
    struct exec_call *call = context;
    /* That our first bytes were taken does not mean that a shell is there yet. */
    if (stage != STAGE_START)
        call->events->stage(call->events_context, stage);
}

static void hand_over(void *context)
{
    struct exec_call *call = context;
    struct transport_stream stream = {.read_fd = call->fd,
                                      .write_fd = call->fd,
                                      .pid = call->pid,
                                      .same_machine = call->exec->same_machine};
    call->is_up = true;
    call->fd = -1;
    settle(call);
    call->events->up(call->events_context, &stream);
}

static void boot_failed(void *context, enum transport_stage stage, const char *why)
{
    struct exec_call *call = context;
    bool before = stage == STAGE_START && !boot_heard(call->boot)->answered;
    call->stage = before ? STAGE_CONNECT : stage;
    call->why = mem_strdup(why);
    loop_timer_set(call->last_words, boot_heard(call->boot)->cut ? LAST_WORDS_MS : 0);
    check_last_words(call);
}

/* The command */

static void exited(void *context, int wait_status)
{
    struct exec_call *call = context;
    call->exited = true;
    call->wait_status = wait_status;
    check_last_words(call);
    if (!call->is_up || (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0))
        return;
    char *end AUTO_FREE = describe_end(call);
    const char *last = call->errors.lines.last;
    char *why AUTO_FREE = mem_printf("%s%s%s", end, last[0] != '\0' ? ": " : "", last);
    call->events->lost(call->events_context, why);
}

/* Starts it with an end of a socket as its stdin and stdout, and of a pipe as its stderr. */
static int start_command(struct exec_call *call, const struct strv *argv, struct error *err)
{
    char *path AUTO_FREE = child_find(argv->items[0], getenv("PATH"), NULL, err);
    int stream[2] AUTO_FD_PAIR = {-1, -1};
    if (path == NULL)
        return -1;
    int errors_fd AUTO_FD =
        stderr_pipe_open(&call->errors, call->exec->room->loop, tell, check_last_words, call);
    if (errors_fd < 0 || fd_socketpair(stream) < 0)
        return error_errno(err, errno, "cannot create the streams for %s", argv->items[0]);
    struct child_spec spec = {.path = path,
                              .argv = strv_items(argv),
                              .fds = {stream[1], stream[1], errors_fd},
                              .keep_fd = -1};
    pid_t pid = helpers_start(call->exec->room->helpers, &spec, exited, call, err);
    if (pid < 0)
        return -1;
    call->pid = pid;
    call->fd = stream[0];
    stream[0] = -1;
    return 0;
}

static void start_boot(struct exec_call *call)
{
    static const struct boot_events events = {boot_stage, hand_over, boot_failed};
    const struct transport_room *room = call->exec->room;
    char *unique AUTO_FREE = mem_printf("%s.%d", room->job_id, call->target->node);
    struct boot_config config = {.loop = room->loop,
                                 .fd = call->fd,
                                 .image = room->image,
                                 .unique = unique,
                                 .limit_ms = room->limit_ms};
    call->boot = boot_create(&config, &events, call);
}

static void call_begin(struct exec_call *call)
{
    struct error err = ERROR_INIT;
    AUTO_STRV struct strv argv = STRV_INIT;
    bool is_agent = call->exec->boot_word == NULL;
    enum transport_stage stage = is_agent ? STAGE_AGENT : STAGE_CONNECT;
    call->events->stage(call->events_context, stage);
    if (exec_template_fill(&call->exec->words, call->target, call->exec->boot_word, &argv, &err) <
            0 ||
        start_command(call, &argv, &err) < 0) {
        report_failure(call, stage, err.text);
        return;
    }
    call->program = mem_strdup(text_base_name(argv.items[0]));
    if (is_agent)
        hand_over(call); /* it speaks frames from its first byte on */
    else
        start_boot(call);
}

/* The transport: its queue. */

static void begin_next(void *context)
{
    struct exec_transport *exec = context;
    struct exec_call *call = TAILQ_FIRST(&exec->queue);
    if (call == NULL)
        return;
    TAILQ_REMOVE(&exec->queue, call, place);
    call->phase = RUNNING;
    exec->running++;
    next_turn(exec);
    call_begin(call); /* last: the call may be hung up in there */
}

static void hang_up(struct transport_call *transport_call)
{
    struct exec_call *call = (struct exec_call *)transport_call;
    settle(call);
    boot_destroy(call->boot);
    loop_timer_destroy(call->last_words);
    stderr_pipe_close(&call->errors);
    fd_close(&call->fd);
    if (call->pid > 0 && !call->exited)
        helpers_let_go(call->exec->room->helpers, call->pid);
    buf_destroy(&call->complaints);
    free(call->program);
    free(call->why);
    free(call);
}

static struct transport_call *exec_transport_call(void *context,
                                                  const struct transport_target *target,
                                                  const struct transport_events *events,
                                                  void *events_context)
{
    struct exec_transport *exec = context;
    if (exec->turn == NULL) {
        TAILQ_INIT(&exec->queue);
        exec->turn = loop_timer_create(exec->room->loop, begin_next, exec);
    }
    struct exec_call *call = MEM_NEW((struct exec_call){.head = {exec_transport(exec).ops},
                                                        .exec = exec,
                                                        .target = target,
                                                        .events = events,
                                                        .events_context = events_context,
                                                        .fd = -1,
                                                        .errors = STDERR_PIPE_INIT,
                                                        .complaints = BUF_INIT(COMPLAINTS_MAX)});
    call->last_words = loop_timer_create(exec->room->loop, last_words_over, call);
    TAILQ_INSERT_TAIL(&exec->queue, call, place);
    next_turn(exec);
    return (struct transport_call *)call;
}

struct transport exec_transport(struct exec_transport *exec)
{
    static const struct transport_ops ops = {.call = exec_transport_call, .hang_up = hang_up};
    return (struct transport){&ops, exec};
}

void exec_transport_close(struct exec_transport *exec)
{
    loop_timer_destroy(exec->turn);
    exec->turn = NULL;
}
