/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the worker of a process. An open hash over an array of workers: a node may have hundreds,
 * and each exit asks for one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/worker.h"

struct worker_pids {
    struct worker *workers; /* borrowed */
    int *table;             /* index + 1, 0 free */
    size_t size;
};

/* For up to `count` workers. */
void worker_pids_init(struct worker_pids *pids, struct worker *workers, size_t count);
void worker_pids_clear(struct worker_pids *pids);

void worker_pids_add(struct worker_pids *pids, int index); /* its process has started; once */

/* NULL: no worker whose process runs has this pid. */
struct worker *worker_pids_find(const struct worker_pids *pids, pid_t pid);
