/* SPDX-License-Identifier: Apache-2.0 */
/* What a process set needs of the job. The set's thread calls these functions without a lock. */
#pragma once

#include "core/action.h"
#include "loop/handles.h"

struct set_owner {
    void *context;
    struct handles *handles;
    struct gpus *gpus;
    /* The engine cannot be used any more: all sets fail. */
    void (*lost)(void *context, enum hvd_status status, const char *text);
    /* HVD_OK, or why all sets fail. `err` may be NULL. */
    enum hvd_status (*failure)(void *context, struct error *err);
    /* Adds or removes a process set. Not HVD_OK: the engine cannot be used any more. */
    enum hvd_status (*change)(void *context, const struct request *request, struct outcome *outcome,
                              struct error *err);
    void (*stalled)(void *context, int32_t set, const char *text, const struct stall *stall);
    void (*goes_on)(void *context, int32_t set); /* nothing is stalled any more */
    /* The set has another threshold and another cycle time. */
    void (*tuned)(void *context, const struct tuning *tuning);
    /* set_gone() should be called when this descriptor comes to its end. */
    void (*watch)(void *context, int fd, int32_t set, int rank);
};
