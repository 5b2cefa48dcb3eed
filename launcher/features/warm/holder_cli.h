/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun warm`, and what a job with --warm asks of the holder of this host (holder.h). */
#pragma once

#include "cli/features.h"

control_run control_warm;

/* Gives the agent's end of a new stream to the holder, if there is one that fits. False: the job
 * needs an agent of its own; a line on stderr says why. */
agent_here warm_agent_here;
