/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/worker_line.h"
#include "base/fd.h"
#include "base/mem.h"
#include "line/line.h"

enum {
    BACKLOG = 4096,
    ACCEPT_BATCH = 64,      /* in one turn of the loop */
    RETRY_MS = 1000,        /* after an accept that failed for want of descriptors or memory */
    LINES_OF_WORKER = 4,    /* a program and what it runs may each have the library */
    ENDED_MAX = 1024 * 1024 /* ranks in one epoch */
};

#ifndef SO_PEERPIDFD /* of Linux 6.5, which older headers do not know */
#define SO_PEERPIDFD 77
#endif

struct worker_lines {
    struct loop *loop;
    struct post post; /* under the epoch of the lines */
    bool (*seat_of)(void *context, pid_t session, uint32_t *seat);
    void *context;
    int fd;
    char *address;
    struct loop_fd *watch;
    struct loop_timer *retry;
    struct worker_line_shared shared;
    struct worker_line **list;
    size_t count;
    struct ended_ranks ended;
    bool opened; /* the driver knows that this epoch has a line here */
};

static void drop(struct worker_lines *lines, struct worker_line *line)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->list[i] != line)
            continue;
        lines->list[i] = lines->list[--lines->count];
        worker_line_destroy(line);
        return;
    }
}

static void line_closed(void *context, struct worker_line *line)
{
    drop(context, line);
}

/* Backwards: a line that closes gives its place to the last one, which has been told. */
static void tell_all(struct worker_lines *lines, bool anew)
{
    for (size_t i = lines->count; i-- > 0;)
        worker_line_tell(lines->list[i], anew);
}

static void tell_driver(struct worker_lines *lines)
{
    if (lines->opened || lines->count == 0)
        return;
    lines->opened = true;
    post_empty(&lines->post, FRAME_LINE_OPENED);
}

static size_t lines_of(const struct worker_lines *lines, uint32_t seat)
{
    size_t count = 0;
    for (size_t i = 0; i < lines->count; i++)
        count += worker_line_seat(lines->list[i]) == seat;
    return count;
}

/* Whether the process that connected has its number still, so that it is not another one's by now.
 * A kernel that does not know the question (before Linux 6.5, or a sandbox) leaves the user: a
 * process of the same one counts. Without a free descriptor nobody knows, and nobody counts. */
static bool is_the_one(int fd, const struct ucred *peer)
{
    AUTO_FD int process = -1;
    socklen_t length = sizeof(process);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length) == 0 &&
        (syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) == 0 || errno == EPERM))
        return true;
    return (errno == ENOPROTOOPT || errno == ENOSYS) && peer->uid == geteuid();
}

/* The kernel says whose process it was that connected, and no process can leave the session of its
 * worker for that of another one. A process that the agent cannot see has pid 0. */
static bool find_worker(const struct worker_lines *lines, int fd, uint32_t *seat)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
        return false;
    pid_t session = getsid(peer.pid);
    return session > 0 && is_the_one(fd, &peer) && lines->seat_of(lines->context, session, seat);
}

static void admit(struct worker_lines *lines, int fd)
{
    uint32_t seat = 0;
    if (!find_worker(lines, fd, &seat) || lines_of(lines, seat) >= LINES_OF_WORKER) {
        fd_close(&fd);
        return;
    }
    struct worker_line *line = worker_line_create(&lines->shared, fd, seat);
    lines->list = mem_resize_array(lines->list, lines->count + 1, sizeof(struct worker_line *));
    lines->list[lines->count++] = line;
    tell_driver(lines);
    worker_line_tell(line, true);
}

static void accept_ready(void *context, int what)
{
    struct worker_lines *lines = context;
    (void)what;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(lines->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            admit(lines, fd);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            loop_fd_watch(lines->watch, 0);
            loop_timer_set(lines->retry, RETRY_MS);
        }
        return;
    }
}

static void retry(void *context)
{
    const struct worker_lines *lines = context;
    loop_fd_watch(lines->watch, LOOP_READ);
}

