/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/mpi_wait.h"

#include <string.h>

#include "base/hash.h"
#include "features/hang/place_frame.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The names of calls only: a function of the program may begin with "mpi_". */
static bool is_call(const struct stack_frame *frame)
{
    const char *name = frame->function;
    return place_frame_is_mpi(frame) &&
           (strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0 ||
            strncmp(base_of(frame->file), "libmpi", 6) == 0);
}

static bool has_other_cause(const struct stack_frame *frame)
{
    static const char *const calls[] = {"MPI_File_",       "mpi_file_",        "MPI_Comm_accept",
                                        "mpi_comm_accept", "MPI_Comm_connect", "mpi_comm_connect"};
    const char *name = frame->function;
    name += name[0] == 'P' || name[0] == 'p';
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strncmp(name, calls[i], strlen(calls[i])) == 0)
            return true;
    }
    return false;
}

uint64_t mpi_wait_place(const struct stack *stack)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < stack->count; i++) {
        hash = place_frame_hash(&stack->frames[i], hash);
        if (is_call(&stack->frames[i]))
            return has_other_cause(&stack->frames[i]) ? 0 : hash | 1;
    }
    return 0;
}

/* Threads of the libraries below MPI run for a moment now and then. */
static bool is_helper(const struct stack *stack)
{
    static const char *const names[] = {"libmpi", "libopen-", "libpmix", "libuc", "libfabric"};
    for (size_t i = 0; i < stack->count; i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            if (strncmp(base_of(stack->frames[i].file), names[j], strlen(names[j])) == 0)
                return true;
        }
    }
    return false;
}

void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack)
{
    if (stack->role == STACK_MAIN || stack->role == STACK_CHILD)
        rank->place += mpi_wait_place(stack); /* in any order */
    rank->works = rank->works || (strcmp(stack->doing, STACK_RUNNING) == 0 &&
                                  mpi_wait_place(stack) == 0 && !is_helper(stack));
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
    if (looks > 0)
        return MPI_WAIT_PERIOD_MS;
    return period_ms < MPI_WAIT_PERIOD_MAX_MS / 2 ? period_ms * 2 : MPI_WAIT_PERIOD_MAX_MS;
}
