/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the elastic part needs of the library: a table of functions, so that tests can provide
 * others. All are collective, block, and return an hvd_status; `err` gets the text of an error.
 */
#pragma once

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/hvd.h"

struct elastic_world {
    /* Connects to the ranks of the present epoch, after close() to those of the next one.
     * HVD_ERR_REMOVED: the job goes on without this rank. */
    int (*open)(void *context, struct error *err);
    void (*close)(void *context);
    int (*rank)(void *context);
    /* `*value` becomes the greatest of all ranks. */
    int (*max)(void *context, const char *name, int64_t *value, struct error *err);
    int (*broadcast)(void *context, const char *name, void *memory, size_t bytes, int root,
                     struct error *err);
    /* Not collective: whether the launcher has said since the last call that hosts have joined or
     * left. */
    bool (*hosts_changed)(void *context);
    void *context;
};
