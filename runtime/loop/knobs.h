/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from the environment, with the names and defaults of Horovod (docs/runtime.md). */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "core/codec.h"
#include "core/tuner.h"
#include "engine/messages.h"
#include "engine/setup.h"

struct knobs {
    int64_t cycle_ns;
    size_t threshold, capacity;
    int64_t warn_ns, give_up_ns; /* 0: never */
    struct tuner_setup tuner;
    const char *tune_log; /* NULL: none; of the environment */
    bool completes_at_launch;
};

/* HVD_ERR_ARGUMENT: a variable is wrong, and the error names it. */
enum hvd_status knobs_read(struct knobs *knobs, setup_get *get, struct error *err);

/* Settings that must be the same on all ranks are pairs of texts, name and value. The ranks compare
 * them when the library starts. */
void settings_add(struct buf *settings, const char *name, const char *value);

/* Adds the settings that all ranks must share. */
void knobs_add(const struct knobs *knobs, struct buf *settings);

/* Compares the settings of all ranks of the set. HVD_ERR_MISMATCH on every rank, with the same
 * text: they differ. */
enum hvd_status knobs_agree(const struct message_set *set, const struct buf *settings,
                            struct error *err);

/* The log of autotune: comma-separated values in the columns of Horovod. Each round has a row, and
 * at the end the best point has one. */
/* NULL: `path` is NULL, or it cannot be written, and a warning says so. */
FILE *tune_log_open(const char *path);
void tune_log_row(FILE *log, const struct tuning *tuning, bool cached); /* accepts NULL */
