/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/mpi_wait.h"

#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/text.h"
#include "features/hang/place_frame.h"

/* In C and in Fortran: "MPI_Recv", "PMPI_Recv", "mpi_recv_". Behind a name with '*', more follows,
 * as in MPI_Alltoallv. A program that polls, such as by MPI_Test, may wait for something else. */
static bool is_call(const struct stack_frame *frame)
{
    static const char *const calls[] = {
        "recv",    "send",       "ssend",      "rsend",     "sendrecv*", "probe",     "mprobe",
        "mrecv",   "wait",       "waitall",    "waitany",   "waitsome",  "barrier",   "bcast",
        "gather*", "scatter*",   "allgather*", "alltoall*", "reduce*",   "allreduce", "scan",
        "exscan",  "neighbor_*", "win_fence",  "win_wait",  "finalize",  NULL};
    const char *name = frame->function;
    if (!frame->native)
        return false;
    name += name[0] == 'P' || name[0] == 'p';
    if (strncasecmp(name, "mpi_", 4) != 0)
        return false;
    name += 4;
    for (size_t i = 0; calls[i] != NULL; i++) {
        size_t length = strcspn(calls[i], "*"), rest = strlen(name);
        if (rest >= length && strncasecmp(name, calls[i], length) == 0 &&
            (calls[i][length] == '*' || name[length] == '\0' || strcmp(name + length, "_") == 0))
            return true;
    }
    return false;
}

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
        if (!is_call(&stack->frames[i]))
            continue;
        for (size_t k = i + 1; k < stack->count; k++) {
            if (is_own(&stack->frames[k]))
                return 0;
        }
        return hash | 1;
    }
    return 0;
}

/* Threads of the libraries below MPI run for a moment now and then. */
static bool is_helper(const struct stack *stack)
{
    static const char *const names[] = {"libmpi", "libopen-", "libpmix", "libuc", "libfabric"};
    for (size_t i = 0; i < stack->count; i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            if (strncmp(text_base_name(stack->frames[i].file), names[j], strlen(names[j])) == 0)
                return true;
        }
    }
    return false;
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

/* The number of a call tells more than its place. */
static uint64_t place_of(const struct stack *stack, bool any_call)
{
    uint64_t place = mpi_wait_place(stack), call = stack->call;
    if (call == 0 || (place == 0 && !any_call))
        return any_call ? 0 : place;
    return hash_add(HASH_START, &call, sizeof(call)) | 1;
}

void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack, bool any_call)
{
    uint64_t place = place_of(stack, any_call);
    if (stack->role == STACK_MAIN || stack->role == STACK_CHILD) {
        rank->place += place; /* in any order */
        rank->unsure = rank->unsure || (place != 0 && stack->call == 0);
    }
    rank->works = rank->works || stack->held || (place != 0 && moves_data(stack)) ||
                  (strcmp(stack->doing, STACK_RUNNING) == 0 && place == 0 && !is_helper(stack));
}

bool mpi_wait_is_sure(const struct mpi_wait_rank *now, int count)
{
    bool sure = true;
    for (int i = 0; i < count; i++)
        sure = sure && (!now[i].runs || (now[i].place != 0 && !now[i].works && !now[i].unsure));
    return sure;
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
