/* SPDX-License-Identifier: Apache-2.0 */
/* The process group of a worker, which has the number of its process. */
#pragma once

#include <sys/types.h>

/* To the group of a worker that runs. */
void worker_group_signal(pid_t group, int signal);

/* To what a worker that has been waited for left in its group. The group keeps its number while it
 * has members. If a process of this number runs, it is another one, and gets nothing. */
void worker_group_signal_rest(pid_t group, int signal);
