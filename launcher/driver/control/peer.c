/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "driver/control/later.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define CHUNK ((size_t)4096)

struct control_peer {
    const struct control_ops *ops;
    void *ops_context;
    bool by_root;
    int fd;
    struct loop_fd *ready;
    struct loop_timer *idle;
    struct buf in, out;
    bool at_end;                 /* the client has closed its half */
    bool waits;                  /* for the end of the job */
    struct control_later *later; /* the answer that is awaited; NULL */
    const struct control_peer_owner *owner;
    void *context;
};

static void leave(struct control_peer *peer)
{
    loop_timer_clear(peer->idle);
    loop_fd_watch(peer->ready, 0);
    peer->owner->gone(peer->context, peer);
}

static void idle_over(void *context)
{
    leave(context);
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static void put_line(struct control_peer *peer, const json_t *reply)
{
    if (json_dump_callback(reply, append_piece, &peer->out, JSON_COMPACT) < 0) {
        buf_clear(&peer->out);
        buf_puts(&peer->out, "{\"error\":\"the answer is too long\"}");
    }
    buf_putc(&peer->out, '\n');
}

static void ready(void *context, int what);

static void later_answered(void *context, const json_t *reply)
{
    struct control_peer *peer = context;
    peer->later = NULL;
    put_line(peer, reply);
    ready(peer, LOOP_WRITE);
}

static void answer(struct control_peer *peer, const char *line, size_t length)
{
    struct control_later *later = control_later_create(later_answered, peer);
    json_t *reply =
        control_request_answer(line, length, peer->by_root, peer->ops, peer->ops_context, later);
    if (reply == NULL && control_later_is_taken(later)) {
        peer->later = later;
        return;
    }
    control_later_leave(later);
    if (reply == NULL && peer->owner->may_wait(peer->context)) {
        peer->waits = true;
        return;
    }
    if (reply == NULL)
        reply = json_pack("{s:s}", "error", "too many clients wait for the end of this job");
    put_line(peer, reply);
    json_decref(reply);
}

static void answer_too_long(struct control_peer *peer)
{
    buf_printf(&peer->out, "{\"error\":\"the request has more than %zu bytes\"}\n",
               CONTROL_LINE_MAX);
    buf_clear(&peer->in);
    peer->at_end = true;
}

/* Answers one complete request; false: there is none. What the client sent before it closed its
 * half counts as a request too. */
static bool take_request(struct control_peer *peer)
{
    const char *text = buf_text(&peer->in);
    const char *end = memchr(text, '\n', peer->in.length);
    size_t length = end != NULL ? (size_t)(end - text) : peer->in.length;
    if (length > CONTROL_LINE_MAX) {
        answer_too_long(peer);
        return true;
    }
    if (end == NULL && (!peer->at_end || length == 0))
        return false;
    if (strspn(text, " \t\r\n") < length)
        answer(peer, text, length);
    buf_consume(&peer->in, end != NULL ? length + 1 : length);
    return true;
}

/* -1: the client has gone. */
static int write_answers(struct control_peer *peer)
{
    while (peer->out.length > 0) {
        ssize_t put = send(peer->fd, buf_text(&peer->out), peer->out.length, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0)
            buf_consume(&peer->out, (size_t)put);
    }
    return 0;
}

/* -1: the client has gone. */
static int read_requests(struct control_peer *peer)
{
    char bytes[CHUNK];
    ssize_t got = fd_read(peer->fd, bytes, sizeof(bytes));
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    if (got == 0)
        peer->at_end = true;
    else
        buf_append(&peer->in, bytes, (size_t)got); /* take_request() keeps it within its limit */
    return 0;
}

static void arm(struct control_peer *peer)
{
    if (peer->out.length > 0) {
        loop_fd_watch(peer->ready, LOOP_WRITE);
    } else if (peer->later != NULL) {
        loop_fd_watch(peer->ready, 0);
    } else if (peer->waits) {
        loop_timer_clear(peer->idle);
        loop_fd_watch(peer->ready, LOOP_READ);
    } else if (!peer->at_end) {
        loop_fd_watch(peer->ready, LOOP_READ);
    } else {
        leave(peer);
    }
}

static void ready(void *context, int what)
{
    struct control_peer *peer = context;
    if (peer->waits) { /* the client has gone, or speaks out of turn */
        leave(peer);
        return;
    }
    bool wants_more = peer->out.length == 0 && !peer->at_end;
    loop_timer_set(peer->idle, CONTROL_IDLE_MS);
    if ((what & LOOP_READ) != 0 && wants_more && read_requests(peer) < 0) {
        leave(peer);
        return;
    }
    do {
        if (write_answers(peer) < 0) {
            leave(peer);
            return;
        }
    } while (peer->out.length == 0 && !peer->waits && peer->later == NULL && take_request(peer));
    arm(peer);
}

struct control_peer *control_peer_create_take(struct loop *loop, int fd, bool by_root,
                                              const struct control_ops *ops, void *ops_context,
                                              const struct control_peer_owner *owner, void *context)
{
    struct control_peer *peer = mem_alloc(sizeof(*peer));
    *peer = (struct control_peer){.ops = ops,
                                  .ops_context = ops_context,
                                  .by_root = by_root,
                                  .fd = fd,
                                  .owner = owner,
                                  .context = context};
    buf_init(&peer->in, CONTROL_LINE_MAX + CHUNK + 1);
    buf_init(&peer->out, ANSWER_MAX);
    peer->idle = loop_timer_create(loop, idle_over, peer);
    peer->ready = loop_fd_create(loop, fd, ready, peer);
    loop_timer_set(peer->idle, CONTROL_IDLE_MS);
    loop_fd_watch(peer->ready, LOOP_READ);
    return peer;
}

bool control_peer_waits(const struct control_peer *peer)
{
    return peer->waits;
}

/* A client that waits has an empty socket, which has room for this line. */
void control_peer_finish(struct control_peer *peer, const json_t *end)
{
    put_line(peer, end);
    write_answers(peer);
}

void control_peer_destroy(struct control_peer *peer)
{
    if (peer == NULL)
        return;
    control_later_leave(peer->later);
    loop_fd_destroy(peer->ready);
    loop_timer_destroy(peer->idle);
    fd_close(&peer->fd);
    buf_destroy(&peer->in);
    buf_destroy(&peer->out);
    free(peer);
}
