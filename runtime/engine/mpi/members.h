/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a communicator that the program has made. */
#pragma once

#include "engine/engine.h"

/* See engine/engine.h: the ranks of the program's own communicator in the world. */
enum hvd_status mpi_members(struct engine_world *world, const void *communicator, int32_t **ranks,
                            int32_t *count, struct error *err);
