/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/mother_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/stderr_pipe.h"
#include "stacks/python.h"

#define IMPORT_LIMIT_MS 120000
#define FORK_LIMIT_MS 120000 /* the machine may be busy */
#define IDLE_MS 1000         /* without a rank that waits, if no more are expected */
#define BATCH_MAX 32         /* ranks; their descriptors are in one message (at most 253) */
#define STARTS_MAX 16        /* for one kind: each module that does not fit costs one */
#define ANSWER_MAX 65536     /* bytes */
#define FILES_OF_A_RANK 4    /* at most */

__asm__(".pushsection .rodata\n.globl mother_py\n.hidden mother_py\n.type mother_py, @object\n"
        "mother_py:\n.incbin \"" HVDRUN_MOTHER "\"\n.byte 0\n.popsection\n");
extern const char mother_py[];

#define BOOT "exec(compile(open(0, 'rb').read(), '" PYTHON_MOTHER_FILE "', 'exec'))"

enum state { IMPORTS, IDLE, FORKS, COLD };

struct mother {
    struct mother_config config;
    struct warm_kind kind;
    const sigset_t *mask;
    enum state state;
    struct warm_ranks waiting, batch; /* of the batch: those that she forks now */
    size_t batch_count;
    int64_t since_ms;     /* of the state */
    struct strv left_out; /* pairs for mother.py: a module, and what to import in its place */
    int starts;
    bool keep;
    pid_t pid;         /* 0: there is no process */
    int socket;        /* -1 likewise */
    int go;            /* for the batch, as in struct held; -1 */
    struct held *held; /* ranks whose pids are known */
    size_t held_count;
    struct loop_fd *watch;
    struct loop_timer *timer; /* the limit of the state */
    struct loop_timer *soon;  /* ranks may be forked */
    struct stderr_pipe output;
};

/* Ranks that wait for a byte of this pipe. All go on at the same time: those that run would take
 * the processors from her while she forks the others. */
struct held {
    int go;
    size_t count;
};

static void start(struct mother *mother);

static void enter(struct mother *mother, enum state state, int64_t limit_ms)
{
    mother->state = state;
    mother->since_ms = clock_mono_ms();
    loop_timer_clear(mother->timer);
    if (limit_ms > 0)
        loop_timer_set(mother->timer, limit_ms);
}

static void release(struct mother *mother)
{
    static const char bytes[BATCH_MAX] = {[0 ... BATCH_MAX - 1] = 'g'};
    for (size_t i = 0; i < mother->held_count; i++) {
        fd_write_all(mother->held[i].go, bytes, mother->held[i].count);
        fd_close(&mother->held[i].go);
    }
    mother->held_count = 0;
}

/* Ranks that she has forked, and whose pids are not known, end with her or by the end of `go`. */
static void end_process(struct mother *mother)
{
    loop_fd_destroy(mother->watch);
    mother->watch = NULL;
    fd_close(&mother->socket);
    fd_close(&mother->go);
    release(mother);
    stderr_pipe_close(&mother->output);
    if (mother->pid > 0 && helpers_has(mother->config.helpers, mother->pid))
        kill(-mother->pid, SIGKILL); /* her session; ranks have their own */
    mother->pid = 0;
}

/* The batch first. */
static struct warm_rank *take_next(struct mother *mother)
{
    struct warm_ranks *list = TAILQ_EMPTY(&mother->batch) ? &mother->waiting : &mother->batch;
    struct warm_rank *rank = TAILQ_FIRST(list);
    if (rank != NULL)
        TAILQ_REMOVE(list, rank, at);
    return rank;
}

static void go_cold(struct mother *mother, const char *why)
{
    end_process(mother);
    enter(mother, COLD, 0);
    log_notice(mother->config.log, "ranks here are not warm: %s", why);
    for (struct warm_rank *rank = take_next(mother); rank != NULL; rank = take_next(mother))
        warm_rank_start(rank);
}

static void put_field(struct buf *message, const char *text)
{
    buf_append(message, text, strlen(text) + 1);
}

static void put_fields(struct buf *message, const struct strv *list)
{
    for (size_t i = 0; i < list->count; i++)
        put_field(message, list->items[i]);
}

