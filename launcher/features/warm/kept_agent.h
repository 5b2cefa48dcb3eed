/* SPDX-License-Identifier: Apache-2.0 */
/* Mothers that wait for another job (holder_agent.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "features/warm/fields.h"
#include "features/warm/kind.h"

#define WARM_MOTHERS_MAX 4 /* kinds of ranks on one host at a time */

struct warm_kept {
    pid_t pid; /* our child */
    int socket;
    int64_t born_ms, used_ms; /* monotonic */
    char *modules;            /* of --warm, with commas; "": those that the script imports */
    struct warm_kind kind;
};

void warm_kept_destroy(struct warm_kept *kept); /* the process goes on */

struct warm_holder {        /* what a holder has from job to job */
    int64_t idle_ms;        /* the longest time without a job */
    int64_t bytes;          /* of memory, all of them together */
    struct warm_kept *list; /* the one that was used last is the last one */
    size_t count;
};

void warm_holder_add(struct warm_holder *holder, struct warm_kept *kept); /* takes what it has */
/* The entry leaves the list; the caller destroys it. */
struct warm_kept warm_holder_take(struct warm_holder *holder, size_t i);

/* Ends those that have ended, were not used for long, or are too many or too large. Returns in how
 * many milliseconds the next one is due; -1: there is none. */
int64_t warm_holder_bound(struct warm_holder *holder, int64_t now_ms);

void warm_holder_clear(struct warm_holder *holder); /* the processes end on their own */

/* For a process that goes on with the same children. */
void warm_holder_write(const struct warm_holder *holder, struct buf *out);
void warm_holder_read(struct field_reader *fields, struct warm_holder *out);
