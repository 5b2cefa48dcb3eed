/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that move data and do not reduce it. */
#pragma once

#include "loop/runner.h"

enum hvd_status move_allgather(struct runner *runner, const struct part *part,
                               struct outcome *outcome, struct error *err);
enum hvd_status move_alltoall(struct runner *runner, const struct part *part,
                              struct outcome *outcome, struct error *err);
enum hvd_status move_broadcast(struct runner *runner, const struct part *part, struct error *err);
