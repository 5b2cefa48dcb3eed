/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_facts_driver.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/part.h"
#include "features/hang/mpi_wait.h"
#include "features/stacks/look_driver.h"

struct wait {
    struct stall stall;
    uint32_t round;
};

struct hang_waits {
    struct wait *items; /* in the order of their coming */
    int count;
};

struct hang_waits *hang_waits_create(void)
{
    return mem_alloc(sizeof(struct hang_waits));
}

void hang_waits_forget(struct hang_waits *waits)
{
    for (int i = 0; i < waits->count; i++)
        stall_clear(&waits->items[i].stall);
    free(waits->items);
    *waits = (struct hang_waits){.count = 0};
}

void hang_waits_destroy(struct hang_waits *waits)
{
    if (waits != NULL)
        hang_waits_forget(waits);
    free(waits);
}

/* What the worker has answered about this set before. */
static void drop_older(struct hang_waits *waits, const struct stall *stall, uint32_t round)
{
    int kept = 0;
    for (int i = 0; i < waits->count; i++) {
        struct wait *wait = &waits->items[i];
        if (wait->stall.seat == stall->seat && wait->stall.set == stall->set &&
            wait->round != round)
            stall_clear(&wait->stall);
        else
            waits->items[kept++] = *wait;
    }
    waits->count = kept;
}

void hang_waits_take(struct hang_waits *waits, struct stall *stall, uint32_t round)
{
    drop_older(waits, stall, round);
    if (stall->missing.count == 0 || waits->count == HANG_WAITS_MAX) {
        stall_clear(stall);
        return;
    }
    MEM_ADD(waits->items, waits->count) = (struct wait){*stall, round};
}

static bool has(const struct stall_ranks *ranks, int rank)
{
    for (int i = 0; i < ranks->count; i++) {
        if (ranks->list[i] == rank)
            return true;
    }
    return false;
}

/* Another operation for which this rank waits; NULL: none is known. */
static const struct stall *wait_of(const struct hang_waits *waits, const struct stall *except,
                                   int rank)
{
    for (int i = 0; i < waits->count; i++) {
        const struct stall *stall = &waits->items[i].stall;
        if (stall != except && has(&stall->waiting, rank))
            return stall;
    }
    return NULL;
}

/* Less is better: how many ranks are missing, and whether the first of them waits itself. */
static int64_t badness(const struct hang_waits *waits, const struct stall *stall)
{
    int64_t missing = stall->missing.more ? INT_MAX : stall->missing.count;
    return 2 * missing + (wait_of(waits, stall, stall->missing.list[0]) != NULL);
}

const struct stall *hang_waits_decide(const struct hang_waits *waits,
                                      const struct stall_list *stalls, int64_t now_ns)
{
    const struct stall *best = NULL, *stall = NULL;
    for (int i = 0; i < waits->count; i++) {
        stall = &waits->items[i].stall;
        if (best == NULL || badness(waits, stall) < badness(waits, best))
            best = stall;
    }
    for (int i = 0; (stall = stall_list_at(stalls, i)) != NULL; i++) {
        bool counts = stall_lasts(stall, now_ns) && stall->missing.count > 0;
        if (counts && (best == NULL || badness(waits, stall) < badness(waits, best)))
            best = stall;
    }
    return best;
}

void hang_waits_text(const struct hang_waits *waits, const struct stall *found, struct buf *out)
{
    const struct stall *other = wait_of(waits, found, found->missing.list[0]);
    stall_text(found, out);
    if (other == NULL)
        return;
    buf_puts(out, "; ");
    stall_text(other, out);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_hang_waits] = hang_waits_create();
    return 0;
}

static void close_part(struct job *job)
{
    hang_waits_destroy(job_part(job, hang_waits));
}

static bool take(struct job *job, struct stall *stall, uint32_t round)
{
    hang_waits_take(job_part(job, hang_waits), stall, round);
    return true;
}

const struct driver_part hang_waits_part = {
    .name = "hang_waits", .open = open_part, .close = close_part, .waits = take};

/* ---- NCCL ------------------------------------------------------------------------------------ */

#define COMMUNICATORS_MAX 1024 /* of a worker */

struct seat_places {
    struct ras_place *places;
    size_t count; /* 0: no answer */
    uint64_t moves;
};

struct ras_facts {
    struct seat_places *seats;
    size_t count;
};

struct ras_facts *ras_facts_create(void)
{
    return mem_alloc(sizeof(struct ras_facts));
}

void ras_facts_destroy(struct ras_facts *facts)
{
    if (facts == NULL)
        return;
    ras_facts_forget(facts);
    free(facts->seats);
    free(facts);
}

void ras_facts_forget(struct ras_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->seats[i].places);
        facts->seats[i].places = NULL;
        facts->seats[i].count = 0;
    }
}

static struct ras_rank rank_of(const struct seat_places *seat)
{
    return (struct ras_rank){seat->places, seat->count};
}

static void copy_places(struct seat_places *seat, const Hvdrun__RankPulse *pulse)
{
    size_t count = pulse->n_ras < COMMUNICATORS_MAX ? pulse->n_ras : COMMUNICATORS_MAX;
    free(seat->places);
    seat->places = mem_array(count + 1, sizeof(*seat->places));
    seat->count = 0;
    for (size_t i = 0; i < count; i++) {
        const Hvdrun__RasPlace *source = pulse->ras[i];
        if (source->n_counts != RAS_OPERATIONS)
            continue;
        struct ras_place *place = &seat->places[seat->count++];
        place->comm = source->comm;
        for (int j = 0; j < RAS_OPERATIONS; j++)
            place->counts[j] = source->counts[j] <= INT64_MAX ? (int64_t)source->counts[j] : 0;
    }
}

