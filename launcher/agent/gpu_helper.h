/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper process that asks NVIDIA's library what the GPUs do. A call of the library can block
 * for good on a sick GPU, and the library opens devices. So it is not in the agent, and the agent
 * can kill it (agent/gpu_sampler.h).
 *
 * For each byte on stdin it writes one answer to stdout: a GpuUsages (agent/helper_program.h).
 * It ends with stdin. The energy takes the driver some milliseconds, so the
 * helper asks for it every GPU_ENERGY_PERIOD_MS at most, and repeats it in between.
 */
#pragma once

#include "agent/helper_program.h"

#define GPU_HELPER_WORD "--gpus" /* the argument that makes a program the helper */
#define GPU_HELPER_NONE 3        /* exit status: there is no library, or it finds no driver */
#define GPU_ENERGY_PERIOD_MS 10000

extern const struct helper_program gpu_helper;
