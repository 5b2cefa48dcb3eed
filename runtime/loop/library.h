/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's one context: whether it is initialized in this process, and its users. It also has
 * the text of the last error of each thread. All functions of hvd.h begin with library_enter().
 */
#pragma once

#include "loop/world.h"

/* hvd_init() and hvd_shutdown(), but for the timeline and the line to the launcher. */
enum hvd_status library_start(const struct hvd_init_options *options);
enum hvd_status library_stop(void);
/* Whether this process was forked while the library was up: it must not use the library. */
bool library_is_child(void);

/* The world, until library_leave(); NULL: the library is not initialized, and the error is set. */
struct world *library_enter(void);
void library_leave(void);

/* Sets the text of this thread's last error, and returns the status. */
__attribute__((format(printf, 2, 3))) enum hvd_status library_fail(enum hvd_status status,
                                                                   const char *format, ...);
