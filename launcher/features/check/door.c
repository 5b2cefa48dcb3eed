/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/door.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/listener.h"

#define PATIENCE_MS 5000
#define GUESTS_MAX 1024
#define READ_SIZE ((size_t)256 << 10)
#define READS_IN_A_ROW 16 /* then others get their turn */

struct guest {
    struct check_door *door;
    LIST_ENTRY(guest) others;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    uint8_t shown[CHECK_TOKEN];
    size_t shown_length;
    uint64_t count;
};

struct check_door {
    struct loop *loop;
    struct listener *listener;
    uint8_t token[CHECK_TOKEN];
    int64_t patience_ms;
    LIST_HEAD(, guest) guests;
    int count;
    uint8_t *room; /* what comes is read into; the same for all */
};

static void guest_destroy(void *context)
{
    struct guest *guest = context;
    LIST_REMOVE(guest, others);
    guest->door->count--;
    loop_timer_destroy(guest->timer);
    loop_fd_destroy(guest->watch);
    fd_close(&guest->fd);
    free(guest);
}

/* A few bytes go into a socket that has sent none: either all of them fit or it is broken. */
static bool answer_token(const struct guest *guest)
{
    uint8_t different = 0, answer[CHECK_TOKEN];
    for (int i = 0; i < CHECK_TOKEN; i++)
        different |= (uint8_t)(guest->shown[i] ^ guest->door->token[i]);
    check_token_answer(guest->door->token, answer);
    return different == 0 && fd_send_all(guest->fd, answer, sizeof(answer)) == 0;
}

/* false: it is not one of us, and is to be shown out. */
static bool take(struct guest *guest, const uint8_t *bytes, size_t length)
{
    size_t wanted = CHECK_TOKEN - guest->shown_length;
    size_t used = length < wanted ? length : wanted;
    memcpy(guest->shown + guest->shown_length, bytes, used);
    guest->shown_length += used;
    guest->count += length - used;
    return used == 0 || guest->shown_length < CHECK_TOKEN || answer_token(guest);
}

static void say_count(const struct guest *guest)
{
    uint64_t count = htobe64(guest->count);
    if (guest->shown_length == CHECK_TOKEN)
        (void)fd_send_all(guest->fd, &count, CHECK_COUNT);
}

static void guest_ready(void *context, int what)
{
    struct guest *guest = context;
    (void)what;
    loop_timer_set(guest->timer, guest->door->patience_ms);
    for (int i = 0; i < READS_IN_A_ROW; i++) {
        ssize_t got = fd_read(guest->fd, guest->door->room, READ_SIZE);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got == 0)
            say_count(guest);
        if (got <= 0 || !take(guest, guest->door->room, (size_t)got)) {
            guest_destroy(guest);
            return;
        }
    }
}

static void come(void *context, int fd, const struct sockaddr_storage *from)
{
    struct check_door *door = context;
    (void)from;
    if (door->count >= GUESTS_MAX) {
        fd_close(&fd);
        return;
    }
    struct guest *guest = MEM_NEW((struct guest){.door = door, .fd = fd});
    LIST_INSERT_HEAD(&door->guests, guest, others);
    door->count++;
    guest->timer = loop_timer_create(door->loop, guest_destroy, guest);
    loop_timer_set(guest->timer, door->patience_ms);
    guest->watch = loop_fd_create(door->loop, fd, guest_ready, guest);
    loop_fd_watch(guest->watch, LOOP_READ);
}

struct check_door *check_door_create(struct loop *loop, const char *address,
                                     const uint8_t token[CHECK_TOKEN], struct error *err)
{
    static const struct listener_ops ops = {.come = come};
    struct check_door *door = MEM_NEW((struct check_door){
        .loop = loop, .patience_ms = PATIENCE_MS, .room = mem_alloc(READ_SIZE)});
    memcpy(door->token, token, CHECK_TOKEN);
    door->listener = listener_create(loop, address, &ops, door, err);
    if (door->listener != NULL)
        return door;
    check_door_destroy(door);
    return NULL;
}

void check_door_destroy(struct check_door *door)
{
    if (door == NULL)
        return;
    while (!LIST_EMPTY(&door->guests))
        guest_destroy(LIST_FIRST(&door->guests));
    listener_destroy(door->listener);
    free(door->room);
    free(door);
}

