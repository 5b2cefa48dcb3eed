/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "cli/control_client.h"
#include "cli/log_reader.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "driver/tell/recent.h"
#include "model/plan/mapping.h"

/*
 * Prints lines of a log with labels, as the job itself did, or as JSON. Lines of stdout go to
 * stdout; all others and the messages of hvdrun go to stderr. JSON goes to stdout.
 */

#define TEXT_MAX ((size_t)256 << 20)
#define FLUSH_BYTES ((size_t)65536)

struct log_show {
    bool *ranks; /* which are wanted; NULL: all, and the messages of hvdrun */
    int64_t since_ms;
    bool json;
    struct buf text; /* for `fd` */
    int fd;
    int errnum;   /* of a failed write; 0 */
    bool goes_on; /* the last line has no end yet; its next part comes without a label */
    int open_rank;
    bool open_stderr;
};

static void want_rank(void *ranks, int64_t rank)
{
    ((bool *)ranks)[rank] = true;
}

static struct log_show log_show_of(const struct control_words *words)
{
    struct log_show show = {.since_ms = INT64_MIN,
                            .json = words->json,
                            .text = BUF_INIT(TEXT_MAX),
                            .fd = STDOUT_FILENO};
    if (words->has_time)
        show.since_ms = clock_wall_ns() / 1000000 - words->time_ms;
    if (words->ranks != NULL) {
        show.ranks = mem_array(PLAN_SIZE_MAX, sizeof(*show.ranks));
        parse_ranks(words->ranks, PLAN_SIZE_MAX - 1, want_rank, show.ranks, NULL);
    }
    return show;
}

static bool log_show_wants(const struct log_show *show, const struct log_line *line)
{
    return line->wall_ms >= show->since_ms &&
           (show->ranks == NULL ||
            (line->rank >= 0 && line->rank < PLAN_SIZE_MAX && show->ranks[line->rank]));
}

/* Writes what has been shown so far. -1: errno. */
static int log_show_flush(struct log_show *show)
{
    if (show->errnum == 0 && fd_write_all(show->fd, buf_text(&show->text), show->text.length) < 0)
        show->errnum = errno;
    buf_clear(&show->text);
    errno = show->errnum;
    return show->errnum == 0 ? 0 : -1;
}

static void turn_to(struct log_show *show, int fd)
{
    if (show->fd != fd || show->text.length > FLUSH_BYTES)
        log_show_flush(show);
    show->fd = fd;
}

/* Ends a line of another rank that has no end yet. */
static void close_line(struct log_show *show)
{
    if (show->goes_on)
        buf_putc(&show->text, '\n');
    show->goes_on = false;
}

static void put_line(struct log_show *show, const struct log_line *line)
{
    bool continues =
        show->goes_on && show->open_rank == line->rank && show->open_stderr == line->is_stderr;
    if (!continues)
        close_line(show);
    turn_to(show, line->is_stderr ? STDERR_FILENO : STDOUT_FILENO);
    if (!continues && line->rank != RECENT_LAUNCHER)
        buf_printf(&show->text, "[%d]<%s>:", line->rank, line->is_stderr ? "stderr" : "stdout");
    buf_append(&show->text, line->text, line->length);
    if (!line->goes_on)
        buf_putc(&show->text, '\n');
    show->goes_on = line->goes_on;
    show->open_rank = line->rank;
    show->open_stderr = line->is_stderr;
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

/* {"time": SECONDS since 1970, "rank": N (null: hvdrun itself), "stream": TEXT, "text": TEXT}, and
 * "goes_on": true if the next line of this rank and stream continues it. */
static void put_json(struct log_show *show, const struct log_line *line)
{
    char *text AUTO_FREE = mem_strndup(line->text, line->length);
    plain_valid(text, strlen(text));
    json_t *object = json_pack("{s:f, s:o, s:s, s:s}", "time", (double)line->wall_ms / 1000, "rank",
                               line->rank < 0 ? json_null() : json_integer(line->rank), "stream",
                               line->is_stderr ? "stderr" : "stdout", "text", text);
    if (line->goes_on)
        json_object_set_new(object, "goes_on", json_true());
    turn_to(show, STDOUT_FILENO);
    json_dump_callback(object, append_piece, &show->text, JSON_COMPACT | JSON_REAL_PRECISION(16));
    buf_putc(&show->text, '\n');
    json_decref(object);
}

static void log_show_line(struct log_show *show, const struct log_line *line)
{
    if (show->json)
        put_json(show, line);
    else
        put_line(show, line);
}

#define ATTACH_LINES 20   /* with which attach begins */
#define LINES_BETWEEN 256 /* two looks at the user's signals */
#define LOOK_MS 1000      /* a missed notice of the kernel costs no more than this */
#define KEY_FIRST 0x10    /* Ctrl-P */
#define KEY_SECOND 0x11   /* Ctrl-Q */

struct follower {
    const struct job_list *list;
    const char *id;
    const struct control_words *words;
    char *log_path; /* the folder of its log, and open */
    int log_folder;
    struct log_reader *reader;
    struct log_show show;
    int watch_fd, signals_fd; /* -1: none */
    struct termios before;    /* of the terminal */
    bool reads_keys, first_key;
    bool told_gap;
};

/* Ctrl-C leaves the job alone, unless --sig-proxy. Only attach has these. */
static void open_signals(struct follower *follower)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    follower->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Keys come one by one and are not shown. A process in the background must not touch the terminal.
 */
static void open_keys(struct follower *follower)
{
    if (tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &follower->before) < 0)
        return;
    struct termios keys = follower->before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_iflag &= ~(tcflag_t)IXON; /* Ctrl-Q would not arrive */
    follower->reads_keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) == 0;
}

