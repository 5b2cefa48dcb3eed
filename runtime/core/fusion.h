/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tensors run as one operation. Allreduces fuse if they have the same type, reduction and
 * scales, and together at most `threshold` bytes. A tensor of more than FUSION_ALONE bytes runs
 * alone: to copy it into the fusion buffer and out again costs more than an operation of its own.
 * Groups begin in the order of their first tensors, so a small tensor does not wait behind others
 * for long.
 */
#pragma once

#include "core/request.h"

enum { FUSION_ALONE = 2 << 20 };

/* Writes the number of its group, from 0, for each of the `count` requests. Returns the number of
 * groups. */
size_t fusion_groups(const struct request *const *requests, size_t count, size_t threshold,
                     size_t *groups);
