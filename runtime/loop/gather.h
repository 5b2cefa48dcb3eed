/* SPDX-License-Identifier: Apache-2.0 */
/* Allgather, of one tensor or of several that are fused. */
#pragma once

#include "loop/runner.h"

enum hvd_status gather_run(struct runner *runner, const struct part *parts, size_t count,
                           struct outcome *outcomes, struct error *err);
