/* SPDX-License-Identifier: Apache-2.0 */
#include "io/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/send_queue.h"

#define KERNEL_QUEUE (512 << 10)
#define WIDE_PIPE (256 << 10) /* of 64 MiB that a user may have in all; then pipes become tiny */

struct link {
    struct loop *loop;
    int read_fd, write_fd;
    int usual_room; /* of the pipe that is read and is wide now; 0: it is not */
    struct loop_fd *read_watch, *write_watch;
    struct frame_reader in;
    struct frame_queue out;
    const struct link_ops *ops;
    void *context;
    bool flush_deferred;
    bool overflowed; /* a frame did not fit into the queue: given up at the end of the turn */
    int mute;        /* errno of the write after which no more are tried */
    bool dead;       /* closed() was called */
    bool destroyed;  /* link_destroy() was called while a callback ran or a flush was deferred */
    int busy;        /* callbacks on the stack */
};

static void link_free(struct link *link)
{
    if (link->busy > 0 || link->flush_deferred)
        return;
    frame_reader_clear(&link->in);
    frame_queue_destroy(&link->out);
    free(link);
}

/* Stops all traffic; the descriptors are closed at once so that the peer sees it. */
static void link_shut(struct link *link)
{
    loop_fd_destroy(link->read_watch);
    loop_fd_destroy(link->write_watch);
    link->read_watch = link->write_watch = NULL;
    if (link->write_fd == link->read_fd)
        link->write_fd = -1;
    fd_close(&link->read_fd);
    fd_close(&link->write_fd);
}

static void link_fail(struct link *link, const char *reason)
{
    if (link->dead || link->destroyed)
        return;
    link->dead = true;
    link_shut(link);
    link->busy++;
    link->ops->closed(link->context, reason);
    link->busy--;
    if (link->destroyed)
        link_free(link);
}

/* What has come cannot be taken: the owner may tell the other side, then it is the end. */
static void link_refuse(struct link *link, const char *reason)
{
    if (link->ops->refused != NULL) {
        link->ops->refused(link->context, reason);
        link_flush(link);
    }
    link_fail(link, reason);
}

/* One frame at a time out of the input, until the link is closed. */
static void link_parse(struct link *link)
{
    struct frame_header header;
    const uint8_t *body;
    struct error err = ERROR_INIT;
    int got = frame_reader_next(&link->in, &header, &body, &err);
    while (got > 0) {
        link->ops->frame(link->context, &header, body);
        if (link->dead || link->destroyed)
            return;
        got = frame_reader_next(&link->in, &header, &body, &err);
    }
    if (got < 0)
        link_refuse(link, err.text);
}

/* Why nothing more is sent; NULL: no write has failed, or the other side has gone. */
static const char *mute_reason(const struct link *link, char *reason, size_t size)
{
    char text[128];
    if (link->mute == 0 || link->mute == EPIPE || link->mute == ECONNRESET)
        return NULL;
    snprintf(reason, size, "cannot write to the connection: %s",
             strerror_r(link->mute, text, sizeof(text)));
    return reason;
}

/* The end of the stream. The reason is ours when we could not go on. */
static void link_ended(struct link *link)
{
    char room[160];
    const char *reason = mute_reason(link, room, sizeof(room));
    if (reason == NULL && !frame_reader_is_clean(&link->in))
        reason = "the connection ended inside a message";
    link_fail(link, reason);
}

static void link_readable(void *context, int what)
{
    (void)what;
    struct link *link = context;
    size_t size;
    void *place = frame_reader_reserve(&link->in, &size);
    ssize_t got = fd_read(link->read_fd, place, size);
    if (got < 0 && errno == EAGAIN)
        return;
    link->busy++;
    if (got > 0) {
        frame_reader_commit(&link->in, (size_t)got);
        link_parse(link);
    } else if (got == 0) {
        link_ended(link);
    } else {
        char reason[128];
        bool reset = errno == ECONNRESET;
        link_fail(link, reset ? "connection reset" : strerror_r(errno, reason, sizeof(reason)));
    }
    link->busy--;
    if (link->destroyed)
        link_free(link);
}