uint32_t check_door_port(const struct check_door *door)
{
    return listener_port(door->listener);
}

void check_door_set_patience(struct check_door *door, int64_t milliseconds)
{
    door->patience_ms = milliseconds;
}

/* The protocol */

uint32_t check_socket_own(int fd, char *text)
{
    struct listen_address own = {.length = sizeof(own.at)};
    text[0] = '\0';
    if (getsockname(fd, &own.at.any, &own.length) < 0)
        return 0;
    bool ipv6 = own.at.any.sa_family == AF_INET6;
    const void *bytes =
        ipv6 ? (const void *)&own.at.v6.sin6_addr : (const void *)&own.at.v4.sin_addr;
    if (inet_ntop(own.at.any.sa_family, bytes, text, INET6_ADDRSTRLEN) == NULL)
        text[0] = '\0';
    return ntohs(ipv6 ? own.at.v6.sin6_port : own.at.v4.sin_port);
}

void check_token_answer(const uint8_t token[CHECK_TOKEN], uint8_t answer[CHECK_TOKEN])
{
    for (int i = 0; i < CHECK_TOKEN; i++)
        answer[i] = (uint8_t)~token[i];
}

uint64_t check_count_get(const uint8_t in[CHECK_COUNT])
{
    uint64_t count;
    memcpy(&count, in, sizeof(count));
    return be64toh(count);
}

/* ---- The calling end ------------------------------------------------------------------------- */

#define CHUNK ((size_t)256 << 10)
#define CHUNKS_IN_A_ROW 16     /* then others get their turn */
#define UNSENT_MAX (256 << 10) /* in the kernel: else a slow network takes long to empty it */

enum state { CONNECTING, GREETING, SENDING, COUNTING, OVER };

struct check_call {
    struct loop *loop;
    enum state state;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    int64_t limit_ms, transfer_ms, begun_ns, transfer_begun_ns;
    uint8_t token[CHECK_TOKEN];
    uint8_t heard[CHECK_TOKEN]; /* the answer, then the count */
    size_t heard_length;
    uint8_t *chunk;
    struct check_call_result result;
    void (*done)(void *context, const struct check_call_result *result);
    void *context;
};

void check_call_cancel(struct check_call *call)
{
    if (call == NULL)
        return;
    loop_timer_destroy(call->timer);
    loop_fd_destroy(call->watch);
    fd_close(&call->fd);
    free(call->chunk);
    free(call);
}

/* `done` never comes from within check_call_begin(): the timer calls it. */
static void over(struct check_call *call, Hvdrun__ProbeOutcome outcome)
{
    call->state = OVER;
    call->result.outcome = outcome;
    if (call->watch != NULL)
        loop_fd_watch(call->watch, 0);
    loop_timer_set(call->timer, 0);
}

static void broken(struct check_call *call, int errnum)
{
    char text[64];
    snprintf(call->result.text, sizeof(call->result.text), "%s",
             strerror_r(errnum, text, sizeof(text)));
    over(call, HVDRUN__PROBE_OUTCOME__PROBE_BROKEN);
}

static void not_connected(struct check_call *call, int errnum)
{
    switch (errnum) {
    case ECONNREFUSED: over(call, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED); break;
    case ETIMEDOUT: over(call, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE); break;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRNOTAVAIL: over(call, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE); break;
    default: broken(call, errnum); break;
    }
}

static void connected(struct check_call *call)
{
    int errnum = fd_connect_errno(call->fd);
    if (errnum != 0) {
        not_connected(call, errnum);
        return;
    }
    call->result.connect_ns = clock_mono_ns() - call->begun_ns;
    check_socket_own(call->fd, call->result.source);
    if (fd_send_all(call->fd, call->token, CHECK_TOKEN) < 0) {
        broken(call, errno);
        return;
    }
    call->state = GREETING;
    loop_fd_watch(call->watch, LOOP_READ);
}

/* Up to `wanted` bytes in all; true when they are there. */
static bool hear(struct check_call *call, size_t wanted)
{
    ssize_t got = fd_read(call->fd, call->heard + call->heard_length, wanted - call->heard_length);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got > 0)
        call->heard_length += (size_t)got;
    else if (call->state == GREETING && (got == 0 || errno == ECONNRESET))
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    else
        broken(call, got == 0 ? EPIPE : errno);
    return got > 0 && call->heard_length == wanted;
}

