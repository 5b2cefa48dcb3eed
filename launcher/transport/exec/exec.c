/* SPDX-License-Identifier: Apache-2.0 */
/* The exec transport: a queue of calls, which begin in their order, so many at the same time. */
#include "transport/transports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "model/exit/signal_name.h"
#include "transport/boot/boot.h"
#include "transport/exec/words.h"

/*
 * One call, without the queue: the command, its stderr, the boot over it.
 *
 *   begin -> the command runs, boot over its stdin and stdout -> up
 *         -> boot fails; if the stream has just ended, the call waits for the command's last words
 *            and its exit status, LAST_WORDS_MS at most -> failed
 */

struct exec_command { /* what leads to hosts; its parts outlive the calls */
    const struct transport_room *room;
    const struct strv *words; /* of the template */
    const char *boot_word;    /* BOOT_COMMAND; NULL: the command is the agent itself */
    bool same_machine;
    bool is_ssh; /* stderr is that of OpenSSH: its complaints are translated */
};

#define LAST_WORDS_MS 1000
#define COMPLAINTS_MAX ((size_t)8192) /* of stderr, kept for the failure's message */

struct exec_call {
    struct exec_command command;
    const struct transport_target *target;
    const struct transport_events *events;
    void *events_context;
    void (*over)(void *entry);
    void *entry;
    struct boot *boot;
    int fd;
    struct loop_timer *last_words;
    struct stderr_pipe errors;
    struct buf complaints;
    char *program; /* argv[0] */
    pid_t pid;
    int wait_status;
    bool exited, is_up, is_over;
    enum transport_stage stage; /* of the failure that waits for the last words */
    char *why;
};

static void report_failure(struct exec_call *call, enum transport_stage stage, const char *why)
{
    call->is_over = true;
    loop_timer_clear(call->last_words);
    call->over(call->entry);
    call->events->failed(call->events_context, stage, why); /* the call may be gone after this */
}

/* "ssh ended with exit status 255" */
static char *describe_end(const struct exec_call *call)
{
    if (!call->exited)
        return mem_printf("%s closed its output", call->program);
    if (WIFSIGNALED(call->wait_status))
        return mem_printf("%s was killed by signal %d (%s)", call->program,
                          WTERMSIG(call->wait_status), strsignal(WTERMSIG(call->wait_status)));
    AUTO_BUF struct buf code = BUF_INIT(64);
    status_text(WEXITSTATUS(call->wait_status), &code);
    return mem_printf("%s ended with %s", call->program, buf_text(&code));
}

