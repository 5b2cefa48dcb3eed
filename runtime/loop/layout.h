/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows of a tensor come from each member, and the memory for all of them. Members exchange
 * the numbers of rows first, because only the sender knows them. */
#pragma once

#include "loop/runner.h"

struct layout {
    int64_t *rows;   /* from each set rank; goes to the outcome */
    size_t *receive; /* the same in bytes */
    size_t row_bytes, total;
    int64_t total_rows;
    void *data; /* `total` bytes; NULL: none */
};

/* `rows` is for the caller to fill in. */
void layout_init(const struct runner *runner, const struct request *request, struct layout *layout);
/* After a failure, the memory of the data may have to stay. So may the rows, if the engine was
 * `given_rows`. */
void layout_destroy(const struct runner *runner, struct layout *layout, bool given_rows);

/* Computes the rest from the rows, and makes the memory. -1: what the others announce cannot be
 * right, or does not fit the memory. */
int layout_measure(const struct runner *runner, struct layout *layout, struct error *err);

/* The result goes to the program, with the rows from each rank. */
void layout_give(const struct runner *runner, struct layout *layout, struct outcome *outcome);
