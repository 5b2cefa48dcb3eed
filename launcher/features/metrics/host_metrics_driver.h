/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the hosts that are alive, as of the last round of the sampler. A line of a table
 * is a metric. */
#pragma once

#include "driver/job/job.h"
#include "features/metrics/exposition.h"

void host_metrics_put(const struct job *job, struct exposition *out);
