/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's one context: whether it is initialized in this process, and its users. It also has
 * the text of the last error of each thread. All functions of hvd.h begin with library_enter().
 */
#pragma once

#include "loop/world.h"

/* hvd_init() and hvd_shutdown(), but for the timeline and the line to the launcher. */
enum hvd_status library_start(const struct hvd_init_options *options,
                              const struct loop_joints *joints);
enum hvd_status library_stop(void);
/* Whether this process was forked while the library was up: it must not use the library. */
bool library_is_child(void);

/* The world, until library_leave(); NULL: the library is not initialized, and the error is set. */
struct world *library_enter(void);
void library_leave(void);
/* For a variable that library_enter() has filled: leaves at its end. */
void library_leave_at(struct world **world);
#define AUTO_LEAVE __attribute__((cleanup(library_leave_at)))

/* Sets the text of this thread's last error, and returns the status. */
__attribute__((format(printf, 2, 3))) enum hvd_status library_fail(enum hvd_status status,
                                                                   const char *format, ...);

/* The launcher says that this rank has ended: everything that is pending fails at once with
 * HVD_ERR_PEER_LOST. From any thread; does nothing if the library is not initialized, or if `rank`
 * is not a rank of the job. */
void loop_peer_lost(int rank, const char *why);

/* The launcher says that this rank has ended with status 0. Most likely it has shut the library
 * down, and its peers learn that from itself. If they do not within a second, it is lost: a child
 * that it left behind may keep its connections open. As above otherwise. */
void loop_peer_left(int rank);

/* Tells which tensors wait for ranks now, one call for each group of ranks. From any thread, and no
 * operation delays it. Does nothing if the library is not initialized. */
void loop_waits(loop_wait *take, void *context);

/* How many submissions of this rank are complete since hvd_init(), so that a launcher sees whether
 * the job makes progress. 0: the library is not initialized. From any thread. */
uint64_t loop_completed(void);
