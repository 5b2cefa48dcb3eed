/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

/* The kernel forgets it as it likes, so it is said before each wait that something came before. */
static void acknowledge(struct ssh_socket *state)
{
    int on = 1;

    if (!state->heard)
        return;
    state->heard = false;
    if (!state->slow)
        state->slow = setsockopt(state->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on) < 0;
}

static ssize_t receive(libssh2_socket_t fd, void *bytes, size_t length, int flags, void **abstract)
{
    struct ssh_socket *state = *abstract;
    ssize_t n;

    (void)fd;
    if (state->mute)
        return -ECONNRESET;
    if (state->hold && (!state->pull || state->ended || state->receive_errno != 0))
        return -EAGAIN;
    if (state->limited && state->left == 0) {
        state->flooded = true;
        state->receive_errno = EMSGSIZE;
        return -EMSGSIZE;
    }
    if (state->limited && length > state->left)
        length = state->left;
    do {
        n = recv(state->fd, bytes, length, flags);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        state->heard = true;
        state->left -= state->limited ? (size_t)n : 0;
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        acknowledge(state);
        return -EAGAIN;
    }
    if (n == 0)
        state->ended = true;
    else
        state->receive_errno = errno;
    if (state->hold)
        return -EAGAIN;
    return n == 0 ? 0 : -state->receive_errno;
}

static bool socket_broken(const struct ssh_socket *state)
{
    return state->ended || state->receive_errno != 0 || state->send_errno != 0;
}

