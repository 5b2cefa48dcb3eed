/* SPDX-License-Identifier: Apache-2.0 */
/* Alltoall. It is never fused. */
#pragma once

#include "loop/runner.h"

enum hvd_status alltoall_run(struct runner *runner, const struct part *part,
                             struct outcome *outcome, struct error *err);
