/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the ranks that run, as of the last round of the sampler. A line of a table is a
 * metric. */
#pragma once

#include "driver/job/job.h"
#include "features/metrics/exposition.h"

void rank_metrics_put(const struct job *job, struct exposition *out);
