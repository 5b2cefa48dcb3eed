/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges what `hvdrun check --gpu` found: facts in, findings out. Pure.
 *
 * A finding is fatal if a program cannot use a GPU, or if no host has one. The rest are warnings. A
 * figure is compared with the median of all GPUs of the same model.
 */
#pragma once

#include "features/check/result.h"

/* Tests of speed: below this share of the median, a GPU is slow. How fast a GPU reads from the host
 * also depends on its place there. */
#define GPU_SLOW 0.8
#define GPU_SLOW_HOST 0.5

/* Appends the findings, in the order of the hosts. */
void check_judge_gpus(const struct check_result *result, struct check_findings *out);
