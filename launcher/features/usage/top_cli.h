/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun top`: what a job uses, once or live. It blocks, as control_client.h does. */
#pragma once

#include "cli/control_jobs.h"
#include "cli/control_words.h"

/* With --once, the text or JSON goes to `out`. Else it shows a live table on the terminal until the
 * user leaves or the job ends. -1 and `err`. */
int control_top(const struct job_list *list, const struct control_words *words, struct buf *out,
                struct error *err);
