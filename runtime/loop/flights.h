/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a process set that run on a GPU: launched, and not complete. The GPU completes them
 * in the order of their launch. One thread uses them, within gpu_enter().
 */
#pragma once

#include "engine/nccl/gpus.h"
#include "loop/runner.h"

struct flight;

struct flights {
    const struct runner *runner; /* for its timeline */
    struct handles *handles;
    struct flight *first, **end;
    int64_t since_ns; /* when the first one could begin */
};

void flights_init(struct flights *flights, const struct runner *runner, struct handles *handles);

/* The operation of `parts` is complete at the mark, which it takes. Then the submissions get the
 * outcomes. `outcomes` NULL: the submissions are complete already. */
void flights_add(struct flights *flights, struct gpu_mark *end, const struct part *parts,
                 size_t count, const struct outcome *outcomes, int64_t now_ns);

bool flights_are_none(const struct flights *flights);
const char *flights_first_name(const struct flights *flights); /* of a tensor; borrowed */

/* Completes those that the GPU has completed. HVD_ERR_ENGINE: CUDA reports an error. */
enum hvd_status flights_land(struct flights *flights, int64_t now_ns, struct error *err);

/* Whether the GPU still works on one. */
bool flights_are_busy(const struct flights *flights);

/* All fail. Their streams must not run any more. */
void flights_fail(struct flights *flights, enum hvd_status status, const char *text);
