/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open channel of a session, as two streams in and one out.
 *
 * libssh2 loses its place when a second packet is begun while one is half sent. So one thing goes
 * out at a time, and until it is out libssh2 is asked for nothing else. Such a thing is: bytes that
 * were taken but not sent, room for the peer to send more, the end of our side.
 */
#pragma once

#include <libssh2.h>
#include <stdbool.h>
#include <sys/types.h>

#include "transport/ssh_module/socket.h"
#include "transport/ssh_module/ssh_module.h"

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
