/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of --gpu-free, "90%:60s", and which GPUs do not keep it yet. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/control.pb-c.h"

struct gpu_free_limit {
    double percent;   /* of the memory of each GPU that must be free */
    int64_t limit_ms; /* after which a restart goes on all the same */
};

/* Without a time, it is 60 s. -1: wrong; STATUS_USAGE. */
int gpu_free_parse(const char *text, struct gpu_free_limit *out, struct error *err);

/* Appends a text for each GPU that has less. It begins with "GPU 0 of b has only 40 % of its memory
 * free: ", and names who holds the most. A GPU whose memory is not known keeps the limit. False:
 * all do. */
bool gpu_free_lacks(const Hvdrun__GpuHealths *gpus, const char *host, double percent,
                    struct buf *out);
