/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function of the program again and again, until it ends for another reason than a change
 * of the ranks.
 *
 *   what happened                          what follows
 *   the function returned HVD_OK           return HVD_OK
 *   ... HVD_ERR_HOSTS_CHANGED              the next epoch, sync, the function
 *   ... an error of a lost connection      restore, the next epoch, sync, the function
 *   ... another value                      return it
 *   sync or open failed as above           the same as if the function had
 *   open: HVD_ERR_REMOVED                  return it
 *
 * Errors of a lost connection are HVD_ERR_PEER_LOST, HVD_ERR_SHUT_DOWN, HVD_ERR_TIMEOUT and
 * HVD_ERR_ENGINE.
 */
#pragma once

#include "elastic/state.h"
#include "elastic/world.h"

/* The world is open, and is so afterwards, unless open() failed. `rejoins`: the launcher gives the
 * ranks of the next epoch; if it does not, errors end the run. */
int elastic_run(struct elastic_state *state, const struct elastic_world *world, bool rejoins,
                int (*function)(void *context), void *context, struct error *err);
