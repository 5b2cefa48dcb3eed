/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, of one tensor or of several that are fused: those have the same root. */
#pragma once

#include "loop/runner.h"

enum hvd_status broadcast_run(struct runner *runner, const struct part *parts, size_t count,
                              struct error *err);
