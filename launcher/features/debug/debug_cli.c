/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun debug` and `hvdrun shell`: the user's terminal at one end of a session
 * (features/debug/session_wire.h). Every key goes to the other end, Ctrl-C and Ctrl-Z too; the
 * session is over when its program has ended, or when this terminal is gone.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/status.h"
#include "cli/control_client.h"
#include "cli/features.h"
#include "features/debug/session_wire.h"
#include "model/plan/mapping.h"
#include "output/terminal.h"

#define TERM_MAX 64
#define LOOK_MS 500 /* nothing tells that we come back from the background */

int debug_check(const struct settings *settings, struct error *err)
{
    const char *text = settings->stop_at_start;
    const char *place = settings_place(settings, OPT_stop_at_start);
    if (text == NULL || text[0] == '\0')
        return 0;
    if (settings_is_elastic(settings))
        return error_usage(
            err, "%s: an elastic job does not wait for a rank that waits for a debugger", place);
    if (settings->warm.count > 0)
        return error_usage(err, "%s: a rank that --warm forks has no start to be stopped at",
                           place);
    if (strcmp(text, "all") == 0 || parse_ranks(text, PLAN_SIZE_MAX - 1, NULL, NULL, err) == 0)
        return 0;
    return error_wrap_usage(err, "%s", place);
}

struct front {
    int fd, signals_fd;
    struct terminal *terminal; /* NULL: stdin is none */
    bool may_read;             /* we are not in the background */
    bool typed_out;            /* nothing more comes from stdin */
    struct buf in, out;        /* from and for the driver */
    int status;                /* -1: not known yet */
    int signal;                /* that ends us; 0: none */
};

static void open_signals(struct front *front)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    front->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 0 by 0: we have no terminal. The driver waits for the first piece. */
static void put_size(struct front *front)
{
    uint32_t rows, columns;
    terminal_size(&rows, &columns);
    if (front->out.length < SESSION_BODY_MAX)
        session_put_size(&front->out, (uint16_t)rows, (uint16_t)columns);
}

static void take_signals(struct front *front)
{
    struct signalfd_siginfo info;
    while (front->signals_fd >= 0 &&
           fd_read(front->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCONT) /* the shell has had the terminal meanwhile */
            terminal_raw_again(front->terminal);
        if (info.ssi_signo == SIGWINCH || info.ssi_signo == SIGCONT)
            put_size(front);
        else
            front->signal = (int)info.ssi_signo;
    }
}

/* What is typed. Without a terminal at both ends, no bytes are the end of the file, which a
 * terminal there would not understand. One that is gone ends us. */
static void take_keys(struct front *front)
{
    char bytes[4096];
    ssize_t got = fd_read(STDIN_FILENO, bytes, sizeof(bytes));
    if (got > 0) {
        session_put(&front->out, SESSION_DATA, bytes, (size_t)got);
        return;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    front->typed_out = true;
    if (front->terminal != NULL)
        front->signal = SIGHUP;
    else
        session_put(&front->out, SESSION_DATA, "", 0);
}

static void say(const char *body, size_t length)
{
    char *text AUTO_FREE = mem_strndup(body, length);
    plain_text(text);
    fprintf(stderr, "hvdrun: %s\n", text);
}

static int take_piece(struct front *front, const struct session_piece *piece, struct error *err)
{
    switch (piece->kind) {
    case SESSION_DATA:
        if (fd_write_all(STDOUT_FILENO, piece->body, piece->length) < 0)
            front->signal = SIGPIPE; /* the reader of our output has gone */
        return 0;
    case SESSION_STATUS:
        front->status = piece->status;
        terminal_restore(front->terminal);
        if (piece->length > 0)
            say((const char *)piece->body, piece->length);
        return 0;
    case SESSION_BROKEN: {
        char *text AUTO_FREE = mem_strndup((const char *)piece->body, piece->length);
        plain_text(text);
        return error_set(err, "the session is over: %s", text);
    }
    case SESSION_SIZE: break;
    }
    return 0;
}

/* -1: the session is broken. */
static int take_bytes(struct front *front, struct error *err)
{
    char bytes[SESSION_BODY_MAX];
    ssize_t got = fd_read(front->fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0)
        return error_set(err, "the session is over: the job has ended");
    buf_append(&front->in, bytes, (size_t)got);
    for (;;) {
        struct session_piece piece;
        size_t used = 0;
        int result = session_take(buf_text(&front->in), front->in.length, true, &piece, &used);
        if (result < 0)
            return error_set(err, "cannot read what the job says; most likely it runs another "
                                  "version of hvdrun");
        if (result == 0 || front->status >= 0 || front->signal != 0)
            return 0;
        if (take_piece(front, &piece, err) < 0)
            return -1;
        buf_consume(&front->in, used);
    }
}

static void flush(struct front *front)
{
    ssize_t put =
        send(front->fd, buf_text(&front->out), front->out.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0)
        buf_consume(&front->out, (size_t)put);
    else if (errno != EAGAIN && errno != EINTR)
        buf_clear(&front->out); /* what the job said last is still to be read */
}

/* Until the program at the other end has ended, or this end. -1: the session broke. */
static int relay(struct front *front, struct error *err)
{
    while (front->status < 0 && front->signal == 0) {
        bool has_room = front->out.length < SESSION_BODY_MAX, may_read = terminal_may_read();
        if (may_read && !front->may_read)
            terminal_raw_again(front->terminal);
        front->may_read = may_read;
        struct pollfd fds[] = {
            {.fd = front->fd, .events = (short)(POLLIN | (front->out.length > 0 ? POLLOUT : 0))},
            {.fd = has_room && !front->typed_out && may_read ? STDIN_FILENO : -1, .events = POLLIN},
            {.fd = front->signals_fd, .events = POLLIN}};
        if (poll(fds, 3, may_read ? -1 : LOOK_MS) < 0 && errno != EINTR)
            return error_errno(err, errno, "cannot wait for the job");
        if (fds[2].revents != 0)
            take_signals(front);
        if (fds[1].revents != 0)
            take_keys(front);
        if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && take_bytes(front, err) < 0)
            return -1;
        if (front->out.length > 0)
            flush(front);
    }
    return 0;
}

/* Returns the exit status; -1: the session broke. */
static int run_front(int fd, bool on_terminal, struct error *err)
{
    struct front front = {.fd = fd, .signals_fd = -1, .may_read = true, .status = -1};
    buf_init(&front.in, 2 * (SESSION_BODY_MAX + SESSION_HEADER));
    buf_init(&front.out, 3 * SESSION_BODY_MAX);
    open_signals(&front);
    front.terminal = on_terminal ? terminal_raw() : NULL;
    put_size(&front);
    int result = relay(&front, err);
    terminal_destroy(front.terminal);
    fd_close(&front.signals_fd);
    buf_destroy(&front.in);
    buf_destroy(&front.out);
    if (result < 0)
        return -1;
    return front.signal != 0 ? 128 + front.signal : front.status;
}

/* Only then can what runs there have one, too. */
static bool has_terminal(void)
{
    return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
}

/* NULL: JSON cannot say it. */
static json_t *request_of(const char *what, const struct control_words *words, struct error *err)
{
    bool said = true;
    char term[TERM_MAX] = "";
    const char *own = getenv("TERM");
    uint32_t rows = 0, columns = 0;
    json_t *argv = words->argv == NULL ? NULL : json_array();
    for (char *const *at = words->argv; at != NULL && *at != NULL; at++)
        said = json_array_append_new(argv, json_string(*at)) == 0 && said;
    if (has_terminal()) {
        snprintf(term, sizeof(term), "%s", own == NULL || own[0] == '\0' ? "dumb" : own);
        terminal_size(&rows, &columns);
    }
    json_t *request = json_pack("{s:s, s:s*, s:s*, s:o*, s:o*, s:s, s:I, s:I}", "do", what, "host",
                                words->host, "with", words->with, "argv", argv, "rank",
                                words->rank >= 0 ? json_integer(words->rank) : NULL, "term", term,
                                "rows", (json_int_t)rows, "columns", (json_int_t)columns);
    if (said && request != NULL) {
        control_client_sign(request, control_forms[words->command].word);
        return request;
    }
    json_decref(request);
    error_usage(err, "%s takes only words in UTF-8: put others into a script on the host",
                control_forms[words->command].word);
    return NULL;
}

static int open_session(const struct job_list *list, const char *what,
                        const struct control_words *words, struct error *err)
{
    json_t *request = request_of(what, words, err);
    int fd AUTO_FD = request == NULL ? -1 : control_client_dial(list, words->job, err);
    json_t *answer = request == NULL ? NULL : control_client_ask(fd, request, err);
    bool is_open = answer != NULL;
    json_decref(answer);
    if (!is_open || words->continues)
        return is_open ? 0 : -1;
    return run_front(fd, has_terminal(), err);
}

int control_debug(const struct job_list *list, const struct control_words *words, struct buf *out,
                  struct error *err)
{
    (void)out;
    return open_session(list, words->continues ? "continue" : "debug", words, err);
}

int control_shell(const struct job_list *list, const struct control_words *words, struct buf *out,
                  struct error *err)
{
    (void)out;
    return open_session(list, "shell", words, err);
}
