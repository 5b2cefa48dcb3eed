/* SPDX-License-Identifier: Apache-2.0 */
/* What the frames of a stack say about the place of a rank. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stacks/stack.h"

/* Of Python's standard library, or of the C library: it says how a thread waits, not for what. */
bool place_frame_is_standard(const struct stack_frame *frame);
/* Of the program itself: neither standard nor of an installed package or library. */
bool place_frame_is_own(const struct stack_frame *frame);

/* A call of MPI: "MPI_Recv", also of "PMPI_Recv". Borrowed; NULL: it is none. */
const char *place_frame_mpi_call(const struct stack_frame *frame);

/* Function, line and the base name of the file: hosts may have a program in different folders. */
uint64_t place_frame_hash(const struct stack_frame *frame, uint64_t hash);

/* How many of the frames, from the outer end on, say where the stack is. 0: that is unknown.
 * `*waits`: what follows them waits for another thread or process of its own. */
size_t place_frames_telling(const struct stack *stack, bool *waits);

/* Is a stack in a call of torch.distributed that ends only when other ranks come to it? Pure. */

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
