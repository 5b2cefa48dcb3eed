/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank is killed while all ranks do the same: killed PHASE NUMBER. NUMBER says which rank, and
 * when. All calls of the other ranks that were pending, and a later one, must report
 * HVD_ERR_PEER_LOST. Then these ranks end the library.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "job.h"
#include "values.h"

enum { ROUNDS = 1000000, SMALL = 5000, LARGE = 4 << 20, TENSORS = 12, LATEST_MS = 60 };

struct scene {
    struct job job;
    float *data, *more;
};

/* ---- Phases: one round of each. They return the first status that is not HVD_OK. --------------
 */

static struct hvd_tensor tensor_of(const struct scene *scene, const char *name,
                                   const int64_t *length)
{
    return job_tensor(name, HVD_FLOAT32, length, scene->data, scene->more);
}

/* Small tensors, which are fused. Their number changes, so that the plan of the step does, too. */
static int run_steps(const struct scene *scene, int round)
{
    const int64_t length = SMALL;
    hvd_handle handles[TENSORS];
    int made = 0, status = HVD_OK;
    while (made < 1 + round % TENSORS && status == HVD_OK) {
        char name[16];
        snprintf(name, sizeof name, "x%d", made);
        float *at = scene->data + made * SMALL;
        struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, at, at);
        status = hvd_allreduce_async(&tensor, NULL, &handles[made]);
        made += status == HVD_OK;
    }
    for (int i = 0; i < made; i++) {
        int one = hvd_wait(handles[i], -1, NULL);
        status = status == HVD_OK ? one : status;
    }
    return status;
}

static int run_large(const struct scene *scene, int round)
{
    const int64_t length = LARGE;
    struct hvd_tensor tensor = tensor_of(scene, round % 2 == 0 ? "large" : "huge", &length);
    return hvd_allreduce(&tensor, NULL);
}

static int run_adasum(const struct scene *scene, int round)
{
    const int64_t length = SMALL * (1 + round % TENSORS);
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = tensor_of(scene, "adasum", &length);
    options.op = HVD_ADASUM;
    return hvd_allreduce(&tensor, &options);
}

static int run_moves(const struct scene *scene, int round)
{
    const int64_t length = SMALL * scene->job.size;
    struct hvd_result result = HVD_RESULT_INIT;
    struct hvd_tensor tensor = tensor_of(scene, "moved", &length);
    int status;
    switch (round % 4) {
    case 0: status = hvd_allgather(&tensor, NULL, &result); break;
    case 1: status = hvd_alltoall(&tensor, NULL, NULL, &result); break;
    case 2: status = hvd_reducescatter(&tensor, NULL); break;
    default: status = hvd_broadcast(&tensor, round % scene->job.size, NULL); break;
    }
    hvd_result_free(&result);
    return status;
}

static int run_barrier(const struct scene *scene, int round)
{
    (void)scene, (void)round;
    return hvd_barrier(NULL);
}

/* Rank 0 is in none of the sets. */
static int run_sets(const struct scene *scene, int round)
{
    const int64_t length = SMALL;
    const int32_t ranks[2] = {1, 2 + round % (scene->job.size - 2)};
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = tensor_of(scene, "in a set", &length);
    int status = hvd_add_process_set(ranks, 2, &options.set);
    if (status == HVD_OK && hvd_process_set_rank(options.set) >= 0)
        status = hvd_allreduce(&tensor, &options);
    return status == HVD_OK ? hvd_remove_process_set(options.set) : status;
}

static int run_join(const struct scene *scene, int round)
{
    int last;
    for (int i = 0; i < (scene->job.rank + round) % 3; i++) {
        int status = run_steps(scene, 0);
        if (status != HVD_OK)
            return status;
    }
    return hvd_join(NULL, &last);
}

static const struct {
    const char *name;
    int (*run)(const struct scene *scene, int round);
} phases[] = {
    {"init", run_barrier},  {"steps", run_steps}, {"large", run_large},
    {"adasum", run_adasum}, {"moves", run_moves}, {"barrier", run_barrier},
    {"sets", run_sets},     {"join", run_join},   {"shutdown", run_steps},
};

/* ---- The end of a rank ------------------------------------------------------------------------
 */

static void *die_soon(void *argument)
{
    int64_t ms = (int64_t)(values_seed(7, *(const uint64_t *)argument) % LATEST_MS);
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
    raise(SIGKILL);
    return NULL;
}

static bool is_victim(uint64_t number)
{
    const char *rank = getenv("HOROVOD_RANK"), *size = getenv("HOROVOD_SIZE");
    return rank != NULL && size != NULL &&
           number % strtoull(size, NULL, 10) == strtoull(rank, NULL, 10);
}

static void run_phase(const struct scene *scene, int (*run)(const struct scene *scene, int round),
                      int rounds)
{
    hvd_handle handle;
    int status = HVD_OK;
    for (int i = 0; i < rounds && status == HVD_OK; i++)
        status = run(scene, i);
    if (status == HVD_OK)
        return;
    job_expect(status, HVD_ERR_PEER_LOST, "", "the round in which a rank died");
    job_expect(hvd_failure(), HVD_ERR_PEER_LOST, "", "hvd_failure");
    job_expect(hvd_barrier_async(NULL, &handle), HVD_ERR_PEER_LOST, "", "a later call");
}

int main(int argc, char **argv)
{
    size_t phase = 0;
    uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    pthread_t thread;
    while (phase < sizeof phases / sizeof phases[0] &&
           (argc < 3 || strcmp(argv[1], phases[phase].name) != 0))
        phase++;
    if (phase == sizeof phases / sizeof phases[0])
        worker_fail("usage: killed PHASE NUMBER");
    bool in_init = strcmp(phases[phase].name, "init") == 0;
    bool at_end = strcmp(phases[phase].name, "shutdown") == 0;
    signal(SIGTERM, SIG_IGN); /* from the launcher, when it sees a rank that has died */
    if (in_init && is_victim(number))
        pthread_create(&thread, NULL, die_soon, &number);
    int status = hvd_init(NULL);
    if (in_init && status == HVD_ERR_PEER_LOST) {
        printf("all right: a rank died in hvd_init\n");
        return 0;
    }
    job_expect(status, HVD_OK, "", "hvd_init");
    struct scene scene = {.job = {hvd_rank(), hvd_size()}};
    scene.data = mem_array(LARGE, sizeof *scene.data);
    scene.more = mem_array(LARGE, sizeof *scene.more);
    if (!in_init && is_victim(number))
        pthread_create(&thread, NULL, die_soon, &number);
    run_phase(&scene, phases[phase].run, at_end ? (int)(number % 40) : ROUNDS);
    job_end(&scene.job);
    if (is_victim(number))
        pause();
    free(scene.data);
    free(scene.more);
    return 0;
}
