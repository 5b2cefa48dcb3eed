/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine does when something goes wrong: faults CASE. The program waits for events and
 * never for a time, so a case that does not work hangs, and the test's limit ends it.
 *
 *   sets    two process sets at the same time: one waits for the other on each rank
 *   abort, abort_message, abort_create
 *           a call that cannot end is woken from another thread
 *   killed  rank 1 is killed in the middle of an allreduce
 *   silent  rank 1 does not take part, so that the others wait until the time-out
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "worker.h"

enum { ELEMENTS = 1 << 20, ROUNDS = 50 };

struct other_set {
    const struct worker *worker;
    struct engine_comm *comm;
};

static void *wait_in_other_set(void *argument)
{
    struct other_set *other = argument;
    struct error err = ERROR_INIT;
    worker_check(worker_barrier(other->worker, other->comm, &err), &err, "barrier of a slow set");
    return NULL;
}

/* Rank 0 waits in the slow set until the others come, and they come after the rounds of the fast
 * set, in which rank 0 takes part. */
static void run_sets(const struct worker *w)
{
    struct error err = ERROR_INIT;
    struct engine_comm *fast = worker_comm(w, 1);
    struct other_set slow = {w, worker_comm(w, 2)};
    pthread_t thread;
    if (w->place.rank == 0)
        pthread_create(&thread, NULL, wait_in_other_set, &slow);
    for (int i = 0; i < ROUNDS; i++) {
        int32_t value = 1;
        worker_check(w->engine->allreduce(fast, &value, 1, HVD_INT32, HVD_SUM, &err), &err,
                     "allreduce of a fast set");
        if (value != w->place.size)
            worker_fail("the sum is %d", value);
    }
    if (w->place.rank != 0)
        wait_in_other_set(&slow);
    else
        pthread_join(thread, NULL);
    w->engine->comm_destroy(fast);
    w->engine->comm_destroy(slow.comm);
}

static void *abort_soon(void *argument)
{
    const struct worker *w = argument;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    w->engine->abort(w->world);
    return NULL;
}

static void expect_lost(enum hvd_status status, const struct error *err, const char *what)
{
    if (status != HVD_ERR_PEER_LOST)
        worker_fail("%s: status %d: %s", what, status, err->text);
}

/* Rank 0 never comes, and ends when the others have closed. */
static void run_abort_of(const struct worker *w, bool collective)
{
    struct error err = ERROR_INIT;
    struct engine_comm *comm = worker_comm(w, 0), *never = NULL;
    float *data AUTO_FREE = mem_array(ELEMENTS, sizeof *data);
    pthread_t thread;
    if (w->place.rank == 0) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    } else {
        pthread_create(&thread, NULL, abort_soon, (void *)w);
        expect_lost(collective
                        ? w->engine->allreduce(comm, data, ELEMENTS, HVD_FLOAT32, HVD_SUM, &err)
                        : worker_barrier(w, comm, &err),
                    &err, "a call that was woken");
        pthread_join(thread, NULL);
        expect_lost(worker_barrier(w, comm, &err), &err, "a call after abort");
        int rank = w->place.rank;
        expect_lost(w->engine->comm_create(w->world, 5, &rank, 1, &never, &err), &err,
                    "comm_create after abort");
    }
    w->engine->comm_destroy(comm);
}

static void run_abort(const struct worker *w)
{
    run_abort_of(w, true);
}

static void run_abort_message(const struct worker *w)
{
    run_abort_of(w, false);
}

static void run_abort_create(const struct worker *w)
{
    struct error err = ERROR_INIT;
    struct engine_comm *never = NULL;
    const int ranks[2] = {0, 1};
    pthread_t thread;
    if (w->place.rank != 1) /* the others are not needed */
        return;
    pthread_create(&thread, NULL, abort_soon, (void *)w);
    expect_lost(w->engine->comm_create(w->world, 6, ranks, 2, &never, &err), &err, "comm_create");
    pthread_join(thread, NULL);
}

static void *kill_soon(void *argument)
{
    (void)argument;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    raise(SIGKILL);
    return NULL;
}

static void run_killed(const struct worker *w)
{
    struct error err = ERROR_INIT;
    signal(SIGTERM, SIG_IGN); /* from the launcher, which sees the dead rank, too */
    struct engine_comm *comm = worker_comm(w, 0);
    float *data AUTO_FREE = mem_array(ELEMENTS, sizeof *data);
    pthread_t thread;
    if (w->place.rank == 1)
        pthread_create(&thread, NULL, kill_soon, NULL);
    enum hvd_status status = HVD_OK;
    while (status == HVD_OK)
        status = w->engine->allreduce(comm, data, ELEMENTS, HVD_FLOAT32, HVD_SUM, &err);
    expect_lost(status, &err, "the call during which a rank died");
    expect_lost(worker_barrier(w, comm, &err), &err, "a later call");
    w->engine->comm_destroy(comm);
}

static void run_silent(const struct worker *w)
{
    struct error err = ERROR_INIT;
    struct engine_comm *comm = worker_comm(w, 0);
    if (w->place.rank != 1)
        expect_lost(worker_barrier(w, comm, &err), &err, "a wait for a silent rank");
    else
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    w->engine->comm_destroy(comm);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const struct worker *w);
    } cases[] = {
        {"sets", run_sets},
        {"abort", run_abort},
        {"abort_message", run_abort_message},
        {"abort_create", run_abort_create},
        {"killed", run_killed},
        {"silent", run_silent},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc != 2 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        struct worker w;
        worker_open(&w);
        cases[i].run(&w);
        worker_close(&w);
        printf("rank %d of %d: all right\n", w.place.rank, w.place.size);
        return 0;
    }
    worker_fail("usage: faults CASE");
}