static ssize_t transmit(libssh2_socket_t fd, const void *bytes, size_t length, int flags,
                        void **abstract)
{
    struct ssh_socket *state = *abstract;
    ssize_t n;

    (void)fd;
    if (state->mute)
        return -EPIPE;
    if (state->hold && socket_broken(state))
        return (ssize_t)length; /* into the void: what was received is still to be read */
    do {
        n = send(state->fd, bytes, length, flags | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return -EAGAIN;
    state->send_errno = errno;
    return state->hold ? (ssize_t)length : -state->send_errno;
}

void socket_attach(LIBSSH2_SESSION *session)
{
#if LIBSSH2_VERSION_NUM >= 0x010b01
    (void)libssh2_session_callback_set2(session, LIBSSH2_CALLBACK_RECV,
                                        (libssh2_cb_generic *)receive);
    (void)libssh2_session_callback_set2(session, LIBSSH2_CALLBACK_SEND,
                                        (libssh2_cb_generic *)transmit);
#else
    /* Functions as void pointers: POSIX allows it, and libssh2 has no other way. */
    (void)libssh2_session_callback_set(session, LIBSSH2_CALLBACK_RECV, (void *)receive);
    (void)libssh2_session_callback_set(session, LIBSSH2_CALLBACK_SEND, (void *)transmit);
#endif
}

/* When it is broken; ECONNRESET for an end. */
static int socket_errno(const struct ssh_socket *state)
{
    if (state->receive_errno != 0)
        return state->receive_errno;
    return state->send_errno != 0 && !state->ended ? state->send_errno : ECONNRESET;
}

const char *socket_cause(const struct ssh_socket *state)
{
    if (state->flooded)
        return "the other side sends data without end";
    if (state->receive_errno != 0)
        return strerror(state->receive_errno);
    if (state->ended)
        return "closed by the other side";
    return state->send_errno != 0 ? strerror(state->send_errno) : NULL;
}

#define CONFUSED_MAX 10000 /* turns in which libssh2 may say that it is busy with a packet */

enum going_out { OUT_NOTHING, OUT_BYTES, OUT_ROOM, OUT_EOF };

struct duplex {
    LIBSSH2_SESSION *session;
    LIBSSH2_CHANNEL *channel;
    struct ssh_socket *socket;
    enum going_out going_out;
    char *staged; /* OUT_BYTES: owned */
    size_t staged_at, staged_length;
    unsigned long more_room; /* OUT_ROOM */
    int confused;
    bool closed; /* the peer has closed the channel */
    bool eof_sent;
};

struct duplex *duplex_create(LIBSSH2_SESSION *session, LIBSSH2_CHANNEL *channel,
                             struct ssh_socket *socket)
{
    struct duplex *duplex = mem_alloc(sizeof *duplex);

    *duplex = (struct duplex){.session = session, .channel = channel, .socket = socket};
    return duplex;
}

void duplex_destroy(struct duplex *duplex)
{
    if (!duplex)
        return;
    mem_free_at(&duplex->staged);
    mem_free_at(&duplex);
}

static bool socket_is_full(const struct duplex *duplex)
{
    return (libssh2_session_block_directions(duplex->session) & LIBSSH2_SESSION_BLOCK_OUTBOUND) !=
           0;
}

/* Sets errno for a negative return of libssh2. */
static int fail(struct duplex *duplex, ssize_t rc)
{
    /* It has begun a packet of its own accord (an answer to a keepalive), and will go on with it.
     */
    if (rc == LIBSSH2_ERROR_BAD_USE && duplex->confused < CONFUSED_MAX) {
        duplex->confused++;
        rc = LIBSSH2_ERROR_EAGAIN;
    }
    if (rc != LIBSSH2_ERROR_EAGAIN)
        errno = socket_broken(duplex->socket) ? socket_errno(duplex->socket) : EPROTO;
    else if (socket_broken(duplex->socket))
        errno = socket_errno(duplex->socket);
    else
        errno = EAGAIN;
    return -1;
}

static void nothing_goes_out(struct duplex *duplex)
{
    duplex->going_out = OUT_NOTHING;
    duplex->confused = 0;
    mem_free_at(&duplex->staged);
}

static int flush_bytes(struct duplex *duplex)
{
    while (duplex->staged_at < duplex->staged_length) {
        ssize_t n = libssh2_channel_write_ex(duplex->channel, 0, duplex->staged + duplex->staged_at,
                                             duplex->staged_length - duplex->staged_at);

        if (n <= 0)
            return fail(duplex, n == 0 ? LIBSSH2_ERROR_EAGAIN : n);
        duplex->staged_at += (size_t)n;
    }
    nothing_goes_out(duplex);
    return 0;
}

int duplex_flush(struct duplex *duplex)
{
    int rc = 0;

    if (duplex->going_out == OUT_BYTES)
        return flush_bytes(duplex);
    if (duplex->going_out == OUT_ROOM)
        rc = libssh2_channel_receive_window_adjust2(duplex->channel, duplex->more_room, 1, NULL);
    else if (duplex->going_out == OUT_EOF)
        rc = libssh2_channel_send_eof(duplex->channel);
    if (rc < 0)
        return fail(duplex, rc);
    duplex->eof_sent = duplex->eof_sent || duplex->going_out == OUT_EOF;
    nothing_goes_out(duplex);
    return 0;
}

/* libssh2_channel_read() makes room itself when there is less than three quarters of the window,
 * and then cannot be told from one that only waits; so there always is more. */
static int make_room(struct duplex *duplex, size_t room)
{
    unsigned long initial = 0;
    unsigned long window = libssh2_channel_window_read_ex(duplex->channel, NULL, &initial);

    if (window >= initial / 4 * 3 + room || libssh2_channel_eof(duplex->channel))
        return 0;
    duplex->going_out = OUT_ROOM;
    duplex->more_room = initial + room - window;
    return duplex_flush(duplex);
}

ssize_t duplex_read(struct duplex *duplex, enum ssh_channel channel, void *bytes, size_t room)
{
    int stream = channel == SSH_CHANNEL_ERR ? SSH_EXTENDED_DATA_STDERR : 0;
    ssize_t n;

    if (room > DUPLEX_WINDOW / 8)
        room = DUPLEX_WINDOW / 8;
    if (duplex_flush(duplex) < 0 || make_room(duplex, room) < 0)
        return -1;
    duplex->socket->pull = channel == SSH_CHANNEL_OUT;
    n = libssh2_channel_read_ex(duplex->channel, stream, bytes, room);
    duplex->socket->pull = false;
    return n >= 0 ? n : fail(duplex, n);
}

/* Never more than the peer has room for now, so that what is staged only waits for the socket. */
static size_t length_to_write(const struct duplex *duplex, size_t length)
{
    size_t window = libssh2_channel_window_write_ex(duplex->channel, NULL);

    if (length > DUPLEX_PACKET)
        length = DUPLEX_PACKET;
    return length < window ? length : window;
}

ssize_t duplex_write(struct duplex *duplex, const void *bytes, size_t length)
{
    ssize_t n;

    if (socket_broken(duplex->socket)) {
        errno = socket_errno(duplex->socket);
        return -1;
    }
    if (length == 0)
        return 0;
    if (duplex_flush(duplex) < 0)
        return -1;
    length = length_to_write(duplex, length);
    if (length == 0) /* news of more room comes with what is read */
        return fail(duplex, LIBSSH2_ERROR_EAGAIN);
    n = libssh2_channel_write_ex(duplex->channel, 0, bytes, length);
    if (n > 0)
        return n;
    if (n != 0 && n != LIBSSH2_ERROR_EAGAIN)
        return fail(duplex, n);
    if (!socket_is_full(duplex))
        return fail(duplex, LIBSSH2_ERROR_EAGAIN);
    duplex->going_out = OUT_BYTES;
    duplex->staged = mem_dup(bytes, length);
    duplex->staged_at = 0;
    duplex->staged_length = length;
    return (ssize_t)length;
}

int duplex_send_eof(struct duplex *duplex)
{
    if (duplex->eof_sent)
        return 0;
    if (duplex_flush(duplex) < 0)
        return -1;
    if (duplex->eof_sent)
        return 0;
    duplex->going_out = OUT_EOF;
    return duplex_flush(duplex);
}

int duplex_wants(const struct duplex *duplex)
{
    if (duplex->going_out != OUT_NOTHING && socket_is_full(duplex))
        return SSH_WANT_WRITE; /* nothing is read until it is out */
    return socket_is_full(duplex) ? SSH_WANT_READ | SSH_WANT_WRITE : SSH_WANT_READ;
}

/* At the end of both streams (eof says no while bytes are in memory) there is nothing left that
 * could be pulled and forgotten. */
void duplex_notice_close(struct duplex *duplex)
{
    if (duplex->closed || libssh2_channel_eof(duplex->channel) != 1)
        return;
    duplex->socket->pull = true;
    duplex->closed = libssh2_channel_wait_closed(duplex->channel) == 0;
    duplex->socket->pull = false;
}

/* RFC 4254 names signals; those that a command may die of. */
static int signal_number(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"ABRT", 6},  {"ALRM", 14}, {"FPE", 8},   {"HUP", 1},  {"ILL", 4},
                   {"INT", 2},   {"KILL", 9},  {"PIPE", 13}, {"QUIT", 3}, {"SEGV", 11},
                   {"TERM", 15}, {"USR1", 10}, {"USR2", 12}};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    }
    return 127;
}

int duplex_exit_status(const struct duplex *duplex)
{
    char *name = NULL;
    size_t length = 0;
    int status;

    if (!duplex->closed)
        return -1;
    status = libssh2_channel_get_exit_status(duplex->channel) & 255;
    if (libssh2_channel_get_exit_signal(duplex->channel, &name, &length, NULL, NULL, NULL, NULL) ==
            0 &&
        name) {
        status = 128 + signal_number(name);
        libssh2_free(duplex->session, name);
    }
    return status;
}