static void begin_sending(struct check_call *call)
{
    int unsent = UNSENT_MAX;
    (void)setsockopt(call->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    call->chunk = mem_alloc(CHUNK);
    call->heard_length = 0;
    call->state = SENDING;
    call->transfer_begun_ns = clock_mono_ns();
    loop_timer_set(call->timer, call->transfer_ms);
    loop_fd_watch(call->watch, LOOP_WRITE);
}

static void hear_answer(struct check_call *call)
{
    uint8_t right[CHECK_TOKEN];
    if (!hear(call, CHECK_TOKEN))
        return;
    check_token_answer(call->token, right);
    if (memcmp(right, call->heard, CHECK_TOKEN) != 0)
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    else if (call->transfer_ms > 0)
        begin_sending(call);
    else
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
}

static void send_more(struct check_call *call)
{
    for (int i = 0; i < CHUNKS_IN_A_ROW; i++) {
        ssize_t sent = send(call->fd, call->chunk, CHUNK, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            broken(call, errno);
        if (sent < 0)
            return;
    }
}

static void hear_count(struct check_call *call)
{
    if (!hear(call, CHECK_COUNT))
        return;
    call->result.bytes = check_count_get(call->heard);
    call->result.transfer_ns = clock_mono_ns() - call->transfer_begun_ns;
    over(call, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
}

static void socket_ready(void *context, int what)
{
    struct check_call *call = context;
    (void)what;
    switch (call->state) {
    case CONNECTING: connected(call); break;
    case GREETING: hear_answer(call); break;
    case SENDING: send_more(call); break;
    case COUNTING: hear_count(call); break;
    case OVER: break;
    }
}

static void stop_sending(struct check_call *call)
{
    call->state = COUNTING;
    loop_timer_set(call->timer, call->limit_ms);
    if (shutdown(call->fd, SHUT_WR) < 0)
        broken(call, errno);
    else
        loop_fd_watch(call->watch, LOOP_READ);
}

static void timer_fired(void *context)
{
    struct check_call *call = context;
    if (call->state == SENDING) {
        stop_sending(call);
        return;
    }
    if (call->state == COUNTING) {
        call->result.outcome = HVDRUN__PROBE_OUTCOME__PROBE_BROKEN;
        snprintf(call->result.text, sizeof(call->result.text),
                 "the data that was sent did not arrive in time");
    } else if (call->state != OVER) {
        call->result.outcome = HVDRUN__PROBE_OUTCOME__PROBE_SILENCE;
    }
    struct check_call_result result = call->result;
    void (*done)(void *, const struct check_call_result *) = call->done;
    void *whom = call->context;
    check_call_cancel(call);
    done(whom, &result);
}

static void dial(struct check_call *call, const struct socket_address *to)
{
    call->fd = socket(to->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->fd < 0) {
        broken(call, errno);
        return;
    }
    if (TEMP_FAILURE_RETRY(connect(call->fd, (const struct sockaddr *)&to->at, to->length)) < 0 &&
        errno != EINPROGRESS) {
        not_connected(call, errno);
        return;
    }
    call->watch = loop_fd_create(call->loop, call->fd, socket_ready, call);
    loop_fd_watch(call->watch, LOOP_WRITE);
    loop_timer_set(call->timer, call->limit_ms);
}

struct check_call *
check_call_begin(struct loop *loop, const Hvdrun__ProbePeer *peer, int64_t limit_ms,
                 int64_t transfer_ms,
                 void (*done)(void *context, const struct check_call_result *result), void *context)
{
    struct socket_address to;
    struct check_call *call = MEM_NEW((struct check_call){.loop = loop,
                                                          .fd = -1,
                                                          .limit_ms = limit_ms,
                                                          .transfer_ms = transfer_ms,
                                                          .begun_ns = clock_mono_ns(),
                                                          .done = done,
                                                          .context = context});
    call->timer = loop_timer_create(loop, timer_fired, call);
    if (peer->token.len == CHECK_TOKEN)
        memcpy(call->token, peer->token.data, CHECK_TOKEN);
    if (socket_address_set(&to, peer->address, peer->port))
        dial(call, &to);
    else
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
    return call;
}
