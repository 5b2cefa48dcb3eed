/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder of a host: mothers outlive a job, and fork ranks for the next one (`hvdrun warm`).
 *
 * A rank must be a child of its agent: then the agent gets its status, PDEATHSIG ends it, a tracer
 * may look at it, and a sweep finds what it leaves behind. A process becomes a child of another one
 * only if that is an ancestor of its parent. So the agent must be older than the mother. The
 * process that keeps mothers is therefore the agent itself, of one job after another:
 *
 *   keeper (agent/keeper.h) -- holder -- mothers -- ranks, as children of the holder
 *
 * Between jobs the holder waits at its socket. A driver of the same user gives it a stream, and it
 * runs agent_run() on that instead of an agent of that job's own. Afterwards it executes itself
 * anew, since a job leaves threads and settings behind. The children of a process stay.
 *
 * The holder and all below it have inherited cgroup, namespaces, limits and the like from the shell
 * of `hvdrun warm start`. A driver that has others does without it (inherited_cli.h).
 */
#pragma once

#include "agent/helper_program.h"

extern const struct helper_program warm_holder_program; /* "--warm NUMBER" */
