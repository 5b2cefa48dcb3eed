/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that must be the same on all ranks, as names and values. The ranks compare them when the
 * library starts. */
#pragma once

#include "base/error.h"
#include "core/codec.h"

struct settings {
    struct buf bytes; /* pairs of texts */
};

void settings_init(struct settings *settings);
void settings_destroy(struct settings *settings);

void settings_add(struct settings *settings, const char *name, const char *value);

/* Compares those of rank 0 with those of `rank`, which are bytes from there. -1: they differ, and
 * the error names the setting and both values. */
int settings_compare(const struct settings *own, int rank, const void *bytes, size_t length,
                     struct error *err);
