/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/mpi_calls.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "features/hang/place_frame.h"

/* A large message takes its time in one call. One who waits does not copy, and has no function of
 * the C library without a name: those that wait have one in every build of it. */
static bool moves_data(const struct stack *stack)
{
    static const char *const names[] = {"mem",   "send",   "recv",       "read",  "write",
                                        "pread", "pwrite", "process_vm", "splice"};
    const struct stack_frame *last = stack->count > 0 ? &stack->frames[stack->count - 1] : NULL;
    if (last == NULL || !last->native || strcmp(stack->doing, STACK_RUNNING) != 0 ||
        !place_frame_is_standard(last))
        return false;
    const char *name = last->function + strspn(last->function, "_");
    name += text_begins(name, "libc_") ? strlen("libc_") : 0;
    bool moves = name[0] == '+';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !moves; i++)
        moves = text_begins(name, names[i]);
    return moves;
}

static bool waits_for_child(const struct stack *stack)
{
    return text_begins(stack->doing, "calls wait4") || text_begins(stack->doing, "calls waitid");
}

void mpi_calls_add(struct mpi_calls *calls, const struct stack *stack)
{
    uint64_t call = stack->call;
    bool known = call != 0 || stack->mpi_helper || waits_for_child(stack);
    if (!known || !stack->bare || stack->held || stack->trouble[0] != '\0' || moves_data(stack))
        calls->unsure = true;
    if (call != 0) /* in any order */
        calls->place += hash_add(HASH_START, &call, sizeof(call)) | 1;
}

uint64_t mpi_calls_place(const struct mpi_calls *calls)
{
    return calls->whole && !calls->unsure ? calls->place : 0;
}
