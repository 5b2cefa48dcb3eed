/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

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

bool socket_broken(const struct ssh_socket *state)
{
    return state->ended || state->receive_errno != 0 || state->send_errno != 0;
}

int socket_errno(const struct ssh_socket *state)
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
