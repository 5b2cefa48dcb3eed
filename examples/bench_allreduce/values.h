/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that each rank gives to an allreduce, and the result that they must have. They are
 * small and whole. Types: float16, bfloat16, float32, float64, int32, int64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <hvd.h>

/* This rank's numbers. */
void values_fill(enum hvd_type type, enum hvd_op op, void *data, size_t count);

/* How many elements of the result are wrong. Types with a fraction may have a rounding for each
 * rank. */
int64_t values_count_wrong(enum hvd_type type, enum hvd_op op, const void *data, size_t count);
