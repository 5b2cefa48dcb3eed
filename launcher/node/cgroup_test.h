/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of cgroup alone. */
#pragma once

#include <sys/types.h>

#include "node/cgroup.h"

/* The pid that a record of the kernel's log says was killed for lack of memory; -1: none. */
pid_t oom_victim_in(const char *record);

/* We are in the machine's first pid namespace, whose pids the kernel's log has. In a container, the
 * same number may be another process. */
bool oom_log_has_our_pids(void);
