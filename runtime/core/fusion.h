/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tensors run as one operation. Allreduces fuse if they have the same type, reduction and
 * scales, and together at most `threshold` bytes. A larger tensor runs alone. Groups begin in the
 * order of their first tensors, so a small tensor does not wait behind others for long.
 */
#pragma once

#include "core/request.h"

/* Writes the number of its group, from 0, for each of the `count` requests. Returns the number of
 * groups. */
size_t fusion_groups(const struct request *const *requests, size_t count, size_t threshold,
                     size_t *groups);
