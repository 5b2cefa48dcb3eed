/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun ps`: the jobs of this user on this machine. */
#pragma once

#include "base/buf.h"
#include "cli/control_jobs.h"

/* Appends the table, or an array of JSON objects: what each running job says of itself, and with
 * `all` what the records of the others say, the latest last. Every job has 2 s to answer; all of
 * them are asked at the same time. */
void control_ps(const struct job_list *list, bool all, bool json, struct buf *out);
