/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of jobs that ended before they had a file of their own (record.h). Each is one line
 * of a file in the folder of jobs. To append a line costs much less than to make a file, and most
 * of these jobs do next to nothing. A journal of JOB_JOURNAL_BYTES becomes the old one, which is
 * dropped then.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

#define JOB_JOURNAL_BYTES (256 * 1024)

/* Appends the record, which has its "job". -1: the disk is full, or the folder is gone. */
int job_journal_add(int folder, const json_t *record, struct error *err);

/* Calls `each` for every record of a job that ended at `since_s` (seconds since 1970) or later, the
 * oldest first. `record` is borrowed. */
void job_journal_walk(int folder, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context);