uint64_t ras_facts_take(struct ras_facts *facts, int seat, const Hvdrun__RankPulse *pulse)
{
    if (pulse->n_ras == 0)
        return (size_t)seat < facts->count ? facts->seats[seat].moves : 0;
    facts->seats = mem_reach(facts->seats, &facts->count, (size_t)seat + 1, sizeof(*facts->seats));
    struct seat_places *its = &facts->seats[seat];
    struct ras_rank rank = rank_of(its);
    bool known = rank.count > 0;
    uint64_t before = ras_mark(&rank);
    copy_places(its, pulse);
    rank = rank_of(its);
    its->moves += known && ras_mark(&rank) != before;
    return its->moves;
}

struct ras_rank ras_facts_of(const struct ras_facts *facts, int seat)
{
    return (size_t)seat < facts->count ? rank_of(&facts->seats[seat]) : (struct ras_rank){0};
}

/* ---- Looks ----------------------------------------------------------------------------------- */

#define TEXT_MAX ((size_t)1 << 16)
#define TROUBLES 3 /* looks that fail one after another */
#define MISSES 8   /* likewise, of a rank that could not be read completely */

/* What a look shows of a rank. If its main thread runs no Python, its calls of MPI count. */
struct seat_look {
    struct hang_look look;
    struct mpi_calls calls;
    bool bare, runs; /* runs: so do its main thread or a child process */
};

/* What the looks before have shown. */
struct seat_past {
    uint64_t calls; /* mpi_calls_place() */
    int misses;
};

struct hang_looks {
    struct job *job;
    struct hang *hang;
    struct seat_look *seen; /* by seat: the look that is being read */
    struct seat_past *past; /* likewise */
    size_t past_count;
    bool under_way, calls;
    int troubles;
};

struct hang_looks *hang_looks_create(struct job *job, struct hang *hang)
{
    return MEM_NEW((struct hang_looks){.job = job, .hang = hang});
}

void hang_looks_destroy(struct hang_looks *looks)
{
    if (looks == NULL)
        return;
    free(looks->past);
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

static void take_stack(void *context, int seat, const struct stack *stack)
{
    const struct hang_looks *looks = context;
    if (seat >= looks->job->ranks.size)
        return;
    struct seat_look *its = &looks->seen[seat];
    struct hang_look *seen = &its->look;
    uint64_t place = stack->bare ? 0 : look_place(stack);
    bool runs = strcmp(stack->doing, STACK_RUNNING) == 0;
    mpi_calls_add(&its->calls, stack);
    its->runs = its->runs || (runs && stack->role != STACK_OTHER);
    if (stack->role == STACK_MAIN) {
        its->bare = stack->bare;
        seen->main = place;
        seen->main_runs = runs;
        seen->waits_for_own = !runs && is_in_library(stack);
        return;
    }
    seen->unknown = seen->unknown || (runs && place == 0);
    seen->aside += runs ? place : 0; /* in any order */
}

static void take_whole(void *context, int seat)
{
    const struct hang_looks *looks = context;
    if (seat < looks->job->ranks.size)
        looks->seen[seat].calls.whole = true;
}

enum stay { ELSEWHERE, MISSED, STAYS };

/* Whether it is surely in the same calls of MPI as in the look before. A call may have begun after
 * the first look at it, so that one says nothing. */
static enum stay stay_of(const struct hang_looks *looks, const struct seat_look *its,
                         struct seat_past *past)
{
    bool missed = looks->calls && its->bare && its->runs && !its->calls.whole;
    past->misses = missed ? past->misses + 1 : 0;
    if (missed && past->misses < MISSES)
        return MISSED;
    uint64_t calls = mpi_calls_place(&its->calls);
    bool stays = calls != 0 && calls == past->calls;
    past->calls = calls;
    return stays ? STAYS : ELSEWHERE;
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

/* Ranks may wait in MPI for one that is elsewhere and will come. */
static enum stay stay_of_all(struct hang_looks *looks, int count)
{
    enum stay all = STAYS;
    for (int seat = 0; seat < count; seat++) {
        enum stay its = stay_of(looks, &looks->seen[seat], &looks->past[seat]);
        bool runs = looks->job->ranks.records[seat].state == RANK_RUNNING;
        all = runs && its < all ? its : all;
    }
    return all;
}

/* A busy machine may not stop a thread in time. That says nothing, unless it goes on so. */
static void take_looks(struct hang_looks *looks, int count)
{
    looks->past = mem_reach(looks->past, &looks->past_count, (size_t)count, sizeof(*looks->past));
    enum stay all = stay_of_all(looks, count);
    for (int seat = 0; seat < count; seat++) {
        const struct seat_look *its = &looks->seen[seat];
        const struct seat_past *past = &looks->past[seat];
        struct hang_look stays = {.main = past->calls, .main_runs = its->runs};
        if (all == MISSED || (past->misses > 0 && past->misses < MISSES))
            hang_missed(looks->hang, seat);
        else
            hang_looked(looks->hang, seat, all == STAYS ? &stays : &its->look);
    }
}

static void looked(void *context, const struct ask *look)
{
    struct hang_looks *looks = context;
    int count = looks->job->ranks.size;
    looks->under_way = false;
    looks->seen = mem_array((size_t)count + 1, sizeof(*looks->seen));
    look_walk(look, take_stack, looks);
    look_walk_whole(look, take_whole, looks);
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
