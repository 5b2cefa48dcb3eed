/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libhvd does when something goes wrong: faults CASE [NUMBER].
 *
 *   leaves  rank 1 shuts down while the others wait
 *   late    all ranks end at once, and the library's thread of the last rank is starved
 *   slow    a process set whose members are slow does not keep another set waiting
 *   idle    a process that has nothing to do does not wake up
 *   stall   rank 1 comes late, and rank 0 warns
 *   gives_up  rank 1 does not come, and the time limit ends the job
 *   differs rank 1 submits another name than the others, without an end
 *   exits   rank 1 ends without hvd_shutdown(), and a child keeps its connections open
 *   steps   nothing goes wrong in NUMBER steps, in two process sets
 *   lanes   the same, with large tensors among the small ones, while sets come and go
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "job.h"

enum { TENSORS = 12 };
static const int64_t length = 5000;

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* A step of several tensors. Returns the first status that is not HVD_OK. */
static int step(float *data, int32_t set, int count)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle handles[TENSORS];
    int made = 0, status = HVD_OK;
    options.set = set;
    for (; made < count && status == HVD_OK; made++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", made);
        float *at = data + made * length;
        struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, at, at);
        status = hvd_allreduce_async(&tensor, &options, &handles[made]);
        if (status != HVD_OK)
            break;
    }
    for (int i = 0; i < made; i++) {
        int one = hvd_wait(handles[i], -1, NULL);
        status = status == HVD_OK ? one : status;
    }
    return status;
}

static void run_leaves(const struct job *job, uint64_t number)
{
    hvd_handle handle;
    (void)number;
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    if (job->rank == 1)
        return;
    job_expect(hvd_barrier(NULL), HVD_ERR_SHUT_DOWN, "rank 1 has shut", "a barrier in vain");
    job_expect(hvd_barrier_async(NULL, &handle), HVD_ERR_SHUT_DOWN, "rank 1", "a later call");
    if (!hvd_is_initialized())
        worker_fail("the library is not initialized any more");
}

static void *burn(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        continue;
    return NULL;
}

/* The thread of the set 0 runs only where nothing else does, and there something else runs. */
static void starve(pthread_t *burner, atomic_bool *stop)
{
    cpu_set_t one;
    char path[320], name[32];
    DIR *folder = opendir("/proc/self/task");
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    pthread_create(burner, NULL, burn, stop);
    pthread_setaffinity_np(*burner, sizeof one, &one);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fgets(name, sizeof name, file) != NULL &&
            strcmp(name, "hvd-set-0\n") == 0) {
            pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
            sched_setaffinity(thread, sizeof one, &one);
            sched_setscheduler(thread, SCHED_IDLE, &(struct sched_param){0});
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(folder);
}

static void run_late(const struct job *job, uint64_t number)
{
    (void)number;
    for (int i = 0; i < 15; i++) {
        pthread_t burner;
        atomic_bool stop = false;
        bool last = job->rank == job->size - 1;
        if (last)
            starve(&burner, &stop);
        job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
        job_expect(hvd_shutdown(), HVD_OK, "", "shutdown");
        atomic_store(&stop, true);
        if (last)
            pthread_join(burner, NULL);
        job_expect(hvd_init(NULL), HVD_OK, "", "init");
    }
}

/* Rank 0 is in both sets. The slow one makes no progress until the fast one has made all its steps,
 * because its other members wait for a message about that. */
static void run_slow(const struct job *job, uint64_t number)
{
    float *data AUTO_FREE = mem_array(TENSORS, (size_t)length * sizeof *data);
    const int32_t slow_ranks[] = {0, 1}, fast_ranks[] = {0, 2, 3};
    int32_t slow, fast;
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle handle;
    (void)number;
    job_expect(hvd_add_process_set(slow_ranks, 2, &slow), HVD_OK, "", "add");
    job_expect(hvd_add_process_set(fast_ranks, 3, &fast), HVD_OK, "", "add");
    options.set = slow;
    if (job->rank == 0)
        job_expect(hvd_barrier_async(&options, &handle), HVD_OK, "", "barrier");
    for (int i = 0; i < 200 && job->rank != 1; i++)
        job_expect(step(data, fast, TENSORS), HVD_OK, "", "a step of the fast set");
    if (job->rank == 0 && hvd_poll(handle) != HVD_IN_PROGRESS)
        worker_fail("the barrier of the slow set is complete");
    job_expect(hvd_barrier(NULL), HVD_OK, "", "all ranks");
    if (job->rank == 1)
        job_expect(hvd_barrier(&options), HVD_OK, "", "barrier of the slow set");
    if (job->rank == 0)
        job_expect(hvd_wait(handle, -1, NULL), HVD_OK, "", "wait");
}

