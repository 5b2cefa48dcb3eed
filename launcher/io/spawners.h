/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that start children side by side. Most of a start is the kernel's vfork() and exec. On a
 * machine with many CPUs, several of them take hardly longer than one.
 *
 * The threads live until spawners_destroy(), because a child that is to die with its parent dies
 * with the thread that has started it.
 */
#pragma once

#include <stdbool.h>

/* One start. The caller keeps it until spawners_wait(). */
struct spawner_task {
    void (*run)(struct spawner_task *task);
    bool done; /* the threads' own, like the next one */
    struct spawner_task *next;
};

struct spawners;

/* NULL: the system gives no threads. */
struct spawners *spawners_create(int threads);
void spawners_destroy(struct spawners *spawners);

/* Runs it soon. */
void spawners_add(struct spawners *spawners, struct spawner_task *task);
void spawners_wait(struct spawners *spawners,
                   const struct spawner_task *task); /* it has run; one waits at a time */
