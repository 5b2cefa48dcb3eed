/* SPDX-License-Identifier: Apache-2.0 */
/* A session, and what it consists of: login, socket and channel. */
#pragma once

#include <libssh2.h>
#include <stdbool.h>
#include <sys/types.h>

#include "transport/ssh_module/key.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/ssh_module.h"

/* session.c: a session from the connected socket to the command's streams. */
extern const struct ssh_module hvdrun_ssh_module;

/*
 * login.c: decides whether a host is the one we know. The policy on top of known_hosts:
 *
 *   the key is listed                  accepted
 *   it is revoked                      refused, whatever the policy
 *   another key of its type is listed  refused, with both fingerprints
 *   only other types are listed        refused too: a host must not get around a known key by
 *                                      showing one of another type
 *   an authority speaks for the host   left to the ssh program, which can ask for certificates
 *   nothing is listed                  accepted and appended; with SSH_HOST_STRICT refused
 *
 * SSH_HOST_ANY accepts all but revoked keys. libssh2 cannot ask for some listed types (RSA before
 * 1.11: SHA-1 only). For such a host another type proves nothing, and the ssh program decides.
 */

enum host_key_result { HOST_KEY_ACCEPTED, HOST_KEY_REFUSED, HOST_KEY_FALLBACK };

/* Asks for the listed types first. */
void host_key_prefer(LIBSSH2_SESSION *session, const struct known_hosts *known);

/* Asks for AES with 128 bits first, as OpenSSH has it too; the others follow in libssh2's own
 * order, which begins with the longest keys. */
void cipher_prefer(LIBSSH2_SESSION *session);

/* After the handshake. `text` becomes the problem, or what was accepted ("host key TYPE
 * FINGERPRINT, new, added to FILE"). */
enum host_key_result host_key_judge(LIBSSH2_SESSION *session, const struct known_hosts *known,
                                    const struct ssh_host_config *config, struct buf *text);

/*
 * login.c: logs in with the keys of struct ssh_keys, one after the other, as many as servers allow
 * (MaxAuthTries 6). It tries no other method and never asks the user.
 */

struct auth; /* of one session */

enum auth_step { AUTH_WAIT, AUTH_DONE, AUTH_REFUSED, AUTH_FALLBACK, AUTH_BROKEN };

/* `no_keys` says why `keys` is NULL, and what to do. All is borrowed. Free it after the session. */
struct auth *auth_create(LIBSSH2_SESSION *session, const char *user, struct ssh_keys *keys,
                         const char *no_keys);

/* AUTH_REFUSED, AUTH_FALLBACK: `text` says why. AUTH_DONE: `text` names the key. AUTH_BROKEN: the
 * connection ended; `text` tells more when there is more to tell than that. */
enum auth_step auth_advance(struct auth *auth, struct buf *text);

/*
 * duplex.c: the layer between libssh2 and the socket. It remembers how the connection broke, it
 * never raises SIGPIPE, and it can keep libssh2 away from the socket:
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

/* "closed by the other side", "Connection reset by peer"; NULL when it is not broken. */
const char *socket_cause(const struct ssh_socket *socket);

/*
 * The open channel of a session, as two streams in and one out.
 *
 * libssh2 loses its place when a second packet is begun while one is half sent. So one thing goes
 * out at a time, and until it is out libssh2 is asked for nothing else. Such a thing is: bytes that
 * were taken but not sent, room for the peer to send more, the end of our side.
 */

#define DUPLEX_WINDOW (2u * 1024 * 1024) /* bytes that the peer may have under way */
#define DUPLEX_PACKET 32768u

struct duplex;

struct duplex *duplex_create(LIBSSH2_SESSION *session, LIBSSH2_CHANNEL *channel,
                             struct ssh_socket *socket);
void duplex_destroy(struct duplex *duplex); /* leaves the channel alone; accepts NULL */

/* All but duplex_wants() return -1 with EAGAIN, or with another errno when the connection is
 * broken (socket_cause() or libssh2's last error tell more). */
ssize_t duplex_read(struct duplex *duplex, enum ssh_channel channel, void *bytes, size_t room);
ssize_t duplex_write(struct duplex *duplex, const void *bytes, size_t length);
int duplex_send_eof(struct duplex *duplex);
int duplex_flush(struct duplex *duplex); /* 0: nothing is left to send */

int duplex_wants(const struct duplex *duplex); /* enum ssh_want */

void duplex_notice_close(struct duplex *duplex);     /* has the peer closed the channel? */
int duplex_exit_status(const struct duplex *duplex); /* as ssh_module's */
