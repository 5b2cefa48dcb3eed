/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVIDIA's library knows of the GPUs here (node/nvml.h), after a failure or before a job. A
 * process of its own asks, because a call of the library can block for good on a sick GPU: see
 * agent/gpu_sampler.h. It writes each GPU as soon as it knows it. At the time limit it is killed,
 * and what it has written by then is kept.
 */
#pragma once

#include "agent/modules.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "io/program.h"

#define GPU_HEALTH_WORD "--gpu-health" /* the argument that makes a program the helper */
#define GPU_HEALTH_NOW "now"           /* what is so at this moment: for evidence */
#define GPU_HEALTH_ALL "all"           /* what lasts, and all else: for `hvdrun check` */
#define GPU_HEALTH_LIMIT_MS 5000
#define GPU_HEALTH_MAX ((size_t)256 << 10) /* bytes of an answer */

/* As program_start(), whose result has GpuHealths. `program`: a path of hvdrun-agent. `what`: one
 * of the words above. */
struct program *gpu_health_ask(struct loop *loop, struct helpers *helpers, const char *program,
                               const char *what, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context);

/* Not empty, if some of the result is missing because the library hangs or fails. Static. */
const char *gpu_health_missing(const struct program_result *result);

extern const struct helper_program gpu_health_helper;