/* Nothing more can be sent. The reading side tells the owner, after it has handed out what still
 * comes in: to be sure that its end comes, the other side gets one. */
static void link_end_writing(struct link *link)
{
    char room[160];
    link->mute = errno;
    const char *reason = mute_reason(link, room, sizeof(room));
    if (reason != NULL && link->ops->mute != NULL)
        link->ops->mute(link->context, reason);
    frame_queue_clear(&link->out);
    loop_fd_destroy(link->write_watch);
    link->write_watch = NULL;
    if (shutdown(link->write_fd, SHUT_WR) < 0 && link->write_fd != link->read_fd)
        fd_close(&link->write_fd);
}

bool link_flush(struct link *link)
{
    struct send_queue *queue = &link->out.queue;
    while (!link->dead && (send_queue_length(queue) > 0 ||
                           (!link->overflowed && frame_queue_next_piece(&link->out)))) {
        size_t length;
        const void *bytes = send_queue_next(queue, &length);
        ssize_t put = fd_write(link->write_fd, bytes, length);
        if (put > 0) {
            send_queue_consume(queue, (size_t)put);
        } else if (errno == EAGAIN) {
            loop_fd_watch(link->write_watch, LOOP_WRITE);
            return false;
        } else {
            link_end_writing(link);
        }
    }
    if (!link->dead && link->mute == 0)
        loop_fd_watch(link->write_watch, 0);
    return true;
}

static void link_writable(void *context, int what)
{
    (void)what;
    struct link *link = context;
    if (link_flush(link) && link->ops->drained != NULL && !link->dead)
        link->ops->drained(link->context);
}

static void flush_deferred(void *context)
{
    struct link *link = context;
    link->flush_deferred = false;
    if (link->destroyed)
        link_free(link);
    else if (link->overflowed)
        link_fail(link, "the other side does not read");
    else if (!link->dead)
        link_writable(link, LOOP_WRITE);
}

static void flush_later(struct link *link)
{
    if (link->flush_deferred || link->dead)
        return;
    link->flush_deferred = true;
    loop_defer(link->loop, flush_deferred, link);
}

/* So much may be under way while both ends work beside each other, as far as the system allows it.
 * Not where the kernel finds the right size itself. */
