/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place that waits for child processes. Our process is a subreaper: it inherits the
 * orphans of its workers and reaps them too. So one system call can tell that no process remains.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "io/loop.h"

struct reaper;

struct reaper_exit {
    pid_t pid;
    int wait_status; /* as waitpid(2) gives it */
    struct rusage usage;
    int64_t when_ns; /* monotonic, when it was reaped */
};

/* Needs SIGCHLD blocked and handed to reaper_collect() by the owner's signal callback; one that is
 * ignored becomes a usual one, for the children as well. `exited` is called for watched and for
 * inherited children alike. */
struct reaper *reaper_create(void (*exited)(void *context, const struct reaper_exit *exit),
                             void *context);
void reaper_destroy(struct reaper *reaper);
/* Reaps all that have ended. wait(2) does not tell their order, so all of one call get the same
 * time. */
void reaper_collect(struct reaper *reaper);
/* Reaps this child if it has ended. For children whose order of ending matters: their pidfds become
 * readable in that order. */
void reaper_collect_one(struct reaper *reaper, pid_t pid);
bool reaper_has_children(void); /* false: no process remains below us */
bool reaper_has(pid_t pid);     /* a child of ours that was not reaped has this number */
