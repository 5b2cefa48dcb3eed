/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/worker_stalls.h"
#include "base/fd.h"
#include "base/mem.h"
#include "line/line.h"
#include "line/packet.h"

enum {
    BACKLOG = 4096,
    ACCEPT_BATCH = 64,       /* in one turn of the loop */
    RETRY_MS = 1000,         /* after an accept that failed for want of descriptors or memory */
    LINES_OF_WORKER = 4,     /* a program and what it runs may each have the library */
    ENDED_MAX = 1024 * 1024, /* ranks in one epoch */
    READ_BATCH = 16,         /* packets in one turn of the loop */
    ASK_AGAIN_MS = 5000      /* if there was no answer */
};

#ifndef SO_PEERPIDFD /* of Linux 6.5, which older headers do not know */
#define SO_PEERPIDFD 77
#endif

/* Ranks of one epoch that have ended, in the order in which the driver named them. */
struct ended_ranks {
    uint32_t epoch;
    struct line_ended *list;
    size_t count, room;
};

/* One connection of a worker. */
struct worker_line {
    struct worker_lines *lines;
    int fd;
    struct loop_fd *watch;
    uint32_t seat;
    bool epoch_told, hosts_due;
    bool asked; /* and has not answered */
    int64_t asked_ms;
    size_t told; /* of the ended ranks */
    bool has_progress;
    uint64_t operations;
    struct worker_stalls stalls;
};

struct worker_lines {
    struct loop *loop;
    struct post post; /* under the epoch of the lines */
    bool (*seat_of)(void *context, pid_t session, uint32_t *seat);
    void *context;
    int fd;
    char *address;
    struct loop_fd *watch;
    struct loop_timer *retry;
    struct worker_line **list;
    size_t count;
    struct ended_ranks ended;
    bool opened; /* the driver knows that this epoch has a line here */
};

/* One line */

static void drop(struct worker_line *line)
{
    struct worker_lines *lines = line->lines;
    size_t at = 0;
    while (lines->list[at] != line)
        at++;
    lines->list[at] = lines->list[--lines->count];
    worker_stalls_end(&line->stalls);
    loop_fd_destroy(line->watch);
    fd_close(&line->fd);
    free(line);
}

/* To the worker */

