/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_log.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/log_reader.h"
#include "cli/log_show.h"
#include "driver/control/folder.h"

#define LOOK_MS 1000    /* a missed notice of the kernel costs no more than this */
#define KEY_FIRST 0x10  /* Ctrl-P */
#define KEY_SECOND 0x11 /* Ctrl-Q */

struct follower {
    const struct job_list *list;
    const char *id;
    const struct control_words *words;
    struct log_reader *reader;
    struct log_show *show;
    int watch_fd, signals_fd; /* -1: none */
    struct termios before;    /* of the terminal */
    bool reads_keys, first_key;
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
    char *folder AUTO_FREE = job_folder_path();
    follower->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (follower->watch_fd >= 0)
        inotify_add_watch(follower->watch_fd, folder, IN_MODIFY | IN_CREATE | IN_CLOSE_WRITE);
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
    fd_close(&follower->signals_fd);
    log_reader_destroy(follower->reader);
    log_show_destroy(follower->show);
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
        if (most > 0 && log_show_wants(follower->show, &line))
            keep_line(&last, &line);
    }
    for (size_t i = last.total > most ? last.total - most : 0; i < last.total; i++)
        log_show_line(follower->show, &last.lines[i % most]);
    for (size_t i = 0; i < most; i++)
        free((char *)last.lines[i].text);
    free(last.lines);
}

static int show_all(struct follower *follower, struct error *err)
{
    struct log_line line;
    while (log_reader_next(follower->reader, &line)) {
        if (log_show_wants(follower->show, &line))
            log_show_line(follower->show, &line);
    }
    return log_show_flush(follower->show) == 0 ? 0 : error_errno(err, errno, "cannot write");
}

static void ask_to_stop(const struct follower *follower)
{
    int fd AUTO_FD = control_client_dial_in(follower->list->folder, follower->id, NULL);
    json_t *request = json_pack("{s:s}", "do", "stop");
    json_t *answer = fd < 0 ? NULL : control_client_ask(fd, request, NULL);
    json_decref(answer);
    json_decref(request);
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
        if (show_all(follower, err) < 0)
            return CONTROL_LOG_FAILED;
        if (!runs)
            return CONTROL_LOG_OVER;
        if (await(follower))
            return CONTROL_LOG_LEFT;
    }
}

static int64_t since_ms(const struct control_words *words)
{
    return words->has_time ? clock_wall_ns() / 1000000 - words->time_ms : INT64_MIN;
}

enum control_log_end control_log(const struct job_list *list, const char *id,
                                 const struct control_words *words, struct error *err)
{
    struct follower follower = {.list = list,
                                .id = id,
                                .words = words,
                                .reader = log_reader_create(list->folder, id),
                                .show = log_show_create(words->ranks, since_ms(words)),
                                .watch_fd = -1,
                                .signals_fd = -1};
    bool follows = words->follow || words->command == CONTROL_ATTACH;
    enum control_log_end end = CONTROL_LOG_SHOWN;
    if (follows)
        open_follower(&follower);
    if (words->has_lines)
        show_last(&follower, (size_t)words->lines);
    if (follows)
        end = follow(&follower, err);
    else if (show_all(&follower, err) < 0)
        end = CONTROL_LOG_FAILED;
    close_follower(&follower);
    return end;
}
