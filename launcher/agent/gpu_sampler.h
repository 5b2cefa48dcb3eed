/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPUs of this node do, from a helper process that asks NVIDIA's library. The helper
 * starts with the first question, and ends when nobody has asked for a while.
 *
 * Callers wait for a short time only. An answer that comes later is kept for the next question. A
 * helper that does not answer at all is killed. Another one starts after a pause, and only if the
 * kernel let the first one die. If there is no driver, the agent does not look again.
 */
#pragma once

#include "agent/crews.h"
#include "agent/modules.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "wire/control.pb-c.h"

struct gpu_limits { /* in milliseconds */
    int64_t wait;   /* of a question */
    int64_t sick;   /* without an answer, until the helper is killed */
    int64_t pause;  /* before another one starts */
    int64_t idle;   /* without a question, until the helper ends */
    int64_t fresh;  /* older answers do not count */
};

/* A question waits less than the second for which the driver does. The first call of the library
 * can take seconds, if no process uses a GPU. */
#define GPU_LIMITS_USUAL                                                         \
    (struct gpu_limits)                                                          \
    {                                                                            \
        .wait = 600, .sick = 30000, .pause = 60000, .idle = 60000, .fresh = 5000 \
    }

#define GPU_HELPER_NONE                                                      \
    3 /* exit status of a helper: there is no library, or it finds no driver \
       */

extern const struct helper_program gpu_helper;

struct gpu_sampler;

/* `program`: a path of hvdrun-agent. All are borrowed, but for the limits. */
struct gpu_sampler *gpu_sampler_create(struct loop *loop, struct helpers *helpers,
                                       const char *program, struct gpu_limits limits);
void gpu_sampler_destroy(struct gpu_sampler *sampler); /* nobody is called; accepts NULL */

/* `done` comes once, perhaps at once. `gpus` is borrowed for the call; NULL: no answer, or there is
 * no driver. A question with the same `context` as one that waits is the same question. */
void gpu_sampler_ask(struct gpu_sampler *sampler,
                     void (*done)(void *context, const Hvdrun__GpuUsages *gpus), void *context);

/*
 * Which worker uses which GPU. NVIDIA's driver lists the processes that use one. A process belongs
 * to the worker in whose session it is, or below which it is.
 *
 * That list has only processes of the caller's PID namespace. If the workers have a namespace below
 * that of the agent (a container around the program, not around the agent), their GPUs are not
 * known.
 */
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
