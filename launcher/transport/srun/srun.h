/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The srun transport: Slurm starts the agents, they dial back (transport/dial_back.h).
 *
 * One srun (transport/srun/step.h) serves all calls of one turn, so hundreds of nodes cost as much
 * as one. With `one_each` every node has an srun of its own, so that a dead node does not take live
 * ones along. `srun --help` is asked once, before the first step, for what this site's srun can do.
 */
#pragma once

#include "transport/srun/process.h"

struct srun_transport;

/* The settings are borrowed. NULL: no TLS, no port, or --srun-args that cannot be split. */
struct srun_transport *srun_transport_create(const struct srun_settings *settings,
                                             struct error *err);
void srun_transport_destroy(struct srun_transport *srun); /* after the last hang_up */
struct transport srun_transport(struct srun_transport *srun);

/* Every srun has ended, or was given up. One whose calls are hung up ends on its own with its
 * agents, is asked to after SRUN_LINGER_MS, and is given up after SRUN_PATIENCE_MS more. */
bool srun_transport_is_idle(const struct srun_transport *srun);
