/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler of the public interface: that of the core, and its progress as memory of a state. */
#pragma once

#include "core/sampler.h"
#include "include/hvd.h"

struct hvd_sampler {
    struct sampler core;
    int64_t epoch, done; /* what a state saves, restores and shares */
};

/* Continues where `epoch` and `done` say, for the present ranks. */
void sampler_refresh(struct hvd_sampler *sampler);
