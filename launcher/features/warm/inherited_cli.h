/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process inherits from the one that starts it, and passes on to ranks: its user, rights,
 * signals, limits, processors, cgroup, namespaces and the like; also which hvdrun it is. Ranks that
 * a holder forks have what `hvdrun warm start` had, and so have those of a job that has the same.
 */
#pragma once

#include "base/buf.h"

/* A line for each thing: its name for a user, a colon, its value. */
void inherited_read(const char *agent_path, struct buf *out);

/* The name of the first thing that differs; the caller frees it. NULL: nothing differs. Pure. */
char *inherited_difference(const char *one, const char *other);
