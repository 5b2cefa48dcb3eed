/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPIR is an interface for parallel debuggers, such as TotalView, DDT and STAT. A tool that holds
 * this process reads where the ranks are, from variables of fixed names. The rules are in "The MPIR
 * Process Acquisition Interface", version 1.1, of the MPI Forum.
 */
#pragma once

#include <stdbool.h>

#include "driver/job/job.h"

bool mpir_is_debugged(void); /* a tool says that it debugs the job */
/* All ranks wait at their start: a tool may attach to them now. Returns when it lets us go on. */
void mpir_spawned(struct job *job);
