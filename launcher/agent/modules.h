/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program hvdrun-agent has beside the agent: modules, and helper processes.
 *
 * Finds the agent's modules (hvdrun-pmix.so, hvdrun-topology.so). An agent that hvdrun forked finds
 * them as files next to hvdrun. The program hvdrun-agent, which hosts get as one file, contains
 * them. It unpacks a module into memory when a job needs it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/control.pb-c.h"

struct module_image {
    const char *name; /* NULL: the end of the list */
    const unsigned char *begin, *end;
};

/* Only hvdrun-agent has this (agent_main/modules_inside.c). */
extern const struct module_image modules_inside[] __attribute__((weak));

struct modules;

struct modules *modules_create(const char *dir); /* the folder of the files */
void modules_destroy(struct modules *modules);

/* The path for dlopen(), borrowed. Each module is unpacked once. NULL: it could not be found or
 * unpacked. */
const char *modules_find(struct modules *modules, const char *name, struct error *err);

/* From a list: for tests. The path is the caller's; the descriptor that it names stays open.
 * `in_memory` false: uses a file at once. */
char *modules_unpack(const struct module_image *image, bool in_memory, struct error *err);

/*
 * A helper process of the agent: hvdrun-agent with a word as its first argument. It does what could
 * block the agent for good, or harm it. agent_main/main.c lists all of them.
 */
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