static void open_follower(struct follower *follower)
{
    const char *const paths[] = {follower->list->path,
                                 follower->log_path}; /* the end of the job, its output */
    follower->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (size_t i = 0; i < 2 && follower->watch_fd >= 0; i++)
        inotify_add_watch(follower->watch_fd, paths[i], IN_MODIFY | IN_CREATE | IN_CLOSE_WRITE);
    if (follower->words->command != CONTROL_ATTACH)
        return;
    open_signals(follower);
    open_keys(follower);
}

static void close_follower(struct follower *follower)
{
    if (follower->reads_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &follower->before);
    fd_close(&follower->watch_fd);
    fd_close(&follower->log_folder);
    free(follower->log_path);
    fd_close(&follower->signals_fd);
    log_reader_destroy(follower->reader);
    free(follower->show.ranks);
    buf_destroy(&follower->show.text);
}

/* The last `count` lines. */
struct last {
    struct log_line *lines;
    size_t most, total;
};

static void keep_line(struct last *last, const struct log_line *line)
{
    struct log_line *place = &last->lines[last->total % last->most];
    free((char *)place->text);
    *place = *line;
    place->text = mem_dup(line->text, line->length + 1);
    last->total++;
}

static void show_last(struct follower *follower, size_t most)
{
    struct log_line line;
    struct last last = {.lines = mem_array(most, sizeof(*last.lines)), .most = most};
    while (log_reader_next(follower->reader, &line)) {
        if (most > 0 && log_show_wants(&follower->show, &line))
            keep_line(&last, &line);
    }
    size_t hidden = last.total > most ? last.total - most : 0;
    if (hidden > 0 && !follower->words->has_lines)
        fprintf(stderr,
                "hvdrun: %zu earlier lines are not shown; 'hvdrun attach -n all %s' shows "
                "them\n",
                hidden, follower->id);
    for (size_t i = hidden; i < last.total; i++)
        log_show_line(&follower->show, &last.lines[i % most]);
    for (size_t i = 0; i < most; i++)
        free((char *)last.lines[i].text);
    free(last.lines);
}

static void ask_to_stop(const struct follower *follower)
{
    int64_t until_ms = clock_mono_ms() + CONTROL_DIAL_MS;
    int fd AUTO_FD = control_client_dial_in(follower->list, follower->id, until_ms, NULL);
    json_t *request = json_pack("{s:s, s:i}", "do", "stop", "protocol", 1);
    control_client_sign(request, "attach");
    json_decref(control_client_ask(fd, request, NULL));
}

