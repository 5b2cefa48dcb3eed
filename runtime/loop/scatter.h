/* SPDX-License-Identifier: Apache-2.0 */
/* Reducescatter, of one tensor or of several that are fused. */
#pragma once

#include "loop/runner.h"

enum hvd_status scatter_run(struct runner *runner, const struct part *parts, size_t count,
                            struct error *err);