static int listen_here(struct worker_lines *lines, struct error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(name);
    lines->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (lines->fd < 0)
        return error_errno(err, errno, "cannot create a socket");
    /* Without a name the kernel chooses a free one. */
    if (bind(lines->fd, (const struct sockaddr *)&name, sizeof(sa_family_t)) < 0 ||
        listen(lines->fd, BACKLOG) < 0 ||
        getsockname(lines->fd, (struct sockaddr *)&name, &length) < 0)
        return error_errno(err, errno, "cannot listen on a socket");
    lines->address = line_address_text(&name, length);
    return lines->address != NULL ? 0 : error_set(err, "the kernel gave a socket no name");
}

struct worker_lines *worker_lines_create(struct loop *loop, const struct post *post,
                                         bool (*seat_of)(void *context, pid_t session,
                                                         uint32_t *seat),
                                         void *context, struct error *err)
{
    struct worker_lines *lines = mem_alloc(sizeof(*lines));
    *lines = (struct worker_lines){.loop = loop, .fd = -1, .seat_of = seat_of, .context = context};
    post_init_part(&lines->post, post, post->epoch);
    lines->ended.epoch = post->epoch;
    lines->shared = (struct worker_line_shared){.loop = loop,
                                                .post = &lines->post,
                                                .ended = &lines->ended,
                                                .closed = line_closed,
                                                .context = lines};
    lines->retry = loop_timer_create(loop, retry, lines);
    if (listen_here(lines, err) < 0) {
        worker_lines_destroy(lines);
        return NULL;
    }
    lines->watch = loop_fd_create(loop, lines->fd, accept_ready, lines);
    loop_fd_watch(lines->watch, LOOP_READ);
    return lines;
}

void worker_lines_destroy(struct worker_lines *lines)
{
    if (lines == NULL)
        return;
    while (lines->count > 0)
        drop(lines, lines->list[0]);
    free(lines->list);
    free(lines->ended.list);
    loop_timer_destroy(lines->retry);
    if (lines->watch != NULL)
        loop_fd_destroy(lines->watch);
    fd_close(&lines->fd);
    free(lines->address);
    free(lines);
}

const char *worker_lines_address(const struct worker_lines *lines)
{
    return lines->address;
}

void worker_lines_begin(struct worker_lines *lines, uint32_t epoch)
{
    if (lines->ended.epoch == epoch)
        return; /* what was learnt since then holds */
    lines->ended.epoch = lines->post.epoch = epoch;
    lines->ended.count = 0;
    lines->opened = false;
    tell_driver(lines);
    tell_all(lines, true);
}

/* Doubles its room, since each loss may bring only one rank. */
static void add_ended(struct ended_ranks *ended, const struct line_ended *rank)
{
    if ((ended->count & (ended->count - 1)) == 0)
        ended->list = mem_resize_array(ended->list, ended->count == 0 ? 1 : 2 * ended->count,
                                       sizeof(*ended->list));
    ended->list[ended->count++] = *rank;
}

void worker_lines_ended(struct worker_lines *lines, uint32_t epoch,
                        const Hvdrun__RanksEnded *message)
{
    bool fits = epoch == lines->ended.epoch && message->n_how == message->n_ranks &&
                message->n_code == message->n_ranks &&
                message->n_ranks <= ENDED_MAX - lines->ended.count;
    for (size_t i = 0; fits && i < message->n_ranks; i++) {
        struct line_ended rank = {.rank = message->ranks[i],
                                  .how = (uint8_t)message->how[i],
                                  .code = (uint8_t)message->code[i]};
        add_ended(&lines->ended, &rank);
    }
    if (fits)
        tell_all(lines, false);
}

bool worker_lines_hosts(struct worker_lines *lines, uint32_t seat)
{
    bool found = false;
    for (size_t i = lines->count; i-- > 0;) {
        if (worker_line_seat(lines->list[i]) != seat)
            continue;
        found = true;
        worker_line_hosts(lines->list[i]);
    }
    return found;
}

/* Backwards, as tell_all(). */
void worker_lines_ask(struct worker_lines *lines, bool waits)
{
    for (size_t i = lines->count; i-- > 0;)
        worker_line_ask(lines->list[i], waits);
}

bool worker_lines_progress(const struct worker_lines *lines, uint32_t seat, uint64_t *operations)
{
    uint64_t one = 0;
    bool known = false;
    *operations = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (worker_line_seat(lines->list[i]) != seat || !worker_line_progress(lines->list[i], &one))
            continue;
        known = true;
        *operations += one;
    }
    return known;
}