/* 1: sent; 0: not now; -1: the line is over. */
static int send_packet(const struct worker_line *line, const struct line_packet *packet)
{
    uint8_t bytes[LINE_PACKET_MAX];
    size_t length = line_packet_put(packet, bytes);
    if (send(line->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 1;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

static int tell_epoch(struct worker_line *line)
{
    struct line_packet packet = {.type = LINE_EPOCH, .epoch = line->lines->ended.epoch};
    int sent = line->epoch_told ? 1 : send_packet(line, &packet);
    line->epoch_told = sent > 0;
    return sent;
}

static int tell_ended(struct worker_line *line)
{
    const struct ended_ranks *ended = &line->lines->ended;
    int sent = 1;
    while (sent > 0 && line->told < ended->count) {
        struct line_packet packet = {.type = LINE_ENDED, .epoch = ended->epoch};
        size_t left = ended->count - line->told;
        packet.ended_count = (uint16_t)(left < LINE_ENDED_MAX ? left : LINE_ENDED_MAX);
        memcpy(packet.ended, ended->list + line->told,
               packet.ended_count * sizeof(packet.ended[0]));
        sent = send_packet(line, &packet);
        if (sent > 0)
            line->told += packet.ended_count;
    }
    return sent;
}

static int tell_hosts(struct worker_line *line)
{
    struct line_packet packet = {.type = LINE_HOSTS};
    int sent = line->hosts_due ? send_packet(line, &packet) : 1;
    line->hosts_due = sent <= 0;
    return sent;
}

static int ask_waits(struct worker_line *line, int64_t now)
{
    struct line_packet packet = {.type = LINE_ASK_WAITS,
                                 .round = worker_stalls_round(&line->stalls, now)};
    if (packet.round == 0)
        return 1;
    int sent = send_packet(line, &packet);
    if (sent > 0)
        worker_stalls_asked(&line->stalls, now);
    return sent;
}

/* One question at a time: a worker that does not read gets few of them. */
static void ask(struct worker_line *line, bool waits)
{
    static const struct line_packet packet = {.type = LINE_ASK};
    int64_t now = loop_now_ms(line->lines->loop);
    if (line->asked && now - line->asked_ms < ASK_AGAIN_MS)
        return;
    int sent = waits ? ask_waits(line, now) : 1;
    if (sent > 0)
        sent = send_packet(line, &packet);
    if (sent > 0) {
        line->asked = true;
        line->asked_ms = now;
    }
    if (sent < 0)
        drop(line);
}

static void tell(struct worker_line *line, bool anew)
{
    if (anew) {
        line->epoch_told = false;
        line->told = 0;
    }
    int sent = tell_epoch(line);
    if (sent > 0)
        sent = tell_ended(line);
    if (sent > 0)
        sent = tell_hosts(line);
    if (sent < 0)
        drop(line);
    else
        loop_fd_watch(line->watch, sent > 0 ? LOOP_READ : LOOP_READ | LOOP_WRITE);
}

/* From the worker */

static void take(struct worker_line *line, struct line_packet *packet)
{
    switch (packet->type) {
    case LINE_STALLED:
    case LINE_WAITS:
    case LINE_GOES_ON:
        worker_stalls_take(&line->stalls, packet, loop_now_ms(line->lines->loop));
        break;
    case LINE_PROGRESS:
        line->asked = false;
        line->has_progress = true;
        line->operations = packet->operations;
        break;
    case LINE_EPOCH:
    case LINE_ENDED:
    case LINE_HOSTS:
    case LINE_ASK:
    case LINE_ASK_WAITS: /* only agents send these */
    case LINE_UNKNOWN: break;
    }
}

/* 1: there may be more; 0: not now; -1: the line is over. */
static int read_packet(struct worker_line *line)
{
    uint8_t bytes[LINE_PACKET_MAX];
    struct line_packet packet;
    struct error err = ERROR_INIT;
    ssize_t length = recv(line->fd, bytes, sizeof(bytes), MSG_TRUNC | MSG_DONTWAIT);
    if (length < 0 && errno == ECONNRESET)
        return 1; /* once: it did not read all, and what it sent is still there */
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (length == 0)
        return -1;
    if (line_packet_get(bytes, (size_t)length, &packet, &err) < 0) {
        log_debug(&line->lines->post.log, "closed a line to seat %u: a packet: %s", line->seat,
                  err.text);
        return -1;
    }
    take(line, &packet);
    return 1;
}

static void ready(void *context, int what)
{
    struct worker_line *line = context;
    int more = 1;
    for (int i = 0; (what & LOOP_READ) != 0 && i < READ_BATCH && more > 0; i++)
        more = read_packet(line);
    if (more < 0)
        drop(line);
    else if ((what & LOOP_WRITE) != 0)
        tell(line, false);
}

/* All lines */

/* Backwards: a line that closes gives its place to the last one, which has been told. */
static void tell_all(struct worker_lines *lines, bool anew)
{
    for (size_t i = lines->count; i-- > 0;)
        tell(lines->list[i], anew);
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
        count += lines->list[i]->seat == seat;
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
    struct worker_line *line =
        MEM_NEW((struct worker_line){.lines = lines, .fd = fd, .seat = seat});
    worker_stalls_begin(&line->stalls, &lines->post, seat, loop_now_ms(lines->loop));
    line->watch = loop_fd_create(lines->loop, fd, ready, line);
    MEM_ADD(lines->list, lines->count) = line;
    tell_driver(lines);
    tell(line, true);
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
    struct worker_lines *lines = MEM_NEW(
        (struct worker_lines){.loop = loop, .fd = -1, .seat_of = seat_of, .context = context});
    post_init_part(&lines->post, post, post->epoch);
    lines->ended.epoch = post->epoch;
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
        drop(lines->list[0]);
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

void worker_lines_ended(struct worker_lines *lines, uint32_t epoch,
                        const Hvdrun__RanksEnded *message)
{
    bool fits = epoch == lines->ended.epoch && message->n_how == message->n_ranks &&
                message->n_code == message->n_ranks &&
                message->n_ranks <= ENDED_MAX - lines->ended.count;
    for (size_t i = 0; fits && i < message->n_ranks; i++) {
        struct ended_ranks *ended = &lines->ended;
        MEM_ADD_ROOM(ended->list, ended->count, ended->room) =
            (struct line_ended){.rank = message->ranks[i],
                                .how = (uint8_t)message->how[i],
                                .code = (uint8_t)message->code[i]};
    }
    if (fits)
        tell_all(lines, false);
}

bool worker_lines_hosts(struct worker_lines *lines, uint32_t seat)
{
    bool found = false;
    for (size_t i = lines->count; i-- > 0;) {
        struct worker_line *line = lines->list[i];
        if (line->seat != seat)
            continue;
        found = true;
        line->hosts_due = true; /* several that wait are one */
        tell(line, false);
    }
    return found;
}

/* Backwards, as tell_all(). */
void worker_lines_ask(struct worker_lines *lines, bool waits)
{
    for (size_t i = lines->count; i-- > 0;)
        ask(lines->list[i], waits);
}

bool worker_lines_progress(const struct worker_lines *lines, uint32_t seat, uint64_t *operations)
{
    bool known = false;
    *operations = 0;
    for (size_t i = 0; i < lines->count; i++) {
        const struct worker_line *line = lines->list[i];
        if (line->seat == seat && line->has_progress) {
            known = true;
            *operations += line->operations;
        }
    }
    return known;
}
