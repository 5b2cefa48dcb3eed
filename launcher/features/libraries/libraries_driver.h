/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libraries the ranks have loaded. The driver asks a while after the start of an epoch, when
 * something has gone wrong, and when a user wants to know. It warns once for each kind of library
 * that differs.
 */
#pragma once

#include "driver/job/ask.h"

struct json_t;
struct libraries;

#define LIBRARIES_LIMIT_MS 3000

/* Asks anew. `done`, which may be NULL, comes as that of ask_all() does. */
void libraries_ask(struct job *job, ask_done *done, void *context);

/* {"files": [{"kind", "title", "version", "build_id", "path", "deleted", "ranks": [N]}],
 * "differences": [LINE]}: what was seen last of each rank, also of those that have ended. A version
 * or build id that is not known is null. The caller owns it. NULL: nothing was seen. */
struct json_t *libraries_json(const struct job *job);
