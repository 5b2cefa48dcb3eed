/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps COUNT [END]: light steps. Each sleeps 0.3 s, and then all ranks add one number. After that,
 * END says what the last rank does, and the others wait for it: it "leaves", and sleeps for ever;
 * it "submits" another tensor, "los" for "loss"; or it "skips" the gradients of the last step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

enum { GRADIENTS = 3 };

static void add(const char *name)
{
    const int64_t length = 1;
    float number = 1, sum = 0;
    struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, &number, &sum);
    job_expect(hvd_allreduce(&tensor, NULL), HVD_OK, "", name);
}

/* Several at once, as the gradients of a step. */
static void add_gradients(void)
{
    const int64_t length = 1;
    static float numbers[GRADIENTS];
    hvd_handle handles[GRADIENTS];
    for (int i = 0; i < GRADIENTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "grad.%d", i);
        struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, &numbers[i], &numbers[i]);
        job_expect(hvd_allreduce_async(&tensor, NULL, &handles[i]), HVD_OK, "", name);
    }
    for (int i = 0; i < GRADIENTS; i++)
        job_expect(hvd_wait(handles[i], -1, NULL), HVD_OK, "", "wait");
}

int main(int argc, char **argv)
{
    struct job job = job_begin();
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    const char *end = argc > 2 ? argv[2] : "";
    bool last = job.rank == job.size - 1;
    dprintf(1, "ready\n");
    for (long i = 0; i < count; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        add("loss");
    }
    if (strcmp(end, "leaves") == 0 && last)
        pause();
    if (strcmp(end, "leaves") == 0 || strcmp(end, "submits") == 0)
        add(last ? "los" : "loss");
    if (strcmp(end, "skips") == 0 && last)
        add("epoch_loss");
    if (strcmp(end, "skips") == 0)
        add_gradients();
    job_end(&job);
    return 0;
}
