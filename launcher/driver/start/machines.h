/* SPDX-License-Identifier: Apache-2.0 */
/* Which places of a plan are one machine (model/net/machine.h). All of them have said HELLO. */
#pragma once

#include "driver/start/prepare_epoch.h"
#include "model/net/machine.h"

/* Borrows from `hello`. NULL: a node that is like no other. */
struct machine machine_of(const Hvdrun__AgentHello *hello);

/* By place: how many ranks use the CPUs of the node in this epoch, and beside a world that a rank
 * has spawned. The caller frees it. */
int *machines_count_ranks(const struct job *job, const struct prepare_epoch *epoch);

/* Warns of names that are the same machine as another name, once in the job for each of them. Not
 * with --transport local, where all hosts are this machine. */
void machines_warn(const struct job *job, const struct prepare_epoch *epoch);
