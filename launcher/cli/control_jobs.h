/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of this user on this machine, by the files in their folder (driver/control/folder.h).
 *
 * A command takes the id of a job, its name, the beginning of its id, or the beginning of the
 * number at its end. A running job comes before one that has ended. Of jobs with one name
 * that have ended, the last one is meant.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"

#define JOB_LIST_NAMES_MAX 900 /* bytes of the list of jobs in an error */

struct job_list {
    int folder;                /* -1: there is none, and so no job */
    char *path;                /* of the folder */
    struct strv running, over; /* ids, sorted; over: ended or lost */
};

struct job_lists {
    struct job_list *items;
    size_t count;
};

/* `slurm_job`: only jobs in this job of Slurm; NULL: all. */
void job_list_read(struct job_list *out); /* of this user */
/* Of this user, below the TMPDIR of another process (NULL: it has none). */
void job_list_read_in(const char *tmpdir, const char *slurm_job, struct job_list *out);
/* Of another folder, of another user. */
void job_list_read_at(const char *path, const char *slurm_job, struct job_list *out);
void job_list_destroy(struct job_list *list);
void job_lists_destroy(struct job_lists *lists);

/* The job that `word` names. NULL as `word`: the only running job. Borrowed. NULL: there is none,
 * or there are several, and the error says which. `over_too`: it may have ended. */
const char *job_list_find(const struct job_list *list, const char *word, bool over_too,
                          struct error *err);

/* How many jobs `word` names; NULL: all that run. *found is the first one, borrowed. Appends all to
 * `names`, with their commands: "a (./train), b (./train)". */
size_t job_list_search(const struct job_list *list, const char *word, bool over_too,
                       const char **found, struct buf *names);

/* The job that ended last. `name`: of those with this name; NULL: of all. Borrowed. NULL: there is
 * none. */
const char *job_list_last(const struct job_list *list, const char *name);

/* Calls `each` for the folders of jobs on this machine of all other users, below the same temporary
 * folder, until it returns true. Only root can read them. */
void job_list_others(bool (*each)(void *context, const char *path, const char *user),
                     void *context);

/* The name of a job (--job-name). The caller frees it. NULL: it has none. */
char *job_list_name(const struct job_list *list, const char *id);
