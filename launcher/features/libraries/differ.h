/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do ranks of one program have different libraries of a kind, or has a process two of them? Pure.
 *
 * Only what is certain counts. Two files are the same library if their build ids are equal,
 * whatever their paths. Files without one, libraries for other processors, and stubs are not
 * compared. A rank that lacks a library may load it later.
 *
 * Two CUDA runtimes in a process are usual: many libraries bring their own. So are two CUDA drivers
 * in WSL: one only leads to the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "features/libraries/loaded.h"

struct library_file {
    enum library_kind kind;
    uint32_t machine;
    char *path, *id;
    bool deleted;
};

struct library_rank {
    int rank, app;
    const int *files; /* that its process has loaded: indices */
    size_t count;
};

/* `text`, borrowed, is one line without an end. `same_process`: it is about two in one process. */
typedef void library_each(void *context, enum library_kind kind, bool same_process,
                          const char *text);

/* In the order of the kinds and programs. The ranks are in ascending order. */
void libraries_differ(const struct library_file *files, const struct library_rank *ranks,
                      size_t count, library_each *each, void *context);
