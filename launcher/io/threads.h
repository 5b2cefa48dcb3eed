/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads beside the loop: spawners, and one for work that takes any time.
 *
 * Spawners start children side by side. Most of a start is the kernel's vfork() and exec. On a
 * machine with many CPUs, several of them take hardly longer than one.
 *
 * They live until spawners_destroy(), because a child that is to die with its parent dies
 * with the thread that has started it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* One start. The caller keeps it until spawners_wait(). */
struct spawner_task {
    void (*run)(struct spawner_task *task);
    bool done; /* the threads' own, like the next one */
    STAILQ_ENTRY(spawner_task) place;
};

struct spawners;

/* NULL: the system gives no threads. */
struct spawners *spawners_create(int threads);
void spawners_destroy(struct spawners *spawners);

/* Runs it soon. */
void spawners_add(struct spawners *spawners, struct spawner_task *task);
void spawners_wait(struct spawners *spawners,
                   const struct spawner_task *task); /* it has run; one waits at a time */

/*
 * What a thread shares with the one that has started it, for work that may wait for a disk or a
 * server for any time. Neither waits for the other to end: the last one that leaves frees it all.
 */

struct thread_share { /* the first member of all that they share */
    pthread_mutex_t mutex;
    pthread_cond_t changed;                     /* pthread_cond_signal() when something did */
    void (*run)(struct thread_share *share);    /* in the thread */
    void (*free_all)(struct thread_share *all); /* nobody holds it any more */
    bool over;                                  /* it has run, or could not begin */
    int holders;
};

/* Runs `run` in a thread that blocks all signals, and that nobody joins. The caller holds the
 * share, too, also if that fails. 0 or an errno. */
int thread_share_start(struct thread_share *share, const char *name,
                       void (*run)(struct thread_share *share),
                       void (*free_all)(struct thread_share *all));

void thread_share_lock(struct thread_share *share);
void thread_share_unlock(struct thread_share *share);

/* With the mutex locked: until something may have changed. False: clock_mono_ms() has reached
 * `until_ms`. Setting the clock of the machine does not matter. */
bool thread_share_wait(struct thread_share *share, int64_t until_ms);
/* With the mutex locked: the one that has started the thread has left. */
bool thread_share_is_left(const struct thread_share *share);

/* Waits until it is over, at most until then. */
bool thread_share_is_over(struct thread_share *share, int64_t until_ms);
void thread_share_leave(struct thread_share *share); /* the caller does not hold it any more */