/* The stream has ended before any shell said a word: the command's own failure. */
static void explain_command(struct exec_call *call)
{
    struct exec_complaint complaint;
    const char *last = call->errors.lines.last;
    const char *said = last[0] != '\0' ? last : boot_noise(call->boot);
    char *end AUTO_FREE = describe_end(call);
    char *why AUTO_FREE = NULL;
    enum transport_stage stage = STAGE_CONNECT;
    int status = call->exited && WIFEXITED(call->wait_status) ? WEXITSTATUS(call->wait_status) : -1;
    if (exec_complaint_find(buf_text(&call->complaints), call->command.is_ssh, &complaint)) {
        stage = complaint.stage;
        why = mem_printf("%s (%s: %s)", complaint.why, call->program, complaint.line);
    } else if (call->command.is_ssh && login_end_is_plain(status)) {
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
    if (boot_was_cut(call->boot) && !boot_has_answered(call->boot)) {
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

static bool is_waiting(const struct exec_call *call)
{
    return call->why != NULL && !call->is_over;
}

/* The command has ended and its stderr too: nothing more will come. */
static void check_last_words(void *context)
{
    struct exec_call *call = context;
    if (is_waiting(call) && call->exited && call->errors.fd < 0)
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

static void hand_over(struct exec_call *call)
{
    struct transport_stream stream = {.read_fd = call->fd,
                                      .write_fd = call->fd,
                                      .pid = call->pid,
                                      .same_machine = call->command.same_machine};
    call->is_up = call->is_over = true;
    call->fd = -1;
    call->over(call->entry);
    call->events->up(call->events_context, &stream);
}

static void boot_up(void *context)
{
    hand_over(context);
}

static void boot_failed(void *context, enum transport_stage stage, const char *why)
{
    struct exec_call *call = context;
    bool before = stage == STAGE_START && !boot_has_answered(call->boot);
    call->stage = before ? STAGE_CONNECT : stage;
    call->why = mem_strdup(why);
    loop_timer_set(call->last_words, boot_was_cut(call->boot) ? LAST_WORDS_MS : 0);
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
        stderr_pipe_open(&call->errors, call->command.room->loop, tell, check_last_words, call);
    if (errors_fd < 0 || fd_socketpair(stream) < 0)
        return error_errno(err, errno, "cannot create the streams for %s", argv->items[0]);
    struct child_spec spec = {.path = path,
                              .argv = strv_items(argv),
                              .fds = {stream[1], stream[1], errors_fd},
                              .keep_fd = -1};
    pid_t pid = helpers_start(call->command.room->helpers, &spec, exited, call, err);
    if (pid < 0)
        return -1;
    call->pid = pid;
    call->fd = stream[0];
    stream[0] = -1;
    return 0;
}

static void start_boot(struct exec_call *call)
{
    static const struct boot_events events = {boot_stage, boot_up, boot_failed};
    const struct transport_room *room = call->command.room;
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
    bool is_agent = call->command.boot_word == NULL;
    enum transport_stage stage = is_agent ? STAGE_AGENT : STAGE_CONNECT;
    call->events->stage(call->events_context, stage);
    if (exec_template_fill(call->command.words, call->target, call->command.boot_word, &argv,
                           &err) < 0 ||
        start_command(call, &argv, &err) < 0) {
        report_failure(call, stage, err.text);
        return;
    }
    const char *slash = strrchr(argv.items[0], '/');
    call->program = mem_strdup(slash != NULL ? slash + 1 : argv.items[0]);
    if (is_agent)
        hand_over(call); /* it speaks frames from its first byte on */
    else
        start_boot(call);
}

/* `over` comes once when the call is up or has failed, right before that event: its place in the
 * queue is free. */
static struct exec_call *call_create(const struct exec_command *command,
                                     const struct transport_target *target,
                                     const struct transport_events *events, void *events_context,
                                     void (*over)(void *entry), void *entry)
{
    struct exec_call *call = mem_alloc(sizeof(*call));
    *call = (struct exec_call){.command = *command,
                               .target = target,
                               .events = events,
                               .events_context = events_context,
                               .over = over,
                               .entry = entry,
                               .fd = -1,
                               .errors = STDERR_PIPE_INIT,
                               .complaints = BUF_INIT(COMPLAINTS_MAX)};
    call->last_words = loop_timer_create(command->room->loop, last_words_over, call);
    return call;
}

static void call_destroy(struct exec_call *call)
{
    if (call == NULL)
        return;
    boot_destroy(call->boot);
    loop_timer_destroy(call->last_words);
    stderr_pipe_close(&call->errors);
    fd_close(&call->fd);
    if (call->pid > 0 && !call->exited)
        helpers_let_go(call->command.room->helpers, call->pid);
    buf_destroy(&call->complaints);
    free(call->program);
    free(call->why);
    free(call);
}

/* The queue. */

struct queue;

struct queued {
    struct transport_call_head head;
    struct queue *queue;
    struct exec_call *call;
    struct queued *next; /* among those that wait */
    bool waiting, running;
};

struct queue {
    int window; /* 0: no limit */
    int running;
    struct queued *first;
    struct loop_timer *turn; /* calls begin from the loop */
};

static void next_turn(struct queue *queue)
{
    if (queue->first != NULL && (queue->window <= 0 || queue->running < queue->window))
        loop_timer_set(queue->turn, 0);
}

static void leave(struct queued *entry)
{
    struct queue *queue = entry->queue;
    struct queued **at = &queue->first;
    while (entry->waiting && *at != entry)
        at = &(*at)->next;
    if (entry->waiting)
        *at = entry->next;
    if (entry->running)
        queue->running--;
    entry->waiting = entry->running = false;
    next_turn(queue);
}

static void call_over(void *context)
{
    leave(context);
}

static void begin_next(void *context)
{
    struct queue *queue = context;
    struct queued *entry = queue->first;
    if (entry == NULL)
        return;
    queue->first = entry->next;
    entry->waiting = false;
    entry->running = true;
    queue->running++;
    next_turn(queue);
    call_begin(entry->call); /* last: the entry may be hung up in there */
}

static struct queue *queue_of(struct exec_transport *exec)
{
    if (exec->state == NULL) {
        struct queue *queue = mem_alloc(sizeof(*queue));
        *queue = (struct queue){.window = exec->window};
        queue->turn = loop_timer_create(exec->room->loop, begin_next, queue);
        exec->state = queue;
    }
    return exec->state;
}

static struct transport_call *exec_transport_call(void *context,
                                                  const struct transport_target *target,
                                                  const struct transport_events *events,
                                                  void *events_context);

static void hang_up(struct transport_call *call)
{
    struct queued *entry = (struct queued *)call;
    leave(entry);
    call_destroy(entry->call);
    free(entry);
}

static const struct transport_ops exec_ops = {
    .name = "exec", .call = exec_transport_call, .hang_up = hang_up};

static struct transport_call *exec_transport_call(void *context,
                                                  const struct transport_target *target,
                                                  const struct transport_events *events,
                                                  void *events_context)
{
    struct exec_transport *exec = context;
    struct queue *queue = queue_of(exec);
    struct queued *entry = mem_alloc(sizeof(*entry));
    *entry = (struct queued){.head = {&exec_ops}, .queue = queue, .waiting = true};
    const struct exec_command command = {.room = exec->room,
                                         .words = &exec->words,
                                         .boot_word = exec->boot_word,
                                         .same_machine = exec->same_machine,
                                         .is_ssh = exec->is_ssh};
    entry->call = call_create(&command, target, events, events_context, call_over, entry);
    struct queued **end = &queue->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = entry;
    next_turn(queue);
    return (struct transport_call *)entry;
}

struct transport exec_transport(struct exec_transport *exec)
{
    return (struct transport){&exec_ops, exec};
}

void exec_transport_close(struct exec_transport *exec)
{
    struct queue *queue = exec->state;
    if (queue == NULL)
        return;
    loop_timer_destroy(queue->turn);
    free(queue);
    exec->state = NULL;
}
