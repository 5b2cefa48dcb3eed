/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job of libhvd has failed, if it has. The first reason counts. Any thread may call these
 * functions. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "include/hvd.h"

struct failure {
    pthread_mutex_t lock; /* of those who set it */
    int stop;             /* an eventfd: readable after a failure */
    atomic_int status;    /* enum hvd_status: once it is not HVD_OK, nothing changes any more */
    char text[ERROR_TEXT_MAX];
};

/* -1: the system does not give a descriptor. Then there is no `stop`, and all else works. */
int failure_init(struct failure *failure, struct error *err);
void failure_destroy(struct failure *failure);

/* False: there was a failure before, which stays. */
bool failure_set(struct failure *failure, enum hvd_status status, const char *text);
/* HVD_OK, or the reason. `err` may be NULL. */
enum hvd_status failure_get(struct failure *failure, struct error *err);