static int send_setup(struct mother *mother)
{
    AUTO_BUF struct buf message = BUF_INIT((size_t)1 << 20);
    const char command[2] = {mother->kind.command, '\0'};
    put_field(&message, "setup");
    buf_printf(&message, "%d", (int)getpid());
    buf_putc(&message, '\0');
    put_field(&message, mother->kind.command == 's' ? "script" : command);
    put_field(&message, mother->kind.target);
    for (const char *const *name = mother->config.modules; *name != NULL; name++)
        put_field(&message, *name);
    put_field(&message, "");
    put_fields(&message, &mother->kind.names);
    put_field(&message, "");
    put_fields(&message, &mother->left_out);
    return (int)send(mother->socket, buf_text(&message), message.length, MSG_NOSIGNAL);
}

/* A file in memory with these bytes, at its beginning; -1 and errno. */
static int file_of(const void *bytes, size_t length)
{
    int fd = memfd_create("hvdrun-warm", MFD_CLOEXEC);
    if (fd >= 0 && (fd_write_all(fd, bytes, length) < 0 || lseek(fd, 0, SEEK_SET) < 0))
        fd_close(&fd);
    return fd;
}

static pid_t start_process(struct mother *mother, int source, int output, int theirs,
                           struct error *err)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_copy(&argv, mother->kind.interpreter.items);
    strv_add(&argv, "-c");
    strv_add(&argv, BOOT);
    strv_printf(&argv, "%d", theirs);
    struct child_spec spec = {.path = mother->kind.path,
                              .argv = strv_items(&argv),
                              .envp = strv_items(&mother->kind.env),
                              .wdir = mother->kind.wdir,
                              .fds = {source, output, output},
                              .keep_fd = theirs,
                              .mask = mother->mask,
                              .script_shell = "/bin/sh"};
    return helpers_start(mother->config.helpers, &spec, NULL, NULL, err);
}

static void said(void *context, const char *line)
{
    const struct mother *mother = context;
    log_info(mother->config.log, "while modules were imported: %s", line);
}

/* The field behind this one; empty, at the end, if there is none. */
static const char *next_field(const char *field, const char *end)
{
    const char *next = field + strlen(field) + 1;
    return next < end ? next : end;
}

static void heard_ready(struct mother *mother, const char *seconds, const char *modules)
{
    log_info(mother->config.log, "%s modules were imported in %s s; ranks are forked from there",
             modules, seconds);
    enter(mother, IDLE, 0);
}

static void heard_bad(struct mother *mother, const char *module, const char *reason,
                      const char *instead)
{
    log_info(mother->config.log, "each rank imports %s itself: %s", module, reason);
    strv_add(&mother->left_out, module);
    strv_add(&mother->left_out, instead);
    end_process(mother);
    start(mother);
}

/* No module is at fault. */
static void heard_unfit(struct mother *mother, const char *reason)
{
    char *why AUTO_FREE = mem_printf("before any module is imported: %s", reason);
    go_cold(mother, why);
}

static void heard_stale(struct mother *mother, const char *file)
{
    log_info(mother->config.log, "%s has changed: modules are imported again", file);
    while (!TAILQ_EMPTY(&mother->batch)) {
        struct warm_rank *rank = TAILQ_LAST(&mother->batch, warm_ranks);
        TAILQ_REMOVE(&mother->batch, rank, at);
        TAILQ_INSERT_HEAD(&mother->waiting, rank, at);
    }
    mother->batch_count = 0;
    end_process(mother);
    start(mother);
}

/* 1: it may go on. */
static int take_pid(struct mother *mother, struct warm_rank *rank, pid_t pid)
{
    if (pid <= 0) { /* no more processes: the usual way says why */
        warm_rank_start(rank);
        return 0;
    }
    bool wanted = !rank->cancelled;
    if (wanted) {
        rank->done(rank->context, pid, NULL);
        mother->config.forked(mother->config.context, pid);
    } else {
        kill(pid, SIGKILL);
    }
    warm_rank_destroy(rank);
    return wanted;
}

static void heard_forked(struct mother *mother, const char *field, const char *end)
{
    struct held held = {mother->go, 0};
    mother->go = -1;
    log_info(mother->config.log, "%zu ranks were forked in %.2f s", mother->batch_count,
             (double)(clock_mono_ms() - mother->since_ms) / 1000);
    while (!TAILQ_EMPTY(&mother->batch)) {
        struct warm_rank *rank = take_next(mother);
        int64_t pid = 0;
        parse_int(field, 0, INT32_MAX, &pid, NULL);
        held.count += (size_t)take_pid(mother, rank, (pid_t)pid);
        field = next_field(field, end);
    }
    mother->batch_count = 0;
    mother->starts = 0;
    mother->held = mem_resize_array(mother->held, mother->held_count + 1, sizeof(*mother->held));
    mother->held[mother->held_count++] = held;
    enter(mother, IDLE, 0);
}

