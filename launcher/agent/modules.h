/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the agent's modules (hvdrun-pmix.so, hvdrun-topology.so). An agent that hvdrun forked finds
 * them as files next to hvdrun. The program hvdrun-agent, which hosts get as one file, contains
 * them. It unpacks a module into memory when a job needs it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

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
