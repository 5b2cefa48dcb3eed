/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body that Hugging Face Transformers and the SDK of Kubeflow post to the status endpoint of a
 * Kubeflow TrainJob:
 *
 *   {"trainerStatus": {"lastUpdatedTime": TIME, "progressPercentage": N,
 *                      "estimatedRemainingSeconds": N, "metrics": [{"name": TEXT, "value": TEXT},
 *                                                                  ...]}}
 *
 * Every field of the status may be absent. A field that has another form is not an error, because
 * a later client may write it so: it is left out. Pure.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/progress/progress.h"

/* `out` is empty before. -1: it is not JSON, or has no trainerStatus. */
int progress_json_parse(const void *body, size_t length, struct progress *out, struct error *err);

/* The answer to a request that is refused, in the form of Kubernetes. The caller frees it. */
char *progress_json_refusal(int status, const char *reason, const char *message);
