/* SPDX-License-Identifier: Apache-2.0 */
/* The list of world ranks that makes a communicator. */
#pragma once

#include "engine/engine.h"

/* Finds the set rank of this process. HVD_ERR_ARGUMENT: it is not in the list, or a rank is not in
 * the world, or occurs twice. */
enum hvd_status ranks_find(const struct engine_place *place, const int *ranks, int count,
                           int *set_rank, struct error *err);
