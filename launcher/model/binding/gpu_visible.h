/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that a process sees: all of its node, or those that CUDA_VISIBLE_DEVICES
 * (ROCR_VISIBLE_DEVICES for AMD) lists by number or id, and the parts of that list that its workers
 * get. Pure.
 *
 * The list is read as CUDA reads it. An empty list shows no GPU, and neither does one that begins
 * with -1 or NoDevFiles. A word that names no GPU ends the list. An id may be shortened. The id of
 * a MIG device ("MIG-...") is accepted as it is, without a place.
 */
#pragma once

#include "base/strv.h"
#include "model/binding/topology.h"

struct gpu_visible {
    struct strv words;          /* as the list has them, or would: "0", "GPU-...", "MIG-..." */
    struct device_list devices; /* one for each word; without a place where it is not known */
};

/* The variable that limits GPUs of this kind. */
const char *gpu_visible_name(enum device_kind kind);

/* `gpus`: those of the node; `value`: of the variable, NULL when it is not set. If no GPU was
 * found, the list counts as it is. */
void gpu_visible_fill(struct gpu_visible *visible, const struct device_list *gpus,
                      const char *value);
void gpu_visible_clear(struct gpu_visible *visible);

/* The value for the worker in `slot` when each gets `each` GPUs; NULL when there are not so many.
 * The caller owns it. */
char *gpu_visible_part(const struct gpu_visible *visible, size_t slot, size_t each);
