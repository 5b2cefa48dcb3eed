/* SPDX-License-Identifier: Apache-2.0 */
/* Is a stack in a call of torch.distributed that ends only when other ranks come to it? Pure. */
#pragma once

#include <stdbool.h>

#include "stacks/stack.h"

enum torch_call {
    TORCH_CALL_UNKNOWN,
    TORCH_CALL_NONE, /* certainly not: it sleeps or waits for a file, in code of its own */
    TORCH_CALL_WAITS,
};

/* Of a main thread. Calls of compiled code below Python are not seen. So it is unknown of a thread
 * that waits for a lock, a socket or a GPU. */
enum torch_call torch_call_of(const struct stack *stack);

/* Another thread or process of the rank may be in such a call, perhaps in compiled code. */
bool torch_call_is_possible(const struct stack *stack);
