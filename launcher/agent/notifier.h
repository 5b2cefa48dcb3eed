/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies workers of this node that the hosts of the job have changed. This is Horovod's elastic
 * worker notification, over a TCP connection to the service that the worker has registered.
 *
 * Policy: the worker runs on this node, so 127.0.0.1 is tried first, then the addresses that it
 * registered. There are at most NOTIFIER_TRIES tries, with a pause between. Each try has one
 * connection, with a time limit for the connection and one for the answer. A worker that gets a
 * request twice ignores the second, since its timestamp is not later. Only an acknowledgement with
 * the right digest is a success.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"

enum { NOTIFIER_TRIES = 3 };

struct notifier;

/* The loop calls `done` once for each notification that is not dropped. `problem` is NULL, or one
 * line that is borrowed for the call. `done` may send again and destroy the notifier. */
struct notifier *notifier_create(struct loop *loop,
                                 void (*done)(void *context, uint32_t seat, uint64_t timestamp,
                                              const char *problem),
                                 void *context);
void notifier_destroy(struct notifier *notifier); /* no `done` for notifications in progress */

/* In milliseconds: 2000, 5000 and 200 until this is called. */
void notifier_set_limits(struct notifier *notifier, int64_t connect_ms, int64_t reply_ms,
                         int64_t pause_ms);

/* `result`: enum notification_result. `registration`: the body that the worker registered with,
 * borrowed for the call. Several notifications can be in progress, but one for each worker: while
 * it is, further ones are dropped without `done`. They would say the same, and not later. */
void notifier_send(struct notifier *notifier, uint32_t seat, uint64_t timestamp, int result,
                   const uint8_t *registration, size_t length);
