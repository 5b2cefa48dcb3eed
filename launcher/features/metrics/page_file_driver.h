/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --page-file: the status page as it is at the end of the job, in one document that
 * needs no server. In it is
 *
 *   {"job": {...}, "end": {...}, "output": {...} (of all; these three as in page_json.h),
 *    "outputs": {RANK: {...} (likewise), ...}, "history": {...} (usage/job_history.h),
 *    "left_out": {"ranks": N, "hosts": N, "outputs": N}}
 *
 * The lists have limits, so that the file of a large job stays small. Ranks and hosts take
 * PAGE_FILE_LIST_BYTES each at most, and the output of single ranks takes PAGE_FILE_OUTPUT_BYTES.
 * Ranks that failed come first, then those that differ from the others. "left_out" counts the rest.
 */
#pragma once

#include "driver/job/job.h"

#define PAGE_FILE_RANKS 1000
#define PAGE_FILE_LIST_BYTES ((size_t)1 << 20)
#define PAGE_FILE_OUTPUT_BYTES ((size_t)1 << 20)
#define PAGE_FILE_MAX ((size_t)16 << 20) /* of the whole file; most have less than 0.2 MB */

struct json_t;

/* What is in the file. The caller's. */
struct json_t *page_file_json(const struct job *job);
