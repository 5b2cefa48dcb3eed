/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun ps`: the jobs of this user on this machine. */
#pragma once

#include "base/buf.h"
#include "cli/control_jobs.h"
#include "cli/control_words.h"

/* Appends the table, or an array of JSON objects: what each running job says of itself, and with
 * `all` what the records of the others say, the latest last. Every job has 2 s to answer; all of
 * them are asked at the same time. With `quiet`, appends only ids and asks no job.
 * A long command is cut so that a row has `width` columns (0: it is not cut). `more`: further
 * folders of this user. */
void control_ps(const struct job_list *list, const struct job_lists *more,
                const struct control_words *words, size_t width, struct buf *out);
