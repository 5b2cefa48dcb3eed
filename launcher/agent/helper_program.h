/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process of the agent: hvdrun-agent with a word as its first argument. It does what could
 * block the agent for good, or harm it. agent_main/main.c lists all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/control.pb-c.h"

struct helper_program {
    const char *word;                /* the argument */
    bool has_operand;                /* another one follows */
    int (*run)(const char *operand); /* NULL: none. Returns the exit status. */
};

/* Messages between an agent and its helper processes: the length in 4 bytes, the lowest first, then
 * the message. */
#define PIPED_HEADER 4

/* For a descriptor that blocks, or that has room for all of it. -1 and errno. */
int piped_message_write(int fd, const ProtobufCMessage *message);

/* The message at the front of `bytes`: 1, its body, and how long that is; then the caller consumes
 * PIPED_HEADER and the body. 0: not all of it is there. -1: it is longer than `max`. */
int piped_message_next(const struct buf *bytes, size_t max, const uint8_t **body, size_t *length);
