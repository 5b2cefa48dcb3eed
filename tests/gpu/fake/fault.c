/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED_MAX = 3 };

/* One counter for each variable: each names one function. */
static struct {
    pthread_mutex_t lock;
    const char *variables[COUNTED_MAX];
    long calls[COUNTED_MAX];
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .variables = {"FAKE_GPU_FAIL", "FAKE_GPU_STALL", "FAKE_GPU_ABSENT"}};

static long count_call(const char *variable)
{
    long number = 0;
    pthread_mutex_lock(&faults.lock);
    for (int i = 0; i < COUNTED_MAX; i++)
        if (strcmp(faults.variables[i], variable) == 0)
            number = ++faults.calls[i];
    pthread_mutex_unlock(&faults.lock);
    return number;
}

bool fake_fault(const char *variable, const char *function)
{
    const char *wanted = getenv(variable), *rank = getenv("HOROVOD_RANK");
    char prefix[128];
    if (wanted == NULL)
        return false;
    int length = snprintf(prefix, sizeof prefix, "%s:%s:", rank != NULL ? rank : "0", function);
    if (strncmp(wanted, prefix, (size_t)length) != 0)
        return false;
    return count_call(variable) == strtol(wanted + length, NULL, 10);
}
