/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control channel of a process set: one connection, TCP or within the host, between the root
 * (set rank 0) and each other member, for the messages of runtime/core. Data moves through the
 * engine.
 *
 * Engines have collective operations only, in which a rank cannot wait for a message and for its
 * own program at the same time. A channel can, with one poll() and without a period. It also
 * notices at once that a process has ended, whatever the engine is.
 *
 * The root listens while the channel opens. It tells its addresses and a secret through the engine.
 * On a connection, both sides prove that they know the secret. A thread that owns the channel makes
 * all calls, except channel_ring().
 */
#pragma once

#include "base/buf.h"
#include "loop/channel_meeting.h"

struct channel;

/* All members call it. HVD_ERR_PEER_LOST: the others could not be reached in time. */
enum hvd_status channel_open(const struct channel_setup *setup, struct channel **channel,
                             struct error *err);
void channel_close(struct channel *channel); /* accepts NULL */

void channel_ring(struct channel *channel); /* from any thread: ends a wait, or the next one */

/* Calls `each` for the connections, with the global ranks at their other ends. */
void channel_each(const struct channel *channel, void (*each)(void *context, int fd, int rank),
                  void *context);

/* Sends to set rank `to`, or keeps what the network does not take yet. -1: that rank is lost. */
int channel_send(struct channel *channel, int to, const void *bytes, size_t length,
                 struct error *err);
/* Every connection has ended. */
bool channel_is_alone(const struct channel *channel);
bool channel_has_unsent(const struct channel *channel);

/* Nothing more will be sent: the other ends learn of it. */
void channel_hang_up(struct channel *channel);

/* Waits until there is a message or a ring, or the time is over (`timeout_ns` < 0: no limit). -1: a
 * rank is lost, and the error says which. Messages that came before can still be taken. */
int channel_wait(struct channel *channel, int64_t timeout_ns, struct error *err);

/* 1: the next message that has come whole. 0: there is none. -1: what a rank sends is not a
 * message, so that rank is lost. */
int channel_take(struct channel *channel, int *from, struct buf *message, struct error *err);
