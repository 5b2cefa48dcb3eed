/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the engine of a job as Horovod does, from the environment:
 * - HOROVOD_CONTROLLER and HOROVOD_CPU_OPERATIONS are mpi or gloo. If both are set, they must be
 *   equal, because one engine does the work of both.
 * - If neither is set: gloo if the launcher gave the address of its store or a size above 1. Else
 *   mpi if the environment is that of an MPI launcher (OMPI_COMM_WORLD_SIZE or PMIX_RANK). Else
 *   self.
 * - gloo in a job of one rank, or without a size, becomes self.
 */
#pragma once

#include "engine/setup.h"

/* `*name` receives the name of the engine; static. HVD_ERR_ARGUMENT: a variable is wrong, or the
 * job has more than one rank and gloo does not have an address. */
enum hvd_status engine_choose(const struct engine_setup *setup, setup_get *get, const char **name,
                              struct error *err);
