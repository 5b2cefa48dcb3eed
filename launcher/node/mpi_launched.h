/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another launcher has started a process, as mpirun inside a worker starts its ranks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/settings/words.h"

/* Was a process that runs below a worker started by another launcher, as ranks of an mpirun inside
 * a worker are? Then its environment names a server that is not ours. `given`: what the worker got
 * from us. `nspace`: our PMIx namespace, "" without one. `environment`: NUL-ended pairs, as in
 * /proc/PID/environ. false when the process cannot be looked at. */
bool mpi_process_launched_by_other(pid_t pid, enum mpi_kind given, const char *nspace);
bool mpi_launched_by_other(const char *environment, size_t length, enum mpi_kind given,
                           const char *nspace);
