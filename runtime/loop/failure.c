/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/failure.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "base/fd.h"

int failure_init(struct failure *failure, struct error *err)
{
    atomic_init(&failure->status, HVD_OK);
    pthread_mutex_init(&failure->lock, NULL);
    failure->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return failure->stop >= 0 ? 0 : error_errno(err, errno, "cannot make an eventfd");
}

void failure_destroy(struct failure *failure)
{
    fd_close(&failure->stop);
    pthread_mutex_destroy(&failure->lock);
}

bool failure_set(struct failure *failure, enum hvd_status status, const char *text)
{
    pthread_mutex_lock(&failure->lock);
    bool first = atomic_load(&failure->status) == HVD_OK;
    if (first) {
        snprintf(failure->text, sizeof failure->text, "%s", text);
        atomic_store(&failure->status, status); /* after the text: see failure_get() */
    }
    pthread_mutex_unlock(&failure->lock);
    if (!first)
        return false;
    const uint64_t one = 1;
    ssize_t done = fd_write(failure->stop, &one, sizeof one);
    (void)done;
    return true;
}

enum hvd_status failure_get(struct failure *failure, struct error *err)
{
    enum hvd_status status = (enum hvd_status)atomic_load(&failure->status);
    if (status != HVD_OK)
        error_set(err, "%s", failure->text);
    return status;
}
