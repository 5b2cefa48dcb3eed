/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hvd_sets.py and hvd_failure.py measure: hvd_cases CASE [ARGUMENT...]. STAMPS is a file for
 * lines "WHAT SECONDS PID RANK [SIZE]", with the clock CLOCK_MONOTONIC.
 *
 *   sets ROUNDS       two process sets of half of the ranks, one after the other and at the same
 *                     time: rank 0 prints "sets AFTER SAME" for each round, in microseconds
 *   pending STAMPS    the last rank never submits what the others wait for, until somebody kills it
 *   elastic STAMPS    steps of an elastic job, without end
 *   idle SECONDS      each rank prints "idle PARTS": millionths of a core
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "job.h"

enum { TENSORS = 8, LENGTH = 1 << 18, STEP_LENGTH = 5000 }; /* LENGTH: 1 MiB */

static void stamp(const char *path, const char *what)
{
    char line[128];
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int length = snprintf(line, sizeof line, "%s %.6f %d %d %d\n", what,
                          (double)clock_mono_ns() / 1e9, (int)getpid(), hvd_rank(), hvd_size());
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        worker_fail("cannot write to %s", path);
    close(fd);
}

/* Submits tensors, and waits. Returns the first status that is not HVD_OK. */
static int reduce(float *data, int64_t length, int32_t set)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle handles[TENSORS];
    int made = 0, status = HVD_OK;
    options.set = set;
    for (; made < TENSORS && status == HVD_OK; made += status == HVD_OK) {
        char name[16];
        snprintf(name, sizeof name, "x%d", made);
        float *at = data + made * length;
        struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, at, at);
        status = hvd_allreduce_async(&tensor, &options, &handles[made]);
    }
    for (int i = 0; i < made; i++) {
        int one = hvd_wait(handles[i], -1, NULL);
        status = status == HVD_OK ? one : status;
    }
    return status;
}

/* ---- sets -------------------------------------------------------------------------------------
 */

static void all_ranks(void)
{
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
}

static double microseconds(float *data, int32_t set, bool at_once)
{
    all_ranks();
    int64_t start = clock_mono_ns();
    for (int32_t turn = 1; turn <= 2; turn++) {
        if (turn == set)
            job_expect(reduce(data, LENGTH, set), HVD_OK, "", "a step of a set");
        if (!at_once || turn == 2)
            all_ranks();
    }
    return (double)(clock_mono_ns() - start) / 1000;
}

static void run_sets(const char *rounds)
{
    int size = hvd_size(), rank = hvd_rank();
    int32_t *ranks AUTO_FREE = mem_array((size_t)size, sizeof *ranks), set;
    float *data AUTO_FREE = mem_array((size_t)TENSORS * LENGTH, sizeof *data);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    job_expect(hvd_add_process_set(ranks, size / 2, &set), HVD_OK, "", "add");
    job_expect(hvd_add_process_set(ranks + size / 2, size / 2, &set), HVD_OK, "", "add");
    set = rank < size / 2 ? 1 : 2;
    for (long i = -2; i < strtol(rounds, NULL, 10); i++) {
        double after = microseconds(data, set, false), same = microseconds(data, set, true);
        if (i >= 0 && rank == 0)
            printf("sets %.1f %.1f\n", after, same);
    }
}

/* ---- A rank is killed ---------------------------------------------------------------------------
 */

static void run_pending(const char *stamps)
{
    float *data AUTO_FREE = mem_array((size_t)TENSORS * LENGTH, sizeof *data);
    signal(SIGTERM, SIG_IGN); /* from the launcher, when it sees the rank that has died */
    all_ranks();
    stamp(stamps, "ready");
    if (hvd_rank() == hvd_size() - 1)
        pause();
    job_expect(reduce(data, LENGTH, 0), HVD_ERR_PEER_LOST, "", "what the last rank never submits");
    stamp(stamps, "failed");
}

struct elastic {
    float *data;
    const char *stamps;
};

static int steps(struct hvd_state *state, void *context)
{
    const struct elastic *elastic = context;
    for (;;) {
        int status = reduce(elastic->data, STEP_LENGTH, 0);
        if (status == HVD_OK)
            stamp(elastic->stamps, "step");
        if (status == HVD_OK)
            status = hvd_state_commit(state);
        if (status != HVD_OK)
            return status;
    }
}

static void run_elastic(const char *stamps)
{
    float *data AUTO_FREE = mem_array((size_t)TENSORS * STEP_LENGTH, sizeof *data);
    struct elastic elastic = {data, stamps};
    struct hvd_state *state;
    job_expect(hvd_state_create(&state), HVD_OK, "", "state");
    job_expect(hvd_state_add(state, "data", data, TENSORS * STEP_LENGTH * sizeof *data), HVD_OK, "",
               "add");
    int status = hvd_elastic_run(state, steps, &elastic);
    hvd_state_destroy(state);
    if (status != HVD_OK)
        worker_fail("the elastic run ended with %d: %s", status, hvd_error_text());
}

/* ---- idle -------------------------------------------------------------------------------------
 */

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void run_idle(const char *seconds)
{
    float *data AUTO_FREE = mem_array((size_t)TENSORS * STEP_LENGTH, sizeof *data);
    for (int i = 0; i < 10; i++)
        job_expect(reduce(data, STEP_LENGTH, 0), HVD_OK, "", "a step");
    all_ranks();
    int64_t start = clock_mono_ns();
    double before = cpu_seconds();
    sleep((unsigned)strtoul(seconds, NULL, 10));
    double share = (cpu_seconds() - before) * 1e9 / (double)(clock_mono_ns() - start);
    printf("idle %.0f\n", share * 1e6);
    all_ranks();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *argument);
    } cases[] = {
        {"sets", run_sets}, {"pending", run_pending}, {"elastic", run_elastic}, {"idle", run_idle}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc != 3 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        job_begin();
        cases[i].run(argv[2]);
        hvd_shutdown();
        return 0;
    }
    worker_fail("usage: hvd_cases sets|pending|elastic|idle ARGUMENT");
}
