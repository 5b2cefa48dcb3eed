/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the connections of all process sets for their end, in a thread of its own.
 *
 * A set's own thread cannot do that while it is in an operation of the engine. An engine may notice
 * a lost rank only when its time-out is over. The thread sleeps until a connection ends.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct watch;

/* `gone` gets what watch_add() was called with, in the watch's thread. NULL: it cannot be made. */
struct watch *watch_start(void (*gone)(void *context, int32_t set, int rank), void *context,
                          struct error *err);
void watch_stop(struct watch *watch); /* accepts NULL; `gone` is not called any more */

/* From any thread. The end of the descriptor is watched until it is closed. */
void watch_add(struct watch *watch, int fd, int32_t set, int rank);
