/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: one per node. It serves its driver over one link and ends, with everything below it,
 * when the driver says so or is lost.
 */
#pragma once

#include "agent/agent_config.h"

/* Runs until the job is over. Returns the process's exit status. */
int agent_run(const struct agent_config *config);