/* True: the user leaves. */
static bool take_signal(const struct follower *follower)
{
    struct signalfd_siginfo info;
    if (follower->signals_fd < 0 ||
        fd_read(follower->signals_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    if (!follower->words->sig_proxy)
        return true;
    ask_to_stop(follower);
    return false;
}

static bool take_keys(struct follower *follower)
{
    unsigned char key = 0;
    ssize_t got = fd_read(STDIN_FILENO, &key, 1);
    if (got <= 0)
        follower->reads_keys = false; /* the terminal is gone */
    bool leaves = got > 0 && follower->first_key && key == KEY_SECOND;
    follower->first_key = got > 0 && key == KEY_FIRST;
    return leaves;
}

/* A line where the log has a gap: before the line that was just read. */
static void tell_gap(struct follower *follower)
{
    if (follower->told_gap || !log_reader_missed(follower->reader))
        return;
    follower->told_gap = true;
    log_show_flush(&follower->show);
    fprintf(stderr, "hvdrun: the log was full (--log-size), so older output is missing here\n");
}

/* The job does not write any more. */
static void tell_cut(struct follower *follower)
{
    if (log_reader_is_cut(follower->reader))
        fprintf(stderr, "hvdrun: the log ends within a line: the disk was full, or hvdrun was "
                        "killed\n");
}

/* 1: the user leaves while a long log is shown. */
static int show_all(struct follower *follower, struct error *err)
{
    struct log_line line;
    bool leaves = false;
    for (size_t i = 1;
         !leaves && follower->show.errnum == 0 && log_reader_next(follower->reader, &line); i++) {
        tell_gap(follower);
        if (log_show_wants(&follower->show, &line))
            log_show_line(&follower->show, &line);
        leaves = i % LINES_BETWEEN == 0 && take_signal(follower);
    }
    if (log_show_flush(&follower->show) < 0)
        return error_errno(err, errno, "cannot write");
    return leaves;
}

/* Waits until something may have happened. True: the user leaves. */
static bool await(struct follower *follower)
{
    char notices[4096];
    struct pollfd fds[] = {{.fd = follower->watch_fd, .events = POLLIN},
                           {.fd = follower->signals_fd, .events = POLLIN},
                           {.fd = follower->reads_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    poll(fds, sizeof(fds) / sizeof(fds[0]), LOOK_MS);
    if (fds[0].revents != 0)
        fd_read(follower->watch_fd, notices, sizeof(notices));
    return take_signal(follower) || (fds[2].revents != 0 && take_keys(follower));
}

/* What the job wrote before its end is shown after its end was noticed. */
static enum control_log_end follow(struct follower *follower, struct error *err)
{
    for (;;) {
        bool runs = job_folder_runs(follower->list->folder, follower->id);
        int shown = show_all(follower, err);
        if (shown < 0)
            return CONTROL_LOG_FAILED;
        if (shown > 0)
            return CONTROL_LOG_LEFT;
        if (!runs) {
            tell_cut(follower);
            return CONTROL_LOG_OVER;
        }
        if (await(follower))
            return CONTROL_LOG_LEFT;
    }
}

/* The folder in the record, or that of jobs. -1: it is gone. */
static int open_log(struct follower *follower, struct error *err)
{
    enum job_record_state state;
    json_t *record = job_record_read(follower->list->folder, follower->id, &state);
    const char *other = json_string_value(json_object_get(record, "log_folder"));
    follower->log_path = other != NULL ? mem_strdup(other) : mem_strdup(follower->list->path);
    json_decref(record);
    follower->log_folder = fd_open(follower->log_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (follower->log_folder < 0)
        return error_errno(err, errno, "cannot open the folder of the log, %s", follower->log_path);
    follower->reader = log_reader_create(follower->log_folder, follower->id);
    return 0;
}

enum control_log_end control_log(const struct job_list *list, const char *id,
                                 const struct control_words *words, struct error *err)
{
    struct follower follower = {.list = list,
                                .id = id,
                                .words = words,
                                .log_folder = -1,
                                .show = log_show_of(words),
                                .watch_fd = -1,
                                .signals_fd = -1};
    bool follows = words->follow || words->command == CONTROL_ATTACH;
    enum control_log_end end = CONTROL_LOG_SHOWN;
    if (open_log(&follower, err) < 0) {
        close_follower(&follower);
        return CONTROL_LOG_FAILED;
    }
    if (follows)
        open_follower(&follower);
    bool attaches = words->command == CONTROL_ATTACH;
    int64_t lines = words->has_lines ? words->lines : attaches ? ATTACH_LINES : -1;
    if (lines >= 0)
        show_last(&follower, (size_t)lines);
    if (follows)
        end = follow(&follower, err);
    else if (show_all(&follower, err) < 0)
        end = CONTROL_LOG_FAILED;
    else if (!job_folder_runs(list->folder, id))
        tell_cut(&follower);
    close_follower(&follower);
    return end;
}
