/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which worker uses which GPU. NVIDIA's driver lists the processes that use one. A process belongs
 * to the worker in whose session it is, or below which it is.
 *
 * That list has only processes of the caller's PID namespace. If the workers have a namespace below
 * that of the agent (a container around the program, not around the agent), their GPUs are not
 * known.
 */
#pragma once

#include "agent/crews.h"
#include "base/buf.h"

struct gpu_owner {
    uint32_t seat;
    uint32_t gpu; /* its place in the list */
    bool has_memory;
    uint64_t memory_bytes;
};

/* One entry for each worker and GPU, sorted by seat, then by GPU. Returns how many; the caller
 * frees `*out`. `gpus` may be NULL. */
size_t gpu_owners_find(const struct crews *crews, const Hvdrun__GpuUsages *gpus,
                       struct gpu_owner **out);

/* To which worker does a process belong? To the one in whose session it is, or below which.
 * `scratch` has room for USAGE_TEXT_MAX. false: to none. */
bool process_seat(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat);
