/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver writes into the record of its job (driver/control/record.h has the keys). */
#pragma once

#include "driver/job/job.h"

#define RECORD_LINES 20 /* of the output, in the record of a job that has ended */
#define RECORD_LINE_BYTES 1000
#define RECORD_RANKS 1000 /* of a larger job, the record has a report without ranks and hosts */

struct json_t;

struct json_t *record_json_begin(const struct job *job); /* the caller's */
/* The folder of --log-dir as an absolute path. The caller frees it. NULL: the folder of jobs. */
char *record_log_folder(const struct job *job);
/* The job has its verdict. `brief`: if it has succeeded, its report lists no ranks and hosts. The
 * caller's. */
struct json_t *record_json_end(const struct job *job, bool brief);
/* The answer for clients that wait for the end: status, cause and text. The caller's. */
struct json_t *record_json_verdict(const struct job *job);
