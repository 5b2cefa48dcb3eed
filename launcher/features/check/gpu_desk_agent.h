/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of `hvdrun check --gpu`, the topic "gpus": what NVIDIA's library says of the
 * GPUs (agent/gpu_health.h), and then how fast they are, if a Python with PyTorch is there
 * (gpu_test.py). Both are processes of their own with a time limit.
 */
#pragma once

#include "agent/agent_state.h"
#include "agent/ask.h"

struct gpu_desk;

struct gpu_desk *gpu_desk_create(struct agent *agent);
void gpu_desk_destroy(struct gpu_desk *desk); /* accepts NULL */

/* Answers later. Another question takes the place of this one. */
void gpu_desk_ask(struct gpu_desk *desk, const struct asked *asked,
                  const Hvdrun__GpusRequest *request);
