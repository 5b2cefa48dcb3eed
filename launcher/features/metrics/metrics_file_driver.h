/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --metrics-file, for node_exporter's textfile collector: written anew every
 * METRICS_FILE_MS, in one step, and removed at the end of the job. Otherwise the last values would
 * live for ever. A file that cannot be written is one warning, and the job goes on.
 */
#pragma once

#include "driver/job/job.h"

#define METRICS_FILE_MS 10000

struct metrics_file;

struct metrics_file *metrics_file_create(struct job *job, const char *path);
void metrics_file_destroy(struct metrics_file *file); /* accepts NULL */
