/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum of the tensors of one operation, in host memory. */
#pragma once

#include "loop/runner.h"

/* In place. The tensors of `parts` are back to back in `data`, and each is a vector of its own.
 * Status: as of the operations in engine/engine.h. */
enum hvd_status adasum_parts(struct runner *runner, const struct part *parts, size_t count,
                             void *data, struct error *err);
