/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that waits for its process: a copy of what child_spawn() needs, with its descriptors. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/strv.h"
#include "io/child.h"

struct warm_rank {
    TAILQ_ENTRY(warm_rank) at;
    struct child_spec spec; /* points into the rest */
    struct strv argv, envp;
    struct strv words; /* what its interpreter would get as arguments */
    size_t skip;       /* of those, before those of the script */
    char *name;        /* of its process, where it is not that of the interpreter; or NULL */
    int fds[4];        /* stdin, stdout, stderr, and one more or -1 */
    bool cancelled;    /* `done` is not called */
    void (*done)(void *context, pid_t pid, const struct error *err);
    void *context;
};
TAILQ_HEAD(warm_ranks, warm_rank);

/* NULL: there are not enough descriptors. */
struct warm_rank *warm_rank_create(const struct child_spec *spec, char *const *words, size_t skip);
void warm_rank_destroy(struct warm_rank *rank);

/* Appends what mother.py reads about the rank (Rank.__init__). */
void warm_rank_write(const struct warm_rank *rank, struct buf *out);

/* Starts it in the usual way, tells `done`, and destroys the rank. */
void warm_rank_start(struct warm_rank *rank);
