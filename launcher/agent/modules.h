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

/* The path to give to dlopen(); the caller frees it. When it names a descriptor, that stays open
 * for the life of the process. NULL: it could not be unpacked. */
char *modules_path(const char *module_dir, const char *name, struct error *err);

/* The same from a list: for tests. `in_memory` false goes on to files at once. */
char *modules_unpack(const struct module_image *image, bool in_memory, struct error *err);
