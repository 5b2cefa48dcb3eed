/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of cgroup alone. */
#pragma once

#include <sys/types.h>

#include "node/cgroup.h"

/* The pid that a record of the kernel's log says was killed for lack of memory; -1: none. */
pid_t oom_victim_in(const char *record);
