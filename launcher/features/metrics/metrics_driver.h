/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a job, as text (docs/monitoring.md). What ranks and hosts use is as of the last
 * round of the sampler.
 */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"
#include "features/metrics/exposition.h"

#define METRICS_TEXT_MAX ((size_t)64 << 20)

void metrics_text(struct job *job, enum exposition_format format, struct buf *out);
