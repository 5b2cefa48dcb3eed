/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory libhvd takes: memory STEPS.
 *
 * First, a large fused group: the process may grow by two fusion buffers, and no more. If its
 * tensors are side by side, it needs none. Then, after a warm-up, so many steps in which it must
 * not grow at all. They differ in the number of tensors, and one name of each is new. Now and then,
 * there is each other operation and a new process set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "job.h"

enum {
    GROUP = 64,             /* tensors that are fused */
    GROUP_LENGTH = 1 << 17, /* of each: 512 KiB */
    GAP = 16,               /* elements between tensors that are not side by side */
    BUFFERS = 2,
    ENGINE_KIB = 8 << 10, /* what an engine may take for itself */
    TENSORS = 12,
    LENGTH = 500,
    MOVES_EVERY = 10,
    SETS_EVERY = 500,
    WARM_UP = 1500, /* more than the cache has room for */
    GROWTH_KIB = 1 << 10
};

/* Of this process, without files and shared memory. */
static long resident_kib(void)
{
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            found = strtol(line + 8, NULL, 10);
    if (file != NULL)
        fclose(file);
    if (found == 0)
        worker_fail("/proc/self/status has no RssAnon");
    return found;
}

static void reduce_all(float *data, int count, int64_t length, int64_t gap, const char *last)
{
    hvd_handle handles[GROUP];
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%lld.%d", (long long)length, i);
        float *at = data + i * (length + gap);
        struct hvd_tensor tensor =
            job_tensor(i == count - 1 && last != NULL ? last : name, HVD_FLOAT32, &length, at, at);
        job_expect(hvd_allreduce_async(&tensor, NULL, &handles[i]), HVD_OK, "", "allreduce");
    }
    for (int i = 0; i < count; i++)
        job_expect(hvd_wait(handles[i], -1, NULL), HVD_OK, "", "wait");
}

static void move(const struct job *job, const float *data, float *more)
{
    const int64_t length = LENGTH * (int64_t)job->size;
    struct hvd_tensor tensor = job_tensor("moved", HVD_FLOAT32, &length, data, more);
    struct hvd_result result = HVD_RESULT_INIT;
    job_expect(hvd_allgather(&tensor, NULL, &result), HVD_OK, "", "allgather");
    hvd_result_free(&result);
    job_expect(hvd_alltoall(&tensor, NULL, NULL, &result), HVD_OK, "", "alltoall");
    hvd_result_free(&result);
    job_expect(hvd_reducescatter(&tensor, NULL), HVD_OK, "", "reducescatter");
    job_expect(hvd_broadcast(&tensor, 0, NULL), HVD_OK, "", "broadcast");
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
}

static void use_a_set(const struct job *job, float *data)
{
    const int32_t ranks[] = {0};
    const int64_t length = LENGTH;
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = job_tensor("in a set", HVD_FLOAT32, &length, data, data);
    if (job->size == 1)
        return;
    job_expect(hvd_add_process_set(ranks, 1, &options.set), HVD_OK, "", "add");
    if (job->rank == 0)
        job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "allreduce in a set");
    job_expect(hvd_remove_process_set(options.set), HVD_OK, "", "remove");
}

static void run_steps(const struct job *job, float *data, float *more, long first, long count)
{
    for (long step = first; step < first + count; step++) {
        char name[32];
        snprintf(name, sizeof name, "of step %ld", step);
        reduce_all(data, TENSORS - (int)(step / 100 % 2), LENGTH, step % 2 * GAP, name);
        if (step % MOVES_EVERY == 0)
            move(job, data, more);
        if (step % SETS_EVERY == 0)
            use_a_set(job, data);
    }
}

static void try_group(float *data, int64_t gap, size_t room)
{
    long before = resident_kib(), limit = (long)(room >> 10) + ENGINE_KIB;
    for (int i = 0; i < 5; i++)
        reduce_all(data, GROUP, GROUP_LENGTH, gap, NULL);
    long growth = resident_kib() - before;
    if (growth > limit)
        worker_fail("a fused group may take %ld KiB, and takes %ld KiB", limit, growth);
}

static void try_buffers(void)
{
    size_t length = GROUP_LENGTH + GAP, bytes = GROUP * length * sizeof(float);
    float *data AUTO_FREE = mem_alloc(bytes);
    memset(data, 0, bytes);
    reduce_all(data, 1, GROUP_LENGTH, 0, NULL);
    try_group(data, 0, 0);
    try_group(data, GAP, BUFFERS * bytes);
}

int main(int argc, char **argv)
{
    long steps = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (steps <= 0)
        worker_fail("usage: memory STEPS");
    struct job job = job_begin();
    size_t elements = (size_t)TENSORS * (LENGTH + GAP);
    elements = elements > LENGTH * (size_t)job.size ? elements : LENGTH * (size_t)job.size;
    float *data AUTO_FREE = mem_array(elements, sizeof *data);
    float *more AUTO_FREE = mem_array(elements, sizeof *more);
    memset(more, 0, elements * sizeof *more);
    try_buffers();
    run_steps(&job, data, more, 0, WARM_UP);
    long before = resident_kib();
    run_steps(&job, data, more, WARM_UP, steps);
    long growth = resident_kib() - before;
    printf("rank %d: %ld KiB after the warm-up, %+ld KiB after %ld steps more\n", job.rank, before,
           growth, steps);
    if (growth > GROWTH_KIB)
        worker_fail("the process grew by %ld KiB in %ld steps", growth, steps);
    job_end(&job);
    return 0;
}
