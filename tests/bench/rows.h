/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks of libhvd reduce: the tensors of a step. */
#pragma once

#include <stddef.h>

enum { ROW_TENSORS_MAX = 1000 };

struct row {
    char name[32];
    size_t sizes[ROW_TENSORS_MAX], count, total; /* elements */
    size_t gap;                                  /* elements between two tensors */
    size_t bare_calls;                           /* each has total / bare_calls elements; 1 */
};

void row_begin(struct row *row, const char *name);
void row_add(struct row *row, size_t size);
/* The parameters of ResNet-50: 161 tensors, 25.6 million elements. */
void row_add_resnet(struct row *row);
