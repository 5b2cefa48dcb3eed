/* SPDX-License-Identifier: Apache-2.0 */
/* The collective operations on a state. Every rank of the job must call them at the same place. */
#pragma once

#include "elastic/state.h"
#include "elastic/world.h"

/* All ranks get the memory and the age of the rank with the greatest age. If several have it, the
 * lowest rank gives. So a new rank, whose age is 0, gets the state of a survivor. Then the state is
 * saved. HVD_ERR_MISMATCH: the states of the ranks have different entries, and nothing has changed.
 * After another error the memory may be a mixture: restore it. */
int elastic_sync(struct elastic_state *state, const struct elastic_world *world, struct error *err);

/* HVD_ERR_HOSTS_CHANGED: rank 0 knows that hosts have joined or left; all ranks return it. */
int elastic_check(const struct elastic_world *world, struct error *err);
