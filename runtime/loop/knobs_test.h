/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of knobs need, and nobody else. */
#pragma once

#include "loop/knobs.h"

/* Compares those of rank 0 with those of `rank`, which are bytes from there. -1: they differ, and
 * the error names the setting and both values. */
int settings_compare(const struct buf *own, int rank, const void *bytes, size_t length,
                     struct error *err);
