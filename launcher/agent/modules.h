/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the agent opens its modules (hvdrun-pmix.so, hvdrun-topology.so): files beside hvdrun for
 * an agent that was forked there; for hvdrun-agent, which is sent to hosts as one file, parts of
 * the program, unpacked into memory when the first of them is needed.
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

struct modules *modules_create(const char *dir); /* where they are when they are files */
void modules_destroy(struct modules *modules);

/* The path to give to dlopen(), borrowed. A module is unpacked once, whoever asks how often. NULL:
 * it could not be. */
const char *modules_find(struct modules *modules, const char *name, struct error *err);

/* From a list: for tests. The path is the caller's; the descriptor that it names stays open.
 * `in_memory` false goes on to files at once. */
char *modules_unpack(const struct module_image *image, bool in_memory, struct error *err);