static void widen(int fd)
{
    int domain = 0, size = KERNEL_QUEUE;
    socklen_t length = sizeof(domain);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

struct link *link_create(struct loop *loop, int read_fd, int write_fd, const struct link_ops *ops,
                         void *context, struct error *err)
{
    if (fd_nonblock(read_fd) < 0 || fd_nonblock(write_fd) < 0) {
        error_errno(err, errno, "cannot set up a link");
        return NULL;
    }
    widen(write_fd);
    struct link *link = MEM_NEW((struct link){
        .loop = loop, .read_fd = read_fd, .write_fd = write_fd, .ops = ops, .context = context});
    frame_reader_init(&link->in);
    frame_queue_init(&link->out, LINK_QUEUE_MAX);
    link->read_watch = loop_fd_create(loop, read_fd, link_readable, link);
    link->write_watch = loop_fd_create(loop, write_fd, link_writable, link);
    loop_fd_watch(link->read_watch, LOOP_READ);
    return link;
}

void link_destroy(struct link *link)
{
    if (link == NULL || link->destroyed)
        return;
    if (!link->dead)
        link_shut(link);
    link->destroyed = true;
    link_free(link);
}

void link_widen(struct link *link, bool wide)
{
    if (wide == (link->usual_room > 0))
        return;
    int room = wide ? fcntl(link->read_fd, F_GETPIPE_SZ) : link->usual_room;
    if (wide && (room < 0 || room >= WIDE_PIPE))
        return;
    if (fcntl(link->read_fd, F_SETPIPE_SZ, wide ? WIDE_PIPE : room) >= 0)
        link->usual_room = wide ? room : 0;
}

void link_set_node(struct link *link, uint32_t node)
{
    link->out.node = node;
}

bool link_has_come(const struct link *link)
{
    struct pollfd come = {.fd = link->read_fd, .events = POLLIN};
    return poll(&come, 1, 0) > 0;
}

size_t link_queued(const struct link *link)
{
    return frame_queue_length(&link->out);
}

/* Nothing has ended it, so that sending makes sense. */
static bool is_open(const struct link *link)
{
    return !link->dead && !link->destroyed && link->mute == 0;
}

/* A frame does not fit. */
static bool give_up(struct link *link)
{
    link->overflowed = true;
    flush_later(link);
    return false;
}

/* May so many bytes be added to all that waits? If not, the link is given up. */
static bool has_room(struct link *link, size_t length)
{
    size_t queued = link_queued(link);
    bool fits = queued <= LINK_QUEUE_MAX && length <= LINK_QUEUE_MAX - queued;
    return fits || give_up(link);
}

/* A place for one frame, or NULL: nothing is sent any more. */
static uint8_t *frame_reserve(struct link *link, size_t body)
{
    if (!is_open(link) || !has_room(link, FRAME_HEADER_SIZE + body))
        return NULL;
    uint8_t *place = link->overflowed ? NULL : frame_queue_reserve(&link->out, body);
    if (place == NULL)
        give_up(link);
    return place;
}

static void frame_commit(struct link *link, enum frame_type type, uint32_t epoch, size_t body)
{
    frame_queue_commit(&link->out, type, epoch, body);
    flush_later(link);
}

static void link_send_one(struct link *link, enum frame_type type, uint32_t epoch, const void *body,
                          size_t length)
{
    uint8_t *place = frame_reserve(link, length);
    if (place == NULL)
        return;
    if (length > 0)
        memcpy(place + FRAME_HEADER_SIZE, body, length);
    frame_commit(link, type, epoch, length);
}

void link_send(struct link *link, enum frame_type type, uint32_t epoch, const void *body,
               size_t length)
{
    const uint8_t *at = body;
    for (; length > FRAME_BODY_MAX; at += FRAME_BODY_MAX, length -= FRAME_BODY_MAX)
        link_send_one(link, FRAME_PART, epoch, at, FRAME_BODY_MAX);
    link_send_one(link, type, epoch, at, length);
}

void link_send_message(struct link *link, enum frame_type type, uint32_t epoch,
                       const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    if (length > FRAME_BODY_MAX) {
        uint8_t *packed AUTO_FREE = mem_alloc(length);
        protobuf_c_message_pack(message, packed);
        link_send(link, type, epoch, packed, length);
        return;
    }
    uint8_t *place = frame_reserve(link, length);
    if (place == NULL)
        return;
    protobuf_c_message_pack(message, place + FRAME_HEADER_SIZE);
    frame_commit(link, type, epoch, length);
}

static bool send_shared_one(struct link *link, enum frame_type type, uint32_t epoch,
                            const struct buf *head, struct shared_block *block, size_t offset,
                            size_t length)
{
    if (!is_open(link))
        return false;
    bool fits = !link->overflowed &&
                frame_queue_share(&link->out, type, epoch, 0, head, block, offset, length);
    return fits || give_up(link);
}

void link_send_shared(struct link *link, enum frame_type type, uint32_t epoch,
                      const ProtobufCMessage *message, unsigned field, struct shared_block *block)
{
    struct buf head AUTO_BUF = message_head(message, field, block->length);
    size_t whole = head.length + block->length;
    size_t at = 0;
    flush_later(link);
    if (!has_room(link, whole))
        return;
    for (; whole - at > FRAME_BODY_MAX; at += FRAME_BODY_MAX) {
        if (!send_shared_one(link, FRAME_PART, epoch, &head, block, at, FRAME_BODY_MAX))
            return;
    }
    send_shared_one(link, type, epoch, &head, block, at, whole - at);
}

void link_send_pieces(struct link *link, enum frame_type type, uint32_t epoch,
                      const ProtobufCMessage *message, unsigned field, struct shared_block *block)
{
    if (!is_open(link))
        return;
    struct buf head AUTO_BUF = message_head(message, field, block->length);
    size_t whole = head.length + block->length;
    if (!has_room(link, whole))
        return;
    if (whole <= LINK_PIECE && link->out.first == NULL)
        send_shared_one(link, type, epoch, &head, block, 0, whole);
    else
        frame_queue_add_pieces(&link->out, type, epoch, &head, block);
    flush_later(link);
}

void link_drop_pieces(struct link *link, uint32_t epoch)
{
    frame_queue_drop_pieces(&link->out, epoch);
}

bool link_takes(const struct link *link, size_t length)
{
    return link_queued(link) + length <= LINK_QUEUE_MAX / 2;
}

uint8_t *link_data_reserve(struct link *link, size_t room)
{
    uint8_t *place = frame_reserve(link, FRAME_DATA_PREFIX + room);
    return place == NULL ? NULL : place + FRAME_HEADER_SIZE + FRAME_DATA_PREFIX;
}

void link_data_commit(struct link *link, enum frame_type type, uint32_t epoch,
                      const struct frame_data *data, size_t length)
{
    uint8_t *place = frame_queue_reserve(&link->out, FRAME_DATA_PREFIX + length);
    frame_data_put(data, place + FRAME_HEADER_SIZE);
    frame_commit(link, type, epoch, FRAME_DATA_PREFIX + length);
}

static void queue_bytes(struct link *link, const void *bytes, size_t length)
{
    memcpy(send_queue_reserve(&link->out.queue, length), bytes, length);
    send_queue_commit(&link->out.queue, length);
}

/* The rest of a frame whose header is on its way. Bytes that are not there any more (a worker may
 * read from its own pipe) become zeros: the frame's length has been said. */
static void queue_rest(struct link *link, int fd, size_t length)
{
    uint8_t *place = send_queue_reserve(&link->out.queue, length);
    size_t done = 0;
    while (done < length) {
        ssize_t got = fd_read(fd, place + done, length - done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    memset(place + done, 0, length - done);
    send_queue_commit(&link->out.queue, length);
}

bool link_ready(struct link *link)
{
    if (!is_open(link) || link->flush_deferred)
        return false;
    struct pollfd now = {.fd = link->write_fd, .events = POLLOUT};
    bool ready = link_queued(link) == 0 && poll(&now, 1, 0) > 0;
    if (!ready)
        loop_fd_watch(link->write_watch, LOOP_WRITE);
    return ready;
}

bool link_data_splice(struct link *link, enum frame_type type, uint32_t epoch,
                      const struct frame_data *data, int fd, size_t length)
{
    if (link->dead || link->destroyed || link->overflowed || link_queued(link) > 0)
        return false;
    uint8_t head[FRAME_HEADER_SIZE + FRAME_DATA_PREFIX];
    frame_queue_header(&link->out, head, type, epoch, FRAME_DATA_PREFIX + length);
    frame_data_put(data, head + FRAME_HEADER_SIZE);
    ssize_t put = fd_write(link->write_fd, head, sizeof(head));
    if (put < 0)
        return false;
    link->out.sent++;
    if ((size_t)put < sizeof(head))
        queue_bytes(link, head + put, sizeof(head) - (size_t)put);
    size_t moved = 0;
    while (moved < length && link_queued(link) == 0) {
        ssize_t some = splice(fd, NULL, link->write_fd, NULL, length - moved,
                              SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (some <= 0)
            break;
        moved += (size_t)some;
    }
    if (moved < length)
        queue_rest(link, fd, length - moved);
    if (link_queued(link) > 0)
        flush_later(link);
    return true;
}
