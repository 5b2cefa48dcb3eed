/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of this user on this machine, by the files in their folder (driver/control/folder.h).
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"

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

/* Calls `each` for the folders of jobs on this machine of all other users, below the same temporary
 * folder, until it returns true. Only root can read them. */
void job_list_others(bool (*each)(void *context, const char *path, const char *user),
                     void *context);
