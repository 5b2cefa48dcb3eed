/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs in tests/hvd share. A failure ends the program with one line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/hvd.h"
#include "worker.h"

struct job {
    int rank, size;
};

struct job job_begin(void); /* hvd_init(), with the set HVD_TEST_SETS if it is set */
void job_end(const struct job *job);

/* Ends the program unless `status` is `expected`; then the text must contain `part`. */
void job_expect(int status, int expected, const char *part, const char *what);

/* A tensor of one dimension. */
struct hvd_tensor job_tensor(const char *name, enum hvd_type type, const int64_t *length,
                             const void *input, void *output);
