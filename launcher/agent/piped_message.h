/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between an agent and its helper processes: the length in 4 bytes, the lowest first, then
 * the message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/control.pb-c.h"

#define PIPED_HEADER 4

/* For a descriptor that blocks, or that has room for all of it. -1 and errno. */
int piped_message_write(int fd, const ProtobufCMessage *message);

/* The message at the front of `bytes`: 1, its body, and how long that is; then the caller consumes
 * PIPED_HEADER and the body. 0: not all of it is there. -1: it is longer than `max`. */
int piped_message_next(const struct buf *bytes, size_t max, const uint8_t **body, size_t *length);