/* How often the threads of libhvd have waited. Gloo has a thread of its own, with a period. */
static long switches(void)
{
    long sum = 0;
    char path[320], line[256];
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "re");
        bool counts = false;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            long value;
            char *end;
            if (strncmp(line, "Name:", 5) == 0)
                counts = strstr(line, "hvd-") != NULL;
            if (!counts || strncmp(line, "voluntary_ctxt_switches:", 24) != 0)
                continue;
            value = strtol(line + 24, &end, 10);
            sum += value;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(folder);
    return sum;
}

static void run_idle(const struct job *job, uint64_t number)
{
    float *data AUTO_FREE = mem_array(TENSORS, (size_t)length * sizeof *data);
    (void)number;
    for (int i = 0; i < 10; i++)
        job_expect(step(data, 0, TENSORS), HVD_OK, "", "a step");
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    sleep_ms(300); /* timers that are left over */
    long before = switches();
    sleep_ms(2000);
    long woken = switches() - before;
    if (before == 0 || woken > 4)
        worker_fail("%ld wake-ups before, and %ld while nothing happened", before, woken);
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    (void)job;
}

static void run_stall(const struct job *job, uint64_t number)
{
    (void)number;
    if (job->rank == 1)
        sleep_ms(2500);
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
}

static void run_gives_up(const struct job *job, uint64_t number)
{
    (void)number;
    if (job->rank != 1)
        job_expect(hvd_barrier(NULL), HVD_ERR_TIMEOUT, "barrier", "a barrier in vain");
    else
        sleep_ms(3000);
}

static void run_differs(const struct job *job, uint64_t number)
{
    float *data AUTO_FREE = mem_array((size_t)length, sizeof *data);
    struct hvd_tensor tensor =
        job_tensor(job->rank == 1 ? "los" : "loss", HVD_FLOAT32, &length, data, data);
    (void)number;
    signal(SIGTERM, SIG_DFL);
    step(data, 0, 1);
    if (job->rank == 0 && getenv("STOP_ROOT") != NULL)
        kill(getpid(), SIGSTOP);
    hvd_allreduce(&tensor, NULL);
}

/* Only the launcher can say that the rank has ended. */
static void run_exits(const struct job *job, uint64_t number)
{
    (void)number;
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    if (job->rank == 1) {
        if (fork() == 0) {
            for (int fd = 0; fd <= 2; fd++)
                close(fd);
            sleep_ms(60000); /* the launcher ends it with the job */
            _exit(0);
        }
        printf("all right: rank 1 leaves\n");
        fflush(stdout);
        _exit(0);
    }
    job_expect(hvd_barrier(NULL), HVD_ERR_PEER_LOST, "rank 1 has ended", "a barrier in vain");
}

static void run_steps(const struct job *job, uint64_t number)
{
    float *data AUTO_FREE = mem_array(TENSORS, (size_t)length * sizeof *data);
    const int32_t alone[] = {0};
    int32_t set;
    job_expect(hvd_add_process_set(alone, 1, &set), job->size == 1 ? HVD_ERR_SET_EXISTS : HVD_OK,
               "", "add");
    for (uint64_t i = 0; i < number; i++) {
        for (int k = 0; k < TENSORS * length; k++)
            data[k] = 1;
        job_expect(step(data, 0, TENSORS), HVD_OK, "", "a step");
        if (data[TENSORS * length - 1] != 1) /* the average */
            worker_fail("step %d: the average is %g", (int)i, (double)data[TENSORS * length - 1]);
        if (job->rank == 0)
            job_expect(step(data, set, TENSORS), HVD_OK, "", "a step of another set");
    }
}

/* Of many sizes: some run alone, some are fused, and an engine may run several at the same time. */
static int64_t length_of(int tensor)
{
    return tensor % 3 == 0 ? 100 + tensor : (int64_t)(tensor % 5 + 1) << 17;
}

