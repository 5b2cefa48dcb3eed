/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one operation of a process set with its engine.
 *
 * Tensors that are fused go through the fusion buffer: one copy in, one operation, one copy out;
 * the copies scale. A single allreduce is done in its own output. The first dimensions of
 * allgathers and the splits of an alltoall are exchanged before the data.
 */
#pragma once

#include "loop/runner.h"

/* Runs the operation of `parts`, whose tokens are submissions. `outcomes` has one for each part. A
 * failure means that the engine cannot be used any more, and the outcomes say the same. Then the
 * buffers that it was given are kept, if it says so. */
enum hvd_status operation_run(struct runner *runner, const struct part *parts, size_t count,
                              struct outcome *outcomes, struct error *err);
