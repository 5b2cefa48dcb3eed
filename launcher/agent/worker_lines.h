/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines to the workers of this node (docs/internals/libhvd.md). There is one listening socket
 * for all of them, so a worker that does not use it costs nothing. A worker's library connects to
 * it and reports stalls and progress. The agent sends it the ranks that have ended.
 *
 * A connection belongs to the worker in whose session its process is, as the kernel says. So no
 * packet needs to name its sender, and no other process gets a line. Workers are not trusted: each
 * has few connections, and few of its stalls go to the driver. For a worker that does not read, the
 * agent keeps one number, how far it has come in the list of ranks that all share.
 */
#pragma once

#include <sys/types.h>

#include "agent/post.h"
#include "io/loop.h"
#include "wire/control.pb-c.h"

struct worker_lines;

/* `post` is the agent's. `seat_of` finds the live worker whose process leads this session; false:
 * there is none. NULL: no socket could be opened. */
struct worker_lines *worker_lines_create(struct loop *loop, const struct post *post,
                                         bool (*seat_of)(void *context, pid_t session,
                                                         uint32_t *seat),
                                         void *context, struct error *err);
void worker_lines_destroy(struct worker_lines *lines); /* accepts NULL */

const char *worker_lines_address(const struct worker_lines *lines); /* for LINE_VARIABLE */

/* From now on all lines belong to this epoch. */
void worker_lines_begin(struct worker_lines *lines, uint32_t epoch);

/* A RANKS_ENDED of the driver. */
void worker_lines_ended(struct worker_lines *lines, uint32_t epoch,
                        const Hvdrun__RanksEnded *message);

/* Says to a worker that the hosts of the job have changed. false: it has no line. */
bool worker_lines_hosts(struct worker_lines *lines, uint32_t seat);

/* Asks all workers how many operations they have completed, and (`waits`) which wait for ranks. */
void worker_lines_ask(struct worker_lines *lines, bool waits);
/* What the worker has last reported; false: nothing. */
bool worker_lines_progress(const struct worker_lines *lines, uint32_t seat, uint64_t *operations);
