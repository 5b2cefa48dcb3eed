/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what the launcher says about the job from the worker's environment. The names are those of
 * Horovod: HOROVOD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, _CROSS_RANK and _CROSS_SIZE,
 * HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT, HOROVOD_HOSTNAME, HOROVOD_GLOO_IFACE,
 * HOROVOD_GLOO_TIMEOUT_SECONDS (30 if it is not set), and HOROVOD_MPI_THREADS_DISABLE (0 if it is
 * not set).
 */
#pragma once

#include "engine/engine.h"

/* The value of a variable, or NULL. getenv() is one. */
typedef char *setup_get(const char *name);

/* The same, but an empty variable counts as one that is not set. */
const char *setup_value(setup_get *get, const char *name);

/* Changes `*out` if the variable is set. -1: it is wrong, and the error names it. */
int setup_number(setup_get *get, const char *name, int64_t min, int64_t max, int64_t *out,
                 struct error *err);

/* Fills `setup`, whose texts are borrowed from `get`. HVD_ERR_ARGUMENT: a variable is wrong, and
 * the error names it. Without HOROVOD_SIZE, the place has size 0. */
enum hvd_status setup_read(struct engine_setup *setup, setup_get *get, struct error *err);

/* Finds the set rank of this process in the list of world ranks that makes a communicator.
 * HVD_ERR_ARGUMENT: it is not in the list, or a rank is not in the world, or occurs twice. */
enum hvd_status ranks_find(const struct engine_place *place, const int *ranks, int count,
                           int *set_rank, struct error *err);
