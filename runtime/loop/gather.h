/* SPDX-License-Identifier: Apache-2.0 */
/* Allgather and alltoall: only the sender of rows knows how many there are. */
#pragma once

#include "loop/runner.h"

/* Allgather, of one tensor or of several that are fused. */
enum hvd_status gather_run(struct runner *runner, const struct part *parts, size_t count,
                           struct outcome *outcomes, struct error *err);

/* Alltoall is never fused. */
enum hvd_status alltoall_run(struct runner *runner, const struct part *part,
                             struct outcome *outcome, struct error *err);
