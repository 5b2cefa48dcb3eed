/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of a crew's workers: which each one is near (local rank i: GPU i of those that the
 * node's CUDA_VISIBLE_DEVICES shows, round and round; with --gpus-per-proc N, N of them), and what
 * its environment says about them and the network adapter next to them.
 */
#pragma once

#include "agent/crew_setup.h"
#include "model/binding/topology.h"

struct crew_gpus;

/* NULL when PREPARE asks for nothing that concerns GPUs. `topology`: of a made-up machine, whose
 * devices are taken; else NULL. */
struct crew_gpus *crew_gpus_create(const struct crew_setup *setup, struct topology *topology);
void crew_gpus_destroy(struct crew_gpus *gpus); /* accepts NULL */

/* -1 and STATUS_NO_SLOTS when --gpus-per-proc asks for more than there are. */
int crew_gpus_check(const struct crew_setup *setup, int slots, struct error *err);

/* Those that the workers see, in their order. Borrowed. */
const struct device_list *crew_gpus_seen(const struct crew_gpus *gpus);

/* The numbers of those that the worker in `slot` has or is near, "2,3"; NULL: none. The caller owns
 * it. */
char *crew_gpus_of(const struct crew_setup *setup, size_t slot);

/* Appends "NAME=value": to `own` what --gpus-per-proc gives it, to `hints` what it gets where
 * nobody else has set the name. */
void crew_gpus_env(const struct crew_setup *setup, const Hvdrun__Worker *worker, struct strv *own,
                   struct strv *hints);
