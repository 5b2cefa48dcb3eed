/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/settings/words.h"

/* cgroup.c */

/* The pid that a record of the kernel's log says was killed for lack of memory; -1: none. */
pid_t oom_victim_in(const char *record);

/* We are in the machine's first pid namespace, whose pids the kernel's log has. In a container, the
 * same number may be another process. */
bool oom_log_has_our_pids(void);

/* mpi_detect.c */

bool mpi_launched_by_other(const char *environment, size_t length, enum mpi_kind given,
                           const char *nspace);
