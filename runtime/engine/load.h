/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses and loads the engine of a job.
 *
 * The choice is that of Horovod, from the environment:
 * - HOROVOD_CONTROLLER and HOROVOD_CPU_OPERATIONS are mpi or gloo. If both are set, they must be
 *   equal, because one engine does the work of both.
 * - If neither is set: gloo if the launcher gave the address of its store or a size above 1. Else
 *   mpi if the environment is that of an MPI launcher (OMPI_COMM_WORLD_SIZE or PMIX_RANK). Else
 *   self.
 * - gloo in a job of one rank, or without a size, becomes self.
 *
 * An engine is a module. So libhvd needs neither MPI nor Gloo, and a program that uses it
 * starts on a host without them. Modules are named hvd-NAME.so. A module that was loaded stays
 * loaded until the process ends, because MPI and Gloo have threads and handlers of their own.
 */
#pragma once

#include "engine/setup.h"

/* `*name` receives the name of the engine; static. HVD_ERR_ARGUMENT: a variable is wrong, or the
 * job has more than one rank and gloo does not have an address. */
enum hvd_status engine_choose(const struct engine_setup *setup, setup_get *get, const char **name,
                              struct error *err);

/* The engine of this name: self is always there. `folder` has the modules. HVD_ERR_UNSUPPORTED: the
 * engine is not installed, or a library that it needs is not; the error says which. */
enum hvd_status engine_load(const char *folder, const char *name, const struct engine **engine,
                            struct error *err);

/* Whether `folder` has the module, or the name is self. Loads nothing. */
bool engine_exists(const char *folder, const char *name);

/* The folder hvd/ beside the file that contains this function: libhvd.so, or else the program. If
 * it does not exist, the folder where libhvd is installed, or usually is. The caller frees it. */
char *engine_folder(void);
