/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of all schedulers share; each scheduler has a file of its own. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

enum allocation_kind {
    ALLOCATION_NONE,
    ALLOCATION_SLURM,
    ALLOCATION_PBS,
    ALLOCATION_LSF,
    ALLOCATION_SGE,
    ALLOCATION_KUBERNETES,
};

struct allocation {
    enum allocation_kind kind;
    char *job_id;           /* NULL: not said */
    char *here;             /* the scheduler's name of this machine (SLURMD_NODENAME); NULL: not
                               said, as on a login host */
    struct host_list hosts; /* in the scheduler's order */
    int np;                 /* tasks that were asked for; 0: not said */
    int restart_count; /* how often the scheduler has requeued the job; 0: never, or not said */
    int64_t end_s;     /* when its time is over, seconds since 1970; 0: not said */
};

/* What a parser gets. `file` and `bytes` are NULL where its variables name no file. */
struct allocation_source {
    char *const *env;
    const char *file;
    const char *bytes;
    size_t length;
};

/* The value of a variable; NULL when it is not set or empty. Borrowed. */
const char *allocation_value(char *const *env, const char *name);

/* A variable that holds a whole number from `min` to `max`. 1: `*out` has it; 0: it is not set;
 * -1 and STATUS_USAGE. */
int allocation_number(char *const *env, const char *name, int64_t min, int64_t max, int64_t *out,
                      struct error *err);

/* Calls each(context, line, length, err) for every line that is not blank, without the blanks
 * around it; comments (#) are skipped. What it fails with gets "FILE:LINE: 'TEXT': " in front. A
 * NUL byte is an error. */
int allocation_lines(const struct allocation_source *source,
                     int (*each)(void *context, const char *line, size_t length, struct error *err),
                     void *context, struct error *err);

/* Adds a host after it has checked the name. -1 and STATUS_USAGE: it is not a host name. */
int allocation_add(struct allocation *allocation, const char *name, size_t length, int slots,
                   struct error *err);
