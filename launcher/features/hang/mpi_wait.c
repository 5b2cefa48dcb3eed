/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/mpi_wait.h"

#include <stddef.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "features/hang/place_frame.h"
#include "model/settings/mpi_names.h"

/* Of the program itself, such as an MPI_Op that computes. */
static bool is_own(const struct stack_frame *frame)
{
    return !frame->native || strstr(text_base_name(frame->file), ".so") == NULL;
}

uint64_t mpi_wait_place(const struct stack *stack)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < stack->count; i++) {
        hash = place_frame_hash(&stack->frames[i], hash);
        if (!stack->frames[i].native || !mpi_names_waits(stack->frames[i].function))
            continue;
        for (size_t k = i + 1; k < stack->count; k++) {
            if (is_own(&stack->frames[k]))
                return 0;
        }
        return hash | 1;
    }
    return 0;
}

/* The number of a call tells more than its place. */
static uint64_t place_of(const struct stack *stack)
{
    uint64_t place = mpi_wait_place(stack), call = stack->call;
    return place == 0 || call == 0 ? place : hash_add(HASH_START, &call, sizeof(call)) | 1;
}

void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack)
{
    uint64_t place = place_of(stack);
    if (stack->role == STACK_MAIN || stack->role == STACK_CHILD)
        rank->place += place; /* in any order */
    rank->works = rank->works || stack->held ||
                  (strcmp(stack->doing, STACK_RUNNING) == 0 && place == 0 && !stack->mpi_helper);
}

int mpi_wait_looks(const struct mpi_wait_rank *before, const struct mpi_wait_rank *now, int count,
                   int looks)
{
    bool same = true, any = false;
    for (int i = 0; i < count; i++) {
        if (now[i].runs && (now[i].place == 0 || now[i].works))
            return 0;
        any = any || now[i].runs;
        same = same && now[i].runs == before[i].runs && now[i].place == before[i].place &&
               now[i].output == before[i].output;
    }
    return !any ? 0 : same ? looks + 1 : 1;
}

int64_t mpi_wait_next_ms(int looks, int64_t period_ms)
{
    if (looks > 1)
        return MPI_WAIT_PERIOD_MS;
    return period_ms < MPI_WAIT_PERIOD_MAX_MS / 2 ? period_ms * 2 : MPI_WAIT_PERIOD_MAX_MS;
}

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
