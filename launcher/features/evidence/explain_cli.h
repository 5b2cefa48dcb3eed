/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun explain`: the story of a job that has ended, or of a folder of evidence. */
#pragma once

#include "base/buf.h"
#include "cli/control_jobs.h"
#include "cli/control_words.h"

/* The story is in `out`. -1: there is no such job, it still runs, or a file is damaged. */
int control_explain(const struct job_list *list, const struct control_words *words, struct buf *out,
                    struct error *err);
