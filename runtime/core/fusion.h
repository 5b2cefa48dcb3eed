/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tensors run as one operation: those that request_fuses() allows, as long as they take at
 * most `threshold` bytes of the fusion buffer. A tensor that takes more than FUSION_ALONE bytes
 * runs alone. Copying it into the fusion buffer and out again costs more than an operation of its
 * own. Groups begin in the order of their first tensors, so a small tensor does not wait behind
 * others for long.
 */
#pragma once

#include "core/request.h"

enum { FUSION_ALONE = 2 << 20 };

/* Writes the number of its group, from 0, for each of the `count` requests of a set of `ranks`.
 * Returns the number of groups. */
size_t fusion_groups(const struct request *const *requests, size_t count, int ranks,
                     size_t threshold, size_t *groups);