static void check_value(const char *what, const float *data, int64_t count, double expected)
{
    for (int64_t i = 0; i < count; i++)
        if (data[i] < expected || data[i] > expected)
            worker_fail("%s: element %lld is %g, and not %g", what, (long long)i, (double)data[i],
                        expected);
}

static void lanes_step(const struct job *job, float **data, float *all, int round)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle handles[TENSORS];
    options.op = HVD_SUM;
    for (int k = 0; k < TENSORS; k++) {
        int tensor = (k + job->rank + round) % TENSORS; /* each rank has an order of its own */
        const int64_t count = length_of(tensor);
        char name[16];
        snprintf(name, sizeof name, "x%d", tensor);
        for (int64_t i = 0; i < count; i++)
            data[tensor][i] = (float)(tensor + job->rank);
        struct hvd_tensor one = job_tensor(name, HVD_FLOAT32, &count, data[tensor], data[tensor]);
        int status = tensor == TENSORS - 1 ? hvd_broadcast_async(&one, 1, NULL, &handles[tensor])
                                           : hvd_allreduce_async(&one, &options, &handles[tensor]);
        job_expect(status, HVD_OK, "", "submit");
    }
    const int64_t rows = (int64_t)job->size << 16;
    struct hvd_tensor scattered = job_tensor("scattered", HVD_FLOAT32, &rows, all, all);
    for (int64_t i = 0; i < rows; i++)
        all[i] = 1;
    job_expect(hvd_reducescatter(&scattered, &options), HVD_OK, "", "reducescatter");
    check_value("reducescatter", all, rows / job->size, job->size);
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        double sum = job->size * (tensor + (job->size - 1) / 2.0);
        job_expect(hvd_wait(handles[tensor], -1, NULL), HVD_OK, "", "wait");
        check_value("a tensor", data[tensor], length_of(tensor),
                    tensor == TENSORS - 1 ? tensor + 1 : sum);
    }
}

static void run_lanes(const struct job *job, uint64_t number)
{
    float *data[TENSORS], *all = mem_array((size_t)job->size << 16, sizeof *all);
    const int32_t pair[] = {0, job->size - 1};
    struct hvd_options options = HVD_OPTIONS_INIT;
    for (int i = 0; i < TENSORS; i++)
        data[i] = mem_array((size_t)length_of(i), sizeof **data);
    for (int round = 0; round < (int)number; round++) {
        hvd_handle large;
        const int64_t count = (int64_t)5 << 17;
        float *more = mem_array((size_t)count, sizeof *more);
        struct hvd_tensor tensor = job_tensor("large", HVD_FLOAT32, &count, more, more);
        lanes_step(job, data, all, round);
        /* A set comes while the operation runs, and one ends while its operation runs. */
        job_expect(hvd_allreduce_async(&tensor, NULL, &large), HVD_OK, "", "a large one");
        job_expect(hvd_add_process_set(pair, 2, &options.set), HVD_OK, "", "add");
        job_expect(hvd_wait(large, -1, NULL), HVD_OK, "", "wait");
        bool is_member = hvd_process_set_rank(options.set) >= 0;
        if (is_member)
            job_expect(hvd_allreduce_async(&tensor, &options, &large), HVD_OK, "", "in the set");
        job_expect(hvd_remove_process_set(options.set), HVD_OK, "", "remove");
        int status = is_member ? hvd_wait(large, -1, NULL) : HVD_OK;
        if (status != HVD_OK)
            job_expect(status, HVD_ERR_UNKNOWN_SET, "", "an operation of a set that is removed");
        free(more);
    }
    for (int i = 0; i < TENSORS; i++)
        free(data[i]);
    free(all);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const struct job *job, uint64_t number);
    } cases[] = {
        {"leaves", run_leaves},   {"late", run_late},   {"slow", run_slow},
        {"idle", run_idle},       {"stall", run_stall}, {"gives_up", run_gives_up},
        {"differs", run_differs}, {"exits", run_exits}, {"steps", run_steps},
        {"lanes", run_lanes},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        signal(SIGTERM, SIG_IGN); /* from the launcher, when it sees a rank that has died */
        struct job job = job_begin();
        cases[i].run(&job, argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
        job_end(&job);
        return 0;
    }
    worker_fail("usage: faults CASE [NUMBER]");
}
