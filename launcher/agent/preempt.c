/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preempt.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "io/child.h"

#define STDOUT_MAX ((size_t)4096)
#define STDERR_MAX ((size_t)512) /* of its end */
#define WARNINGS_MAX 16          /* distinct ones, then no more */
#define WHY_MAX 200
#define SECONDS_MAX 31536000.0

struct preempt {
    struct loop *loop;
    struct loop_timer *timer; /* the next question, or the limit of the running probe */
    struct strv words;
    int64_t period_ms, limit_ms;
    const struct log *log;
    void (*notice)(void *context, bool has_deadline, int64_t within_ms, const char *why);
    void *context;
    pid_t pid;
    bool overdue;   /* it was killed at its limit */
    bool abandoned; /* it was killed, and what it says does not count */
    bool paused;
    bool over;  /* the deadline is known */
    int fds[2]; /* its stdout and stderr; -1: at end of file */
    struct loop_fd *watches[2];
    struct buf text[2]; /* the beginning of its stdout, the end of its stderr */
    bool noticed;       /* a notice without a deadline was given */
    struct strv warned;
};

static void close_stream(struct preempt *preempt, int which)
{
    loop_fd_destroy(preempt->watches[which]);
    preempt->watches[which] = NULL;
    fd_close(&preempt->fds[which]);
}

void preempt_destroy(struct preempt *preempt)
{
    if (preempt == NULL)
        return;
    if (preempt->pid > 0)
        kill(-preempt->pid, SIGKILL);
    for (int i = 0; i < 2; i++) {
        close_stream(preempt, i);
        buf_destroy(&preempt->text[i]);
    }
    loop_timer_destroy(preempt->timer);
    strv_destroy(&preempt->words);
    strv_destroy(&preempt->warned);
    free(preempt);
}

/* Once for each text; a probe that puts the time into it must not fill the log either. */
static void warn(struct preempt *preempt, const char *text)
{
    for (size_t i = 0; i < preempt->warned.count; i++) {
        if (strcmp(preempt->warned.items[i], text) == 0)
            return;
    }
    if (preempt->warned.count >= WARNINGS_MAX)
        return;
    strv_add(&preempt->warned, text);
    log_warning(preempt->log, "preemption probe %s: %s; it is asked again every %.3g s",
                preempt->words.items[0], text, (double)preempt->period_ms / 1000);
    if (preempt->warned.count == WARNINGS_MAX)
        log_warning(preempt->log, "preemption probe %s: further warnings are not shown",
                    preempt->words.items[0]);
}

/* What is more than wanted is read all the same, so that the probe does not wait for us. False:
 * nothing is there now, or ever. */
static bool read_stream(struct preempt *preempt, int which)
{
    char bytes[4096];
    struct buf *text = &preempt->text[which];
    ssize_t got = preempt->fds[which] < 0 ? 0 : fd_read(preempt->fds[which], bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        close_stream(preempt, which);
        return false;
    }
    size_t length = (size_t)got, room = text->limit - text->length;
    if (which == 0) {
        buf_append(text, bytes, length < room ? length : room);
        return true;
    }
    size_t kept = length < STDERR_MAX ? length : STDERR_MAX;
    if (text->length + kept > STDERR_MAX)
        buf_consume(text, text->length + kept - STDERR_MAX);
    buf_append(text, bytes + length - kept, kept);
    return true;
}

static void stdout_ready(void *context, int what)
{
    (void)what;
    read_stream(context, 0);
}

static void stderr_ready(void *context, int what)
{
    (void)what;
    read_stream(context, 1);
}

static void close_pair(int (*ends)[2])
{
    fd_close(&(*ends)[0]);
    fd_close(&(*ends)[1]);
}
#define AUTO_FD_PAIR __attribute__((cleanup(close_pair)))

static int spawn(struct preempt *preempt, struct error *err)
{
    char *path AUTO_FREE = child_find(preempt->words.items[0], getenv("PATH"), NULL, err);
    if (path == NULL)
        return -1;
    int out[2] AUTO_FD_PAIR = {-1, -1}, errors[2] AUTO_FD_PAIR = {-1, -1};
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (null_fd < 0 || fd_pipe(out) < 0 || fd_pipe(errors) < 0)
        return error_errno(err, errno, "cannot be started");
    sigset_t mask; /* ours blocks what the loop hands out */
    sigemptyset(&mask);
    const struct child_spec spec = {.path = path,
                                    .argv = preempt->words.items,
                                    .envp = environ,
                                    .fds = {null_fd, out[1], errors[1]},
                                    .keep_fd = -1,
                                    .die_with_parent = true,
                                    .mask = &mask,
                                    .script_shell = "/bin/sh"};
    pid_t pid = child_spawn(&spec, NULL, err);
    if (pid < 0)
        return -1;
    preempt->pid = pid;
    preempt->fds[0] = out[0];
    preempt->fds[1] = errors[0];
    out[0] = errors[0] = -1;
    for (int i = 0; i < 2; i++) {
        fd_nonblock(preempt->fds[i]);
        preempt->watches[i] = loop_fd_create(preempt->loop, preempt->fds[i],
                                             i == 0 ? stdout_ready : stderr_ready, preempt);
        loop_fd_watch(preempt->watches[i], LOOP_READ);
    }
    return 0;
}

static void ask(struct preempt *preempt)
{
    struct error err = ERROR_INIT;
    preempt->overdue = preempt->abandoned = false;
    buf_clear(&preempt->text[0]);
    buf_clear(&preempt->text[1]);
    bool started = spawn(preempt, &err) == 0;
    if (!started)
        warn(preempt, err.text);
    loop_timer_set(preempt->timer, started ? preempt->limit_ms : preempt->period_ms);
}

