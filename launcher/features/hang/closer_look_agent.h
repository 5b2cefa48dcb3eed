/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs and NCCL say about the workers of this node, for a job that is quiet. Both are asked in
 * the background, so that nothing waits for them. What they last said goes into the pulse, if it
 * is younger than CLOSER_FRESH_MS.
 *
 * NCCL is asked at the address in NCCL_RAS_ADDR of the first worker that runs. Of its answer, only
 * the workers of this node count: those with the address of this machine, and a pid of theirs.
 */
#pragma once

#include "agent/crews.h"
#include "agent/gpu_sampler.h"
#include "node/facts.h"

#define CLOSER_FRESH_MS 20000

struct closer_look;

/* All are borrowed. */
struct closer_look *closer_look_create(struct loop *loop, const struct crews *crews,
                                       struct gpu_sampler *gpus, const struct node_facts *facts);
void closer_look_destroy(struct closer_look *look); /* the sampler first; accepts NULL */

void closer_look_ask(struct closer_look *look);
/* Adds what is known to a worker's pulse, which borrows it until the next turn of the loop. */
void closer_look_fill(struct closer_look *look, Hvdrun__RankPulse *pulse);
