/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer between libssh2 and the socket. It remembers how the connection broke, it never raises
 * SIGPIPE, and it can keep libssh2 away from the socket:
 *
 * - `mute`: nothing is sent or received any more, so that a session is freed without a word.
 * - `hold`: while a channel is in use, the end of the connection is hidden from libssh2. It would
 *   otherwise throw away what it has in memory. The owner of the channel reads that first and then
 *   looks at socket_broken(). libssh2 reads the socket in any call, and no event would come for
 *   bytes that it put into memory. So nothing is received then, unless `pull` allows it.
 *
 * What arrives is acknowledged at once (TCP_QUICKACK), because sshd holds small packets back until
 * then. That would cost 40 ms in a login, and again whenever an agent has two things to say.
 */
#pragma once

#include <libssh2.h>
#include <stdbool.h>

struct ssh_socket {
    int fd;
    bool mute, hold, pull;
    bool heard; /* something came that may be unacknowledged */
    bool slow;  /* no TCP connection, so nothing to acknowledge */
    /* `limited`: only `left` bytes more are received, then the connection counts as broken
     * (`flooded`). Until a channel is open libssh2 searches for what it wants, in one call, as long
     * as something comes. */
    bool limited, flooded;
    size_t left;
    bool ended;        /* the peer closed it */
    int receive_errno; /* 0: none */
    int send_errno;
};

/* The session's abstract pointer must be the struct ssh_socket. */
void socket_attach(LIBSSH2_SESSION *session);

bool socket_broken(const struct ssh_socket *socket);
int socket_errno(const struct ssh_socket *socket); /* when it is broken; ECONNRESET for an end */
/* "closed by the other side", "Connection reset by peer"; NULL when it is not broken. */
const char *socket_cause(const struct ssh_socket *socket);
