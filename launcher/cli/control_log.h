/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun logs` and `hvdrun attach`: show the log of a job, and follow it. */
#pragma once

#include "base/error.h"
#include "cli/control_jobs.h"
#include "cli/control_words.h"

enum control_log_end {
    CONTROL_LOG_FAILED = -1,
    CONTROL_LOG_SHOWN, /* all that `logs` shows without -f */
    CONTROL_LOG_OVER,  /* the job has ended, and all of its log was shown */
    CONTROL_LOG_LEFT   /* the user has left: Ctrl-C, or the detach keys */
};

/* Shows the log of the job `id` as the words say. CONTROL_LOG_FAILED: it keeps no log, or the
 * output cannot be written. */
enum control_log_end control_log(const struct job_list *list, const char *id,
                                 const struct control_words *words, struct error *err);
