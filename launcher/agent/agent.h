/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: one per node. It serves its driver over one link. When the driver says so or is lost,
 * the agent ends every process below it, then itself.
 */
#pragma once

#include "agent/agent_config.h"
#include "agent/keeper.h"
#include "agent/post.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "node/facts.h"

/* Runs until the job is over. Returns the process's exit status. */
int agent_run(const struct agent_config *config);
