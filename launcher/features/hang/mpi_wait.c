/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/mpi_wait.h"

#include <stddef.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/hang/place_frame.h"
#include "model/plan/rank_list.h"
#include "model/settings/mpi_names.h"

#define CALLS_SHOWN 3

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

/* For data of a socket or a pipe, or for a time. The kernel begins some calls again after a stop,
 * and does not name them then. */
static bool waits_in_kernel(const char *doing)
{
    static const char *const functions[] = {"unix_stream_", "tcp_recvmsg",      "sk_wait_data",
                                            "pipe_",        "anon_pipe_",       "eventfd_",
                                            "do_nanosleep", "hrtimer_nanosleep"};
    static const char before[] = "waits in ";
    const char *wait = strstr(doing, before);
    bool known = false;
    if (wait == NULL || (wait != doing && !text_begins(doing, "calls read,") &&
                         !text_begins(doing, "calls readv,")))
        return false;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !known; i++)
        known = text_begins(wait + strlen(before), functions[i]);
    return known;
}

/* Or it runs. A file, new memory or another device can keep a thread as long as they like. */
static bool waits_for_ranks(const char *doing)
{
    static const char *const calls[] = {
        "poll",     "ppoll",       "epoll_wait", "epoll_pwait",    "epoll_pwait2", "select",
        "pselect6", "futex",       "recvfrom",   "recvmsg",        "recvmmsg",     "accept",
        "accept4",  "sched_yield", "nanosleep",  "clock_nanosleep"};
    static const char before[] = "calls ";
    if (waits_in_kernel(doing))
        return true;
    if (!text_begins(doing, before) || strstr(doing, STACK_ON) != NULL)
        return strcmp(doing, STACK_RUNNING) == 0;
    const char *name = doing + strlen(before);
    size_t length = strcspn(name, ",");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strlen(calls[i]) == length && memcmp(name, calls[i], length) == 0)
            return true;
    }
    return false;
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

static const char *call_of(const struct stack *stack)
{
    const char *call = NULL;
    for (size_t i = 0; i < stack->count && call == NULL; i++)
        call = place_frame_mpi_call(&stack->frames[i]);
    return call;
}

/* NULL: the thread surely waits. `seen`: it surely does something else. */
static const char *doubt_of(const struct stack *stack, bool *seen)
{
    const char *call = call_of(stack);
    *seen = false;
    if (!stack->bare)
        return "it runs Python";
    if (stack->trouble[0] != '\0')
        return "a thread of it cannot be seen";
    if (waits_for_child(stack))
        return NULL;
    bool outside = stack->call == 0 && !stack->mpi_helper;
    if (outside && mpi_wait_place(stack) != 0)
        return "it cannot be seen whether calls of MPI return";
    *seen = stack->count > 1 || stack->call != 0;
    if (outside)
        return "a thread of it is not in a call of MPI that waits for ranks";
    if (moves_data(stack))
        return "it copies data";
    if (call != NULL && strcmp(call, "MPI_Comm_disconnect") == 0)
        return "it may wait for another job";
    return stack->held || !waits_for_ranks(stack->doing) ? "it waits for something else in MPI"
                                                         : NULL;
}

/* The number of a call tells more than its place. */
static uint64_t place_of(const struct stack *stack)
{
    uint64_t place = mpi_wait_place(stack), call = stack->call;
    return place == 0 || call == 0 ? place : hash_add(HASH_START, &call, sizeof(call)) | 1;
}

static bool meets_job(const struct stack *stack)
{
    bool meets = false;
    for (size_t i = 0; i < stack->count && !meets; i++)
        meets = stack->frames[i].native && mpi_names_meets_job(stack->frames[i].function);
    return meets;
}

void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack)
{
    bool seen;
    const char *doubt = doubt_of(stack, &seen);
    mpi_calls_add(&rank->calls, stack);
    rank->unsure = doubt != NULL ? doubt : rank->unsure;
    rank->elsewhere |= seen && doubt != NULL;
    if (rank->call == NULL)
        rank->call = call_of(stack);
    uint64_t place = place_of(stack);
    if (stack->role == STACK_MAIN || stack->role == STACK_CHILD)
        rank->place += place; /* in any order */
    rank->meets = rank->meets || meets_job(stack);
    rank->spins = rank->spins || strcmp(stack->doing, STACK_RUNNING) == 0;
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

int mpi_wait_sure_looks(const struct mpi_wait_rank *before, struct mpi_wait_rank *now, int count,
                        int looks)
{
    bool same = true, any = false, missed = false;
    for (int i = 0; i < count; i++) {
        same = same && now[i].runs == before[i].runs;
        if (!now[i].runs)
            continue;
        if (now[i].elsewhere || now[i].doubt != NULL)
            return 0;
        if (!now[i].calls.whole) {
            now[i].calls = before[i].calls;
            missed = true;
        }
        uint64_t place = mpi_calls_place(&now[i].calls);
        if (place == 0)
            return 0;
        any = true;
        missed = missed || (now[i].spins && now[i].run_ns == before[i].run_ns);
        same = same && place == mpi_calls_place(&before[i].calls) &&
               now[i].output == before[i].output &&
               now[i].data_bytes - before[i].data_bytes < MPI_WAIT_DATA_BYTES;
    }
    return !any ? 0 : !same ? 1 : missed ? looks : looks + 1;
}

const char *mpi_wait_doubt(const struct mpi_wait_rank *ranks, int count, int *rank)
{
    for (*rank = 0; *rank < count; ++*rank) {
        const struct mpi_wait_rank *one = &ranks[*rank];
        const char *doubt = one->doubt != NULL ? one->doubt : one->unsure;
        if (one->runs && (doubt != NULL || !one->calls.whole))
            return doubt != NULL ? doubt : "not all of its threads could be seen";
    }
    return NULL;
}

int64_t mpi_wait_sure_ms(int looks)
{
    return looks > 2 ? (looks - 2) * (int64_t)MPI_WAIT_PERIOD_MS : 0;
}

/* Those from `first` on that are in the same call. */
static int ranks_in(const struct mpi_wait_rank *ranks, int count, int first, int *list)
{
    int found = 0;
    for (int i = first; i < count; i++) {
        if (ranks[i].runs && ranks[i].call != NULL && strcmp(ranks[i].call, ranks[first].call) == 0)
            list[found++] = i;
    }
    return found;
}

static bool is_named(const struct mpi_wait_rank *ranks, int at)
{
    bool named = false;
    for (int i = 0; i < at && !named; i++)
        named =
            ranks[i].runs && ranks[i].call != NULL && strcmp(ranks[i].call, ranks[at].call) == 0;
    return named;
}

void mpi_wait_text(const struct mpi_wait_rank *ranks, int count, struct buf *out)
{
    int *list AUTO_FREE = mem_array((size_t)count + 1, sizeof(*list)), shown = 0;
    for (int i = 0; i < count; i++) {
        if (!ranks[i].runs || ranks[i].call == NULL || is_named(ranks, i))
            continue;
        buf_puts(out, shown == 0 ? "" : ", ");
        if (shown++ == CALLS_SHOWN) {
            buf_puts(out, "...");
            return;
        }
        rank_ranges(list, ranks_in(ranks, count, i, list), out);
        buf_printf(out, " in %s", ranks[i].call);
    }
}
