/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The looks that hang.h wants: where the main threads of all ranks are.
 *
 * Of Python, the frames say that. Other programs count as busy, but for those that spin in a call
 * of MPI that does not return (mpi_wait.h). To see this, native frames must be read, for which the
 * kernel stops the ranks for a moment. So it is only done with --hang-timeout, when ranks spin.
 */
#pragma once

#include "driver/job/job.h"
#include "features/hang/hang.h"
#include "stacks/stack.h"

/* Both are borrowed. */
struct hang_looks;
struct hang_looks *hang_looks_create(struct job *job, struct hang *hang);
void hang_looks_destroy(struct hang_looks *looks); /* accepts NULL */

/* One at a time. It calls hang_looked() for each rank. */
void hang_looks_ask(struct hang_looks *looks);
/* How deep the last ones were. */
enum look_depth hang_looks_depth(const struct hang_looks *looks);
