/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of this user on this machine, by the files in their folder (driver/control/folder.h).
 *
 * A command names a job by its id, by the beginning of its id, or by the beginning of the number at
 * its end. A running job comes before one that has ended.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"

struct job_list {
    int folder;                /* -1: there is none, and so no job */
    struct strv running, over; /* ids, sorted; over: ended or lost */
};

void job_list_read(struct job_list *out);
void job_list_destroy(struct job_list *list);

/* The job that `word` names. NULL as `word`: the only running job. Borrowed. NULL: there is none,
 * or there are several, and the error says which. `over_too`: it may have ended. */
const char *job_list_find(const struct job_list *list, const char *word, bool over_too,
                          struct error *err);