static void timer_fire(void *context)
{
    struct preempt *preempt = context;
    if (preempt->pid == 0) {
        ask(preempt);
        return;
    }
    preempt->overdue = true;
    kill(-preempt->pid, SIGKILL); /* its exit comes through the reaper */
}

/* A piece of what somebody else wrote, without control bytes and not too long. The caller's. */
static char *clean(const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)text[0]))
        text++, length--;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    char *line = mem_strndup(text, length < WHY_MAX ? length : WHY_MAX);
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\t')
            *at = ' ';
        else if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
            *at = '?';
    }
    return line;
}

static char *last_line(const char *text)
{
    size_t end = strlen(text);
    while (end > 0 && isspace((unsigned char)text[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    return clean(text + start, end - start);
}

/* "SECONDS reason" or "reason": true when the first word is a number of seconds. */
static bool take_seconds(const char *line, int64_t *within_ms, size_t *length)
{
    double seconds = 0;
    *length = strcspn(line, " ");
    if (*length == 0 || strspn(line, "0123456789.") != *length)
        return false;
    char *word AUTO_FREE = mem_strndup(line, *length);
    if (parse_double(word, 0, SECONDS_MAX, &seconds, NULL) < 0)
        return false;
    *within_ms = (int64_t)(seconds * 1000);
    return true;
}

/* `notice` may destroy us, so nothing is touched after it. */
static void take_notice(struct preempt *preempt)
{
    const char *text = buf_text(&preempt->text[0]);
    char *line AUTO_FREE = clean(text, strcspn(text, "\n"));
    int64_t within_ms = 0;
    size_t word = 0;
    bool has_deadline = take_seconds(line, &within_ms, &word);
    char *why AUTO_FREE = has_deadline ? clean(line + word, strlen(line + word)) : mem_strdup(line);
    preempt->over = has_deadline;
    if (!has_deadline)
        loop_timer_set(preempt->timer, preempt->period_ms);
    if (preempt->noticed && !has_deadline)
        return;
    preempt->noticed = true;
    preempt->notice(preempt->context, has_deadline, within_ms,
                    why[0] != '\0' ? why : "the preemption probe says so");
}

static void warn_of_end(struct preempt *preempt, int wait_status)
{
    char *said AUTO_FREE = last_line(buf_text(&preempt->text[1]));
    const char *colon = said[0] != '\0' ? ": " : "";
    char *text AUTO_FREE = NULL;
    if (preempt->overdue)
        text = mem_printf("it did not end within %.3g s and was killed%s%s",
                          (double)preempt->limit_ms / 1000, colon, said);
    else if (WIFSIGNALED(wait_status))
        text = mem_printf("it was killed by signal %d%s%s", WTERMSIG(wait_status), colon, said);
    else
        text = mem_printf("it ended with status %d%s%s", WEXITSTATUS(wait_status), colon, said);
    warn(preempt, text);
}

bool preempt_exited(struct preempt *preempt, const struct reaper_exit *exit)
{
    if (preempt == NULL || preempt->pid == 0 || exit->pid != preempt->pid)
        return false;
    /* What it started in its group goes with it. All that it wrote itself is in the pipes now; the
     * number of reads is bounded, since somebody who left the group may go on writing. */
    kill(-preempt->pid, SIGKILL);
    preempt->pid = 0;
    for (int i = 0; i < 2; i++) {
        for (int reads = 0; reads < 64 && read_stream(preempt, i); reads++) {
        }
        close_stream(preempt, i);
    }
    int status = exit->wait_status;
    loop_timer_clear(preempt->timer);
    if (preempt->abandoned) {
        if (!preempt->paused)
            loop_timer_set(preempt->timer, 0);
        return true;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        take_notice(preempt);
        return true;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        warn_of_end(preempt, status);
    loop_timer_set(preempt->timer, preempt->period_ms);
    return true;
}

void preempt_pause(struct preempt *preempt, bool paused)
{
    if (preempt == NULL || preempt->paused == paused)
        return;
    preempt->paused = paused;
    if (!paused) {
        if (preempt->pid == 0 && !preempt->over)
            loop_timer_set(preempt->timer, 0);
        return;
    }
    loop_timer_clear(preempt->timer);
    if (preempt->pid == 0)
        return;
    preempt->abandoned = true;
    kill(-preempt->pid, SIGKILL);
}

pid_t preempt_pid(const struct preempt *preempt)
{
    return preempt == NULL ? 0 : preempt->pid;
}

void preempt_set_limit(struct preempt *preempt, int64_t limit_ms)
{
    preempt->limit_ms = limit_ms;
}

struct preempt *preempt_create(struct loop *loop, char *const *words, size_t count,
                               int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context)
{
    struct preempt *preempt = mem_alloc(sizeof(*preempt));
    *preempt = (struct preempt){.loop = loop,
                                .period_ms = period_ms,
                                .limit_ms = PREEMPT_LIMIT_MS,
                                .log = log,
                                .notice = notice,
                                .context = context,
                                .fds = {-1, -1}};
    for (size_t i = 0; i < count; i++)
        strv_add(&preempt->words, words[i]);
    buf_init(&preempt->text[0], STDOUT_MAX);
    buf_init(&preempt->text[1], STDERR_MAX);
    preempt->timer = loop_timer_create(loop, timer_fire, preempt);
    loop_timer_set(preempt->timer, 0);
    return preempt;
}
