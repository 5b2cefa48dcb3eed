/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job writes at its end: the JSON of --report, the trace of --launch-trace, and the block on
 * the terminal that says which rank or host failed and why.
 */
#pragma once

#include "driver/job/job.h"

/* The report as JSON text, and as a value of jansson: with its lists of nodes, ranks and stacks, or
 * without. The caller frees them. */
char *report_json(const struct job *job, const struct verdict *verdict);
struct json_t *report_object(const struct job *job, const struct verdict *verdict, bool lists);

/* What waits, or waited, for ranks in libhvd; a value of jansson that the caller owns. */
struct json_t *report_stalls(const struct job *job);
/* The same for what waits now: a list of lines of text. */
struct json_t *report_stalls_now(const struct job *job);

/* The start in the trace event format of Chrome: a row for each node and each rank. The caller
 * frees it. */
char *report_trace(const struct job *job);

/* The host that the verdict names; NULL: none. */
const char *report_verdict_host(const struct job *job, const struct verdict *verdict);

/* The role of the last worker on this seat in the verdict. With a likely cause, the first failure
 * is a consequence. */
enum exit_role report_role(const struct job *job, const struct verdict *verdict, int seat);

/* The block about a failed job: lines that begin with "hvdrun: ", and quoted ones that begin with
 * four spaces. Empty on success. */
void report_failure(const struct job *job, const struct verdict *verdict, struct buf *out);