/* The descriptors of a batch, in the order in which mother.py takes them. */
static size_t list_descriptors(const struct mother *mother, int payload, int go, int *fds)
{
    const struct warm_rank *rank;
    size_t count = 0;
    fds[count++] = payload;
    fds[count++] = go;
    TAILQ_FOREACH (rank, &mother->batch, at) {
        for (int i = 0; i < 4 && rank->fds[i] >= 0; i++)
            fds[count++] = rank->fds[i];
    }
    return count;
}

static int send_batch(struct mother *mother, int payload, int go)
{
    char text[32] = "batch";
    int fds[2 + BATCH_MAX * FILES_OF_A_RANK];
    size_t count = list_descriptors(mother, payload, go, fds);
    int length = snprintf(text + 6, sizeof(text) - 6, "%zu", mother->batch_count);
    struct iovec part = {text, 6 + (size_t)length + 1};
    union {
        char bytes[CMSG_SPACE(sizeof(fds))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return sendmsg(mother->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static int begin_batch(struct mother *mother)
{
    AUTO_BUF struct buf payload = BUF_INIT((size_t)1 << 30);
    int go[2] AUTO_FD_PAIR = {-1, -1};
    while (mother->batch_count < BATCH_MAX && !TAILQ_EMPTY(&mother->waiting)) {
        struct warm_rank *rank = TAILQ_FIRST(&mother->waiting);
        TAILQ_REMOVE(&mother->waiting, rank, at);
        TAILQ_INSERT_TAIL(&mother->batch, rank, at);
        mother->batch_count++;
        warm_rank_write(rank, &payload);
    }
    int file AUTO_FD = file_of(buf_text(&payload), payload.length);
    if (file < 0 || fd_pipe(go) < 0 || send_batch(mother, file, go[0]) < 0)
        return -1;
    mother->go = go[1];
    go[1] = -1;
    enter(mother, FORKS, FORK_LIMIT_MS);
    return 0;
}

/* In IDLE. */
static void go_on(struct mother *mother)
{
    if (mother->state != IDLE)
        return;
    if (TAILQ_EMPTY(&mother->waiting)) {
        release(mother);
        if (!mother->keep)
            loop_timer_set(mother->timer, IDLE_MS);
    } else if (begin_batch(mother) < 0) {
        char *why AUTO_FREE =
            mem_printf("cannot send them to their interpreter: %s", strerror(errno));
        go_cold(mother, why);
    }
}

static void lost(struct mother *mother)
{
    if (mother->state == IDLE) {
        end_process(mother);
        if (mother->keep)
            start(mother);
    } else {
        go_cold(mother,
                mother->state == IMPORTS
                    ? "the interpreter that imports their modules has ended (-v shows its output)"
                    : "the interpreter that forks them has ended");
    }
}

static void heard(struct mother *mother, const char *text, const char *end)
{
    const char *first = next_field(text, end), *second = next_field(first, end);
    if (strcmp(text, "ready") == 0 && mother->state == IMPORTS)
        heard_ready(mother, first, second);
    else if (strcmp(text, "bad") == 0 && mother->state == IMPORTS)
        heard_bad(mother, first, second, next_field(second, end));
    else if (strcmp(text, "unfit") == 0 && mother->state == IMPORTS)
        heard_unfit(mother, first);
    else if (strcmp(text, "stale") == 0 && mother->state == FORKS)
        heard_stale(mother, first);
    else if (strcmp(text, "forked") == 0 && mother->state == FORKS)
        heard_forked(mother, first, end);
    else
        go_cold(mother, "the interpreter that forks them says what it should not");
    go_on(mother);
}

static void readable(void *context, int what)
{
    struct mother *mother = context;
    char *text AUTO_FREE = mem_alloc(ANSWER_MAX + 2);
    (void)what;
    ssize_t length = recv(mother->socket, text, ANSWER_MAX, MSG_DONTWAIT);
    if (length > 0)
        heard(mother, text, text + length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        lost(mother);
}

static void limit_passed(void *context)
{
    struct mother *mother = context;
    if (mother->state == IMPORTS)
        go_cold(mother, "their modules were not imported in two minutes");
    else if (mother->state == FORKS)
        go_cold(mother, "the interpreter that forks them does not answer");
    else if (mother->state == IDLE && TAILQ_EMPTY(&mother->waiting) && !mother->keep)
        end_process(mother);
}

static int open_process(struct mother *mother, struct error *err)
{
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    int source AUTO_FD = file_of(mother_py, strlen(mother_py));
    if (source < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, errno, "cannot open a socket");
    mother->output = STDERR_PIPE_INIT;
    int output AUTO_FD = stderr_pipe_open(&mother->output, mother->config.loop, said, NULL, mother);
    if (output < 0)
        return error_errno(err, errno, "cannot open a pipe");
    mother->pid = start_process(mother, source, output, ends[1], err);
    if (mother->pid < 0) {
        mother->pid = 0;
        return -1;
    }
    mother->socket = ends[0];
    ends[0] = -1;
    mother->watch = loop_fd_create(mother->config.loop, mother->socket, readable, mother);
    loop_fd_watch(mother->watch, LOOP_READ);
    return send_setup(mother) < 0 ? error_errno(err, errno, "cannot say what to import") : 0;
}

static void start(struct mother *mother)
{
    struct error err = ERROR_INIT;
    if (++mother->starts > STARTS_MAX) {
        go_cold(mother, "too many of their modules cannot be imported before a fork");
        return;
    }
    enter(mother, IMPORTS, IMPORT_LIMIT_MS);
    if (open_process(mother, &err) < 0)
        go_cold(mother, err.text);
}

static void soon(void *context)
{
    go_on(context);
}

struct mother *mother_create(const struct mother_config *config, struct warm_kind *kind,
                             const sigset_t *mask)
{
    struct mother *mother = mem_alloc(sizeof(*mother));
    *mother =
        (struct mother){.config = *config, .kind = *kind, .mask = mask, .socket = -1, .go = -1};
    mother->output = STDERR_PIPE_INIT;
    *kind = (struct warm_kind){0};
    TAILQ_INIT(&mother->waiting);
    TAILQ_INIT(&mother->batch);
    mother->timer = loop_timer_create(config->loop, limit_passed, mother);
    mother->soon = loop_timer_create(config->loop, soon, mother);
    start(mother);
    return mother;
}

void mother_destroy(struct mother *mother)
{
    if (mother == NULL)
        return;
    end_process(mother);
    for (struct warm_rank *rank = take_next(mother); rank != NULL; rank = take_next(mother))
        warm_rank_destroy(rank);
    loop_timer_destroy(mother->timer);
    loop_timer_destroy(mother->soon);
    strv_destroy(&mother->left_out);
    free(mother->held);
    warm_kind_destroy(&mother->kind);
    free(mother);
}

const struct warm_kind *mother_kind(const struct mother *mother)
{
    return &mother->kind;
}

bool mother_is_cold(struct mother *mother)
{
    if (mother->state == IDLE && mother->pid == 0) {
        mother->starts = 0;
        start(mother);
    }
    return mother->state == COLD;
}

void mother_add(struct mother *mother, struct warm_rank *rank)
{
    TAILQ_INSERT_TAIL(&mother->waiting, rank, at);
    loop_timer_set(mother->soon, 0); /* what has collected then is one batch */
}

static void drop(struct mother *mother, struct warm_ranks *list, const void *context)
{
    struct warm_rank *rank;
    TAILQ_FOREACH (rank, list, at) {
        if (rank->context == context)
            break;
    }
    if (rank == NULL)
        return;
    if (list == &mother->batch) { /* she may have forked it: known when she answers */
        rank->cancelled = true;
        rank->context = NULL;
        return;
    }
    TAILQ_REMOVE(list, rank, at);
    warm_rank_destroy(rank);
}

void mother_cancel(struct mother *mother, const void *context)
{
    drop(mother, &mother->waiting, context);
    drop(mother, &mother->batch, context);
}

void mother_keep(struct mother *mother, bool keep)
{
    mother->keep = keep;
}

bool mother_forks(const struct mother *mother)
{
    return mother->state == FORKS;
}
