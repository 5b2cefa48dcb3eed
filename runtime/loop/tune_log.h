/* SPDX-License-Identifier: Apache-2.0 */
/* The log of autotune: comma-separated values in the columns of Horovod. Each round has a row, and
 * at the end the best point has one. */
#pragma once

#include <stdbool.h>

#include "core/tuner.h"

struct tune_log;

/* NULL: `path` is NULL, or it cannot be written, and a warning says so. */
struct tune_log *tune_log_open(const char *path, bool cache_enabled);
void tune_log_close(struct tune_log *log); /* accepts NULL */

void tune_log_row(struct tune_log *log, const struct tuning *tuning); /* accepts NULL */
