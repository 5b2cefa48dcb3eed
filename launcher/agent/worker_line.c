/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "wire/control.pb-c.h"

enum {
    READ_BATCH = 16,     /* packets in one turn of the loop */
    ASK_AGAIN_MS = 5000, /* if there was no answer */
    WAITS_AGAIN_MS = 1000,
    WAITS_MAX = 16,     /* WAITS in answer to one question */
    STALLED_SETS = 8,   /* process sets of which one worker may report a stall */
    STALL_BURST = 8,    /* stalls that may come at once, */
    STALL_REFILL = 1000 /* and one more in so many milliseconds */
};

struct worker_line {
    const struct worker_line_shared *shared;
    int fd;
    struct loop_fd *watch;
    uint32_t seat;
    bool epoch_told, hosts_due;
    bool asked; /* and has not answered */
    int64_t asked_ms;
    uint32_t round; /* of the last question for WAITS; 0: none */
    int64_t round_ms;
    int waits;   /* that the worker may still send in this round */
    size_t told; /* of the ended ranks */
    bool has_progress;
    uint64_t operations;
    uint32_t stalled[STALLED_SETS]; /* the driver knows these */
    int stalled_count;
    int allowance; /* of stalls */
    int64_t refilled_ms;
};

static void ready(void *context, int what);

struct worker_line *worker_line_create(const struct worker_line_shared *shared, int fd,
                                       uint32_t seat)
{
    struct worker_line *line = mem_alloc(sizeof(*line));
    *line =
        (struct worker_line){.shared = shared, .fd = fd, .seat = seat, .allowance = STALL_BURST};
    line->refilled_ms = loop_now_ms(shared->loop);
    line->watch = loop_fd_create(shared->loop, fd, ready, line);
    loop_fd_watch(line->watch, LOOP_READ);
    return line;
}

static void post_over(const struct worker_line *line, uint32_t set)
{
    Hvdrun__Stall message = HVDRUN__STALL__INIT;
    message.seat = line->seat;
    message.set = set;
    message.over = true;
    post_message(line->shared->post, FRAME_STALL, &message.base);
}

void worker_line_destroy(struct worker_line *line)
{
    if (line == NULL)
        return;
    for (int i = 0; i < line->stalled_count; i++)
        post_over(line, line->stalled[i]);
    loop_fd_destroy(line->watch);
    fd_close(&line->fd);
    free(line);
}

uint32_t worker_line_seat(const struct worker_line *line)
{
    return line->seat;
}

bool worker_line_progress(const struct worker_line *line, uint64_t *operations)
{
    *operations = line->operations;
    return line->has_progress;
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
    struct line_packet packet = {.type = LINE_EPOCH, .epoch = line->shared->ended->epoch};
    int sent = line->epoch_told ? 1 : send_packet(line, &packet);
    line->epoch_told = sent > 0;
    return sent;
}

static int tell_ended(struct worker_line *line)
{
    const struct ended_ranks *ended = line->shared->ended;
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

void worker_line_hosts(struct worker_line *line)
{
    line->hosts_due = true; /* several that wait are one */
    worker_line_tell(line, false);
}

static int ask_waits(struct worker_line *line, int64_t now)
{
    struct line_packet packet = {.type = LINE_ASK_WAITS, .round = line->round + 1};
    if (line->round != 0 && now - line->round_ms < WAITS_AGAIN_MS)
        return 1;
    int sent = send_packet(line, &packet);
    if (sent > 0) {
        line->round++;
        line->round_ms = now;
        line->waits = WAITS_MAX;
    }
    return sent;
}

/* One question at a time: a worker that does not read gets few of them. */
void worker_line_ask(struct worker_line *line, bool waits)
{
    static const struct line_packet packet = {.type = LINE_ASK};
    int64_t now = loop_now_ms(line->shared->loop);
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
        line->shared->closed(line->shared->context, line);
}

void worker_line_tell(struct worker_line *line, bool anew)
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
        line->shared->closed(line->shared->context, line);
    else
        loop_fd_watch(line->watch, sent > 0 ? LOOP_READ : LOOP_READ | LOOP_WRITE);
}

/* From the worker */

static int stalled_at(const struct worker_line *line, uint32_t set)
{
    for (int i = 0; i < line->stalled_count; i++) {
        if (line->stalled[i] == set)
            return i;
    }
    return -1;
}

/* The driver prints every stall that it hears of: a worker must not flood the user's terminal. */
static bool may_report(struct worker_line *line)
{
    int64_t now = loop_now_ms(line->shared->loop);
    int64_t more = (now - line->refilled_ms) / STALL_REFILL;
    if (more > 0) {
        line->allowance =
            more < STALL_BURST - line->allowance ? line->allowance + (int)more : STALL_BURST;
        line->refilled_ms = now;
    }
    return line->allowance-- > 0 || (line->allowance = 0);
}

/* Pairs of first and last. The caller frees it. */
static uint32_t *flat(const struct line_ranks *ranks)
{
    uint32_t *list = mem_array((size_t)ranks->count * 2 + 1, sizeof(*list));
    for (size_t i = 0; i < ranks->count; i++) {
        list[2 * i] = ranks->ranges[i].first;
        list[2 * i + 1] = ranks->ranges[i].last;
    }
    return list;
}

static void post_stall(const struct worker_line *line, struct line_packet *packet)
{
    AUTO_FREE uint32_t *waiting = flat(&packet->waiting);
    AUTO_FREE uint32_t *missing = flat(&packet->missing);
    Hvdrun__Stall message = HVDRUN__STALL__INIT;
    message.seat = line->seat;
    message.set = packet->set;
    message.seconds = packet->seconds;
    message.others = packet->others;
    message.operation = packet->operation;
    message.name = packet->name;
    message.waiting = waiting;
    message.n_waiting = 2 * (size_t)packet->waiting.count;
    message.missing = missing;
    message.n_missing = 2 * (size_t)packet->missing.count;
    message.more_waiting = packet->waiting.more;
    message.more_missing = packet->missing.more;
    message.round = packet->type == LINE_WAITS ? packet->round : 0;
    post_message(line->shared->post, FRAME_STALL, &message.base);
}

static void take_stall(struct worker_line *line, struct line_packet *packet)
{
    bool known = stalled_at(line, packet->set) >= 0;
    if ((!known && line->stalled_count == STALLED_SETS) || !may_report(line))
        return;
    if (!known)
        line->stalled[line->stalled_count++] = packet->set;
    post_stall(line, packet);
}

static void take_waits(struct worker_line *line, struct line_packet *packet)
{
    if (packet->round != line->round || line->waits == 0)
        return;
    line->waits--;
    post_stall(line, packet);
}

static void take_goes_on(struct worker_line *line, uint32_t set)
{
    int at = stalled_at(line, set);
    if (at < 0)
        return;
    line->stalled[at] = line->stalled[--line->stalled_count];
    post_over(line, set);
}

static void take(struct worker_line *line, struct line_packet *packet)
{
    switch (packet->type) {
    case LINE_STALLED: take_stall(line, packet); break;
    case LINE_WAITS: take_waits(line, packet); break;
    case LINE_GOES_ON: take_goes_on(line, packet->set); break;
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
        log_debug(&line->shared->post->log, "closed a line to seat %u: a packet: %s", line->seat,
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
        line->shared->closed(line->shared->context, line);
    else if ((what & LOOP_WRITE) != 0)
        worker_line_tell(line, false);
}
