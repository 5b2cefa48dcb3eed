/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment, with the names and defaults of Horovod:
 * - HOROVOD_CYCLE_TIME: milliseconds, 1
 * - HOROVOD_FUSION_THRESHOLD: bytes, 128 MiB; 0: nothing is fused
 * - HOROVOD_CACHE_CAPACITY: tensors, 1024; 0: no cache
 * - HOROVOD_STALL_CHECK_DISABLE: 0
 * - HOROVOD_STALL_CHECK_TIME_SECONDS: 60
 * - HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: 0, which is never
 * - HOROVOD_AUTOTUNE: 0; 1 tunes the cycle time and the threshold, unless they are given
 * - HOROVOD_AUTOTUNE_LOG: a file; none
 * - HOROVOD_AUTOTUNE_WARMUP_SAMPLES: 3, _STEPS_PER_SAMPLE: 10, _BAYES_OPT_MAX_SAMPLES: 20
 * - HOROVOD_ENABLE_ASYNC_COMPLETION: 0; 1: handles of tensors on a GPU are complete at their launch
 */
#pragma once

#include <stdbool.h>

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

/* Settings that must be the same on all ranks, as names and values. The ranks compare them when the
 * library starts. */
struct settings {
    struct buf bytes; /* pairs of texts */
};

void settings_init(struct settings *settings);
void settings_destroy(struct settings *settings);
void settings_add(struct settings *settings, const char *name, const char *value);

/* Adds the settings that all ranks must share. */
void knobs_add(const struct knobs *knobs, struct settings *settings);

/* Compares the settings of all ranks of the set. HVD_ERR_MISMATCH on every rank, with the same
 * text: they differ. */
enum hvd_status knobs_agree(const struct message_set *set, const struct settings *settings,
                            struct error *err);

/* The log of autotune: comma-separated values in the columns of Horovod. Each round has a row, and
 * at the end the best point has one. */
struct tune_log;

/* NULL: `path` is NULL, or it cannot be written, and a warning says so. */
struct tune_log *tune_log_open(const char *path, bool cache_enabled);
void tune_log_close(struct tune_log *log);                            /* accepts NULL */
void tune_log_row(struct tune_log *log, const struct tuning *tuning); /* accepts NULL */
