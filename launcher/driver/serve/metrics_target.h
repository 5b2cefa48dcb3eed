/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file DIR/JOB.json with the address of the job's metrics, for file_sd_configs of Prometheus.
 * Other users may read it. If SIGKILL ends hvdrun, it remains.
 */
#pragma once

#include "driver/job/job.h"

struct metrics_target;

/* `url` is that of the server. NULL: it cannot be written, which is a warning, or `url` is a Unix
 * socket, from which Prometheus cannot read. */
struct metrics_target *metrics_target_create(struct job *job, const char *folder, const char *url);
void metrics_target_destroy(struct metrics_target *target); /* removes the file; accepts NULL */
