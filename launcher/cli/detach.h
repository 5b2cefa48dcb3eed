/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --detach: the job runs in a child with a session of its own. The parent waits until all ranks
 * run, prints the id of the job, and ends. A signal that it gets until then goes to the child.
 * Errors of the start appear as always, because the child keeps standard error until then.
 */
#pragma once

#include "base/error.h"

enum detach_side { DETACH_FAILED = -1, DETACH_CHILD, DETACH_PARENT };

/* Forks. Call it before any other process is started. In the child, `*started_fd` takes the id. In
 * the parent, it returns after the start, with the exit status in `*status`. */
enum detach_side detach_fork(int *started_fd, int *status, struct error *err);
