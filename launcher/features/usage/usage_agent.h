/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "usage": what the workers of this node use. It measures when the driver
 * asks, and does nothing in between.
 *
 * A worker stands for all of its processes: those below it, and those that have left it but not its
 * session. To find them costs much more than to read them, because the kernel lists children for
 * each thread. So the list of processes is made again only after LIST_PERIOD_MS, and only if that
 * takes less than 1/LIST_SHARE of the time. A child that comes in between is found late. Its use is
 * not lost: when its parent has waited for it, the kernel adds it to that of the parent.
 *
 * The GPUs are measured too, by agent/gpu_sampler.h.
 */
#pragma once

#include "agent/ask.h"
#include "agent/crews.h"
#include "agent/gpu_sampler.h"

struct usage;

/* All are borrowed. The sampler is destroyed first. */
struct usage *usage_create(const struct crews *crews, struct gpu_sampler *gpus);
void usage_destroy(struct usage *usage); /* accepts NULL */

/* Answers as soon as it is known what the GPUs do, or shortly later without that. A question that
 * comes meanwhile takes the place of this one. */
void usage_ask(struct usage *usage, const struct asked *asked);
