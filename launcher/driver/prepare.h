/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREPARE: what every node is told about the coming epoch. Made when all nodes have said HELLO,
 * since it names to each of them the others' host names and addresses.
 */
#pragma once

#include "driver/job.h"

/* To all nodes; or the end of the job, when they have no network in common. */
void prepare_send(struct job *job);
