/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of reduce need, and nobody else. */
#pragma once

#include "engine/reduce.h"

reduce_function *reduce_find_fp16(enum hvd_op op);
reduce_function *reduce_find_bf16(enum hvd_op op);

/* The same without the instructions that not every processor has. For tests. */
reduce_function *reduce_find_fp16_portable(enum hvd_op op);
reduce_function *reduce_find_bf16_portable(enum hvd_op op);
