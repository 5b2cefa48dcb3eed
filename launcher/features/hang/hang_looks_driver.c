/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_looks_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "features/hang/mpi_wait.h"
#include "features/stacks/look_driver.h"

#define TEXT_MAX ((size_t)1 << 16)
#define TROUBLES 3 /* looks that fail one after another */
#define MISSES 8   /* likewise, of a rank that could not be read in time */

/* What a look shows of a rank. If its main thread runs no Python, its calls of MPI count. */
struct seat_look {
    struct hang_look look;
    struct mpi_wait_rank mpi;
    bool bare, runs; /* runs: so do its main thread or a child process */
    bool read;       /* its main thread has frames */
};

struct hang_looks {
    struct job *job;
    struct hang *hang;
    struct seat_look *seen; /* by seat: the look that is being read */
    bool under_way, calls;
    int troubles, misses;
};

struct hang_looks *hang_looks_create(struct job *job, struct hang *hang)
{
    struct hang_looks *looks = mem_alloc(sizeof(*looks));
    *looks = (struct hang_looks){.job = job, .hang = hang};
    return looks;
}

void hang_looks_destroy(struct hang_looks *looks)
{
    free(looks);
}

enum look_depth hang_looks_depth(const struct hang_looks *looks)
{
    return looks->calls ? LOOK_CALLS : LOOK_PYTHON;
}

/* Its innermost frame is of Python's own library: it may wait for threads or children of its own.
 */
static bool is_in_library(const struct stack *stack)
{
    const char *file = stack->count > 0 ? stack->frames[stack->count - 1].file : "";
    return file[0] == '<' ||
           (strstr(file, "/python3") != NULL && strstr(file, "-packages/") == NULL);
}

static void take_stack(void *context, int seat, const struct look_stack *source)
{
    const struct hang_looks *looks = context;
    const struct stack *stack = source->stack;
    if (seat >= looks->job->ranks.size || stack->role == STACK_TASK)
        return;
    struct seat_look *its = &looks->seen[seat];
    struct hang_look *seen = &its->look;
    uint64_t place = source->bare ? 0 : look_place(stack);
    bool runs = strcmp(stack->doing, STACK_RUNNING) == 0;
    mpi_wait_add(&its->mpi, stack, true);
    its->runs = its->runs || (runs && stack->role != STACK_OTHER);
    if (stack->role == STACK_MAIN) {
        its->bare = source->bare;
        its->read = stack->count > 1;
        seen->main = place;
        seen->main_runs = runs;
        seen->waits_for_own = !runs && is_in_library(stack);
        return;
    }
    seen->unknown = seen->unknown || (runs && place == 0);
    seen->aside += runs ? place : 0; /* in any order */
}

/* One that is in a call of MPI spins there, unless another thread or process of it works. */
static struct hang_look of_seat(const struct seat_look *its)
{
    bool waits = its->bare && its->mpi.place != 0 && !its->mpi.works;
    return waits ? (struct hang_look){.main = its->mpi.place, .main_runs = its->runs} : its->look;
}

/* Whether looks at calls of MPI may tell more: a program spins, or a shell waits for one. */
static bool want_calls(const struct hang_looks *looks)
{
    bool wanted = false;
    for (int seat = 0; seat < looks->job->ranks.size; seat++)
        wanted = wanted || (looks->seen[seat].bare && looks->seen[seat].runs);
    return wanted && looks->job->settings->hang_timeout > 0;
}

/* Why looks do not show whether these programs spin in MPI, once. A single look can fail. */
static void tell_trouble(struct hang_looks *looks, const struct ask *look)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    look_remarks(look, &text);
    if (looks->troubles < TROUBLES)
        looks->troubles = text.length > 0 ? looks->troubles + 1 : 0;
    if (text.length == 0 || looks->troubles != TROUBLES)
        return;
    looks->troubles++;
    log_warning(&looks->job->log,
                "--hang-timeout may not notice ranks that wait for each other in MPI: %s",
                buf_text(&text));
}

/* A busy machine may not stop a thread in time. That says nothing, unless it goes on so. */
static void take_looks(struct hang_looks *looks, int count)
{
    bool missed = false, skip = looks->misses < MISSES;
    for (int seat = 0; seat < count; seat++) {
        const struct seat_look *its = &looks->seen[seat];
        bool unread = looks->calls && its->bare && its->runs && !its->read;
        struct hang_look seen = of_seat(its);
        missed = missed || unread;
        if (!unread || !skip)
            hang_looked(looks->hang, seat, &seen);
    }
    looks->misses = missed ? looks->misses + 1 : 0;
}

static void looked(void *context, const struct ask *look)
{
    struct hang_looks *looks = context;
    int count = looks->job->ranks.size;
    looks->under_way = false;
    looks->seen = mem_array((size_t)count + 1, sizeof(*looks->seen));
    look_walk(look, take_stack, looks);
    bool again = !looks->calls && want_calls(looks);
    if (!again)
        take_looks(looks, count);
    if (looks->calls && want_calls(looks))
        tell_trouble(looks, look);
    looks->calls = looks->calls || again;
    free(looks->seen);
    looks->seen = NULL;
}

void hang_looks_ask(struct hang_looks *looks)
{
    if (!looks->under_way)
        look_ask(looks->job, hang_looks_depth(looks), looked, looks);
    looks->under_way = true;
}
