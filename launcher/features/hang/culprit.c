/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/culprit.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/plan/rank_list.h"

/* The ranks that stand out, as numbers of `ranks`, and one of the others. */
struct odd {
    int *list;
    int count, other;
};

struct culprit_search {
    const struct culprit_sign *sign; /* that is looked for */
    const struct culprit_rank *ranks;
    int count;
    const struct culprit_stall *stall; /* NULL: none */
    const struct culprit_ended *ended; /* likewise */
    struct odd odd;
};

/* The strongest first. */
struct culprit_sign {
    enum culprit_kind kind;
    bool (*find)(struct culprit_search *search); /* fills `odd` */
    void (*put)(const struct culprit_search *search, struct buf *out);
    size_t number; /* the member of a rank that odd_lowest() compares */
};

/* Key 0: unknown. True: more than a half of all ranks have the same key, and a few of those that
 * have one, another. */
static bool odd_by(struct culprit_search *search, uint64_t (*key)(const struct culprit_rank *rank))
{
    int votes = 0, known = 0;
    for (int i = 0; i < search->count; i++) { /* a key that most have, if there is one, wins */
        if (key(&search->ranks[i]) == 0)
            continue;
        known++;
        if (votes == 0)
            search->odd.other = i;
        votes += key(&search->ranks[i]) == key(&search->ranks[search->odd.other]) ? 1 : -1;
    }
    search->odd.count = 0;
    for (int i = 0; i < search->count; i++) {
        uint64_t its = key(&search->ranks[i]);
        if (its != 0 && its != key(&search->ranks[search->odd.other]))
            search->odd.list[search->odd.count++] = i;
    }
    return 2 * (known - search->odd.count) > search->count &&
           places_are_few((size_t)search->odd.count, (size_t)known);
}

static uint64_t place_key(const struct culprit_rank *rank)
{
    return rank->place.where != NULL ? rank->place.key : 0;
}

static uint64_t way_key(const struct culprit_rank *rank)
{
    return rank->way == HANG_MOVES ? 0 : (uint64_t)rank->way;
}

static int64_t number_of(const struct culprit_search *search, int rank)
{
    int64_t number;
    memcpy(&number, (const char *)&search->ranks[rank] + search->sign->number, sizeof(number));
    return number;
}

/* The ranks with the lowest number; those without one do not count. */
static bool odd_lowest(struct culprit_search *search)
{
    int64_t least = INT64_MAX, most = -1;
    search->odd.count = 0;
    for (int i = 0; i < search->count; i++) {
        int64_t its = number_of(search, i);
        if (its > most) {
            most = its;
            search->odd.other = i;
        }
        if (its >= 0 && its < least)
            least = its;
    }
    for (int i = 0; i < search->count; i++) {
        if (number_of(search, i) == least)
            search->odd.list[search->odd.count++] = i;
    }
    return most > least && 2 * search->odd.count <= search->count;
}

static bool odd_place(struct culprit_search *search)
{
    return odd_by(search, place_key);
}

/* Of two ranks, nobody is the majority, so it must be certain. A thread that runs now and then may
 * wait in a loop of compiled code, as NCCL's does. */
static bool odd_absent(struct culprit_search *search)
{
    search->odd.count = 0;
    if (search->count != 2 || (search->ended != NULL && search->ended->count > 0))
        return false;
    for (int i = 0; i < 2; i++) {
        const struct culprit_rank *rank = &search->ranks[i];
        if (!rank->asleep || rank->place.call != TORCH_CALL_NONE ||
            search->ranks[1 - i].place.call != TORCH_CALL_WAITS)
            continue;
        search->odd.list[search->odd.count++] = i;
        search->odd.other = 1 - i;
    }
    return search->odd.count > 0;
}

static bool odd_way(struct culprit_search *search)
{
    for (int i = 0; i < search->count; i++) {
        if (way_key(&search->ranks[i]) == 0)
            return false;
    }
    return odd_by(search, way_key);
}

/* Whoever is held cannot go on, so any number counts. */
static bool odd_held(struct culprit_search *search)
{
    search->odd.count = 0;
    for (int i = 0; i < search->count; i++) {
        if (search->ranks[i].place.held != NULL)
            search->odd.list[search->odd.count++] = i;
    }
    return search->odd.count > 0;
}

/* None of those that run. */
static bool odd_ended(struct culprit_search *search)
{
    const struct culprit_ended *ended = search->ended;
    search->odd.count = 0;
    return ended != NULL &&
           places_are_few((size_t)ended->count, (size_t)ended->count + (size_t)search->count);
}

/* libhvd has counted, so any number of ranks can be missing. */
static bool odd_stalled(struct culprit_search *search)
{
    const struct culprit_stall *stall = search->stall;
    search->odd.count = 0;
    for (int i = 0; stall != NULL && i < search->count; i++) {
        for (int j = 0; j < stall->count; j++) {
            if (search->ranks[i].rank == stall->missing[j])
                search->odd.list[search->odd.count++] = i;
        }
    }
    return stall != NULL && stall->count > 0;
}

static bool odd_silent(struct culprit_search *search)
{
    int first = -1, second = -1;
    for (int i = 0; i < search->count; i++) {
        int64_t last = search->ranks[i].last_ns;
        if (last == 0)
            return false;
        if (first < 0 || last < search->ranks[first].last_ns) {
            second = first;
            first = i;
        } else if (second < 0 || last < search->ranks[second].last_ns) {
            second = i;
        }
    }
    if (search->count < 3 ||
        search->ranks[second].last_ns - search->ranks[first].last_ns < CULPRIT_SILENCE_NS)
        return false;
    search->odd.list[0] = first;
    search->odd.count = 1;
    search->odd.other = second;
    return true;
}

/* "rank 3 on c17", "ranks 2,5" */
static void put_odd(const struct culprit_search *search, struct buf *out)
{
    int *ranks AUTO_FREE = mem_array((size_t)search->odd.count + 1, sizeof(*ranks));
    for (int i = 0; i < search->odd.count; i++)
        ranks[i] = search->ranks[search->odd.list[i]].rank;
    rank_ranges(ranks, search->odd.count, out);
    const char *host = search->ranks[search->odd.list[0]].host;
    if (search->odd.count == 1 && host != NULL)
        buf_printf(out, " on %s", host);
}

/* "in train.py:6 read", "calls openat" */
static void put_there(const struct program_place *place, const char *in, struct buf *out)
{
    buf_printf(out, "%s%s", place->calls ? "" : in, place->where);
}

/* The place of the first one, for evidence that is none itself. */
static void put_where(const struct culprit_search *search, const char *before, struct buf *out)
{
    const struct culprit_rank *first = &search->ranks[search->odd.list[0]];
    if (first->place.where == NULL)
        return;
    buf_puts(out, before);
    if (search->odd.count > 1)
        buf_printf(out, "rank %d ", first->rank);
    put_there(&first->place, search->odd.count > 1 ? "is in " : "in ", out);
}

static const struct culprit_rank *first_odd(const struct culprit_search *search)
{
    return &search->ranks[search->odd.list[0]];
}

static bool is_odd(const struct culprit_search *search, int number)
{
    for (int i = 0; i < search->odd.count; i++) {
        if (search->odd.list[i] == number)
            return true;
    }
    return false;
}

/* Where more than a half of the others are, if that is known and not the same place. */
static void put_others(const struct culprit_search *search, struct buf *out)
{
    const struct culprit_rank *most = NULL;
    int votes = 0, count = 0;
    for (int i = 0; i < search->count; i++) {
        const struct culprit_rank *rank = &search->ranks[i];
        if (is_odd(search, i))
            continue;
        if (votes == 0)
            most = rank;
        votes += rank->place.key == most->place.key ? 1 : -1;
    }
    for (int i = 0; i < search->count && most != NULL; i++)
        count += !is_odd(search, i) && search->ranks[i].place.key == most->place.key;
    if (count < 2 || most->place.shared == NULL ||
        most->place.key == first_odd(search)->place.key ||
        2 * count <= search->count - search->odd.count)
        return;
    buf_printf(out, "; %d others%s %s", count, most->place.calls ? ":" : " are in",
               most->place.shared);
}

static bool is_same_place(const struct program_place *first, const struct program_place *second)
{
    return first->key == second->key && strcmp(first->where, second->where) == 0;
}

/* Those of the odd ones that are where this one is; none if an earlier one is there too. */
static int ranks_there(const struct culprit_search *search, int number, int *ranks)
{
    const struct program_place *place = &search->ranks[search->odd.list[number]].place;
    int count = 0;
    for (int i = 0; i < search->odd.count; i++) {
        const struct culprit_rank *rank = &search->ranks[search->odd.list[i]];
        if (!is_same_place(&rank->place, place))
            continue;
        if (i < number)
            return 0;
        ranks[count++] = rank->rank;
    }
    return count;
}

#define PLACES_SHOWN 4

/* One place for each group that stands out. */
static void put_places(const struct culprit_search *search, struct buf *out)
{
    int *ranks AUTO_FREE = mem_array((size_t)search->odd.count + 1, sizeof(*ranks)), shown = 0;
    for (int i = 0; i < search->odd.count; i++) {
        const struct program_place *place = &search->ranks[search->odd.list[i]].place;
        int count = ranks_there(search, i, ranks);
        if (count == search->odd.count) {
            put_there(place, "in ", out);
            return;
        }
        if (count == 0 || shown++ >= PLACES_SHOWN)
            continue;
        buf_puts(out, shown > 1 ? ", " : "");
        rank_ranges(ranks, count, out);
        buf_putc(out, ' ');
        put_there(place, count == 1 ? "is in " : "are in ", out);
    }
    buf_puts(out, shown > PLACES_SHOWN ? ", ..." : "");
}

/* All are in calls of MPI, which may not fit together. */
static void put_calls(struct culprit_search *search, struct buf *out)
{
    bool known = search->count > 0, same = true;
    search->odd.count = 0;
    for (int i = 0; i < search->count; i++) {
        known = known && search->ranks[i].place.mpi && search->ranks[i].place.where != NULL;
        same = known && same && is_same_place(&search->ranks[0].place, &search->ranks[i].place);
        search->odd.list[search->odd.count++] = i;
    }
    if (!known)
        return;
    buf_puts(out, !same ? ": " : search->count > 1 ? ": all are " : ": it is ");
    put_places(search, out);
}

static void put_place(const struct culprit_search *search, struct buf *out)
{
    put_odd(search, out);
    buf_puts(out, search->odd.count == 1 ? " is elsewhere: " : " are elsewhere: ");
    put_places(search, out);
    put_others(search, out);
}

static void put_absent(const struct culprit_search *search, struct buf *out)
{
    const struct culprit_rank *other = &search->ranks[search->odd.other];
    put_odd(search, out);
    buf_puts(out, " is elsewhere: ");
    put_there(&first_odd(search)->place, "in ", out);
    buf_printf(out, "; rank %d waits in %s", other->rank, other->place.where);
}

/* "rank 2 on b is stopped (SIGSTOP)" */
static void put_held(const struct culprit_search *search, struct buf *out)
{
    const struct culprit_rank *first = first_odd(search);
    put_odd(search, out);
    if (first->place.held_below)
        buf_printf(out,
                   search->odd.count == 1 ? ": a child process of it is %s"
                                          : ": child processes of them are %s",
                   first->place.held);
    else
        buf_printf(out, " %s %s", search->odd.count == 1 ? "is" : "are", first->place.held);
}

static void put_ended(const struct culprit_search *search, struct buf *out)
{
    const struct culprit_ended *ended = search->ended;
    rank_ranges(ended->ranks, ended->count, out);
    if (ended->count == 1 && ended->host != NULL)
        buf_printf(out, " on %s", ended->host);
    buf_printf(out, " %s ended with status 0, and the others have not",
               ended->count == 1 ? "has" : "have");
}

static void put_way(const struct culprit_search *search, struct buf *out)
{
    bool spins = first_odd(search)->way == HANG_SPINS;
    put_odd(search, out);
    buf_printf(out,
               spins ? " use%s the processor, and the others wait"
                     : " wait%s, and the others use the processor",
               search->odd.count == 1 ? "s" : "");
    put_where(search, ": ", out);
}

static void put_behind(const struct culprit_search *search, struct buf *out)
{
    put_odd(search, out);
    buf_printf(out, " %s behind: the last enqueued work is %lld, and that of others %lld",
               search->odd.count == 1 ? "is" : "are", (long long)first_odd(search)->enqueued,
               (long long)search->ranks[search->odd.other].enqueued);
    put_where(search, "; ", out);
    put_others(search, out);
}

static void put_silent(const struct culprit_search *search, struct buf *out)
{
    int64_t earlier = search->ranks[search->odd.other].last_ns - first_odd(search)->last_ns;
    put_odd(search, out);
    buf_printf(out, " wrote its last line %lld s before all others",
               (long long)(earlier / 1000000000));
    put_where(search, "; ", out);
    put_others(search, out);
}

/* "128,801" */
static void put_number(int64_t number, struct buf *out)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    for (int i = 0; i < length; i++)
        buf_printf(out, i > 0 && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
}

static void put_launched(const struct culprit_search *search, struct buf *out)
{
    put_odd(search, out);
    buf_printf(out, " %s behind: ", search->odd.count == 1 ? "is" : "are");
    put_number(first_odd(search)->launched, out);
    buf_puts(out, " of ");
    put_number(search->ranks[search->odd.other].launched, out);
    buf_printf(out, " %s", first_odd(search)->operation);
    put_where(search, "; ", out);
    put_others(search, out);
}

static void put_stall(const struct culprit_search *search, struct buf *out)
{
    buf_puts(out, search->stall->text);
    if (search->odd.count == 0)
        return;
    const struct culprit_rank *first = first_odd(search);
    buf_printf(out, "; rank %d is on %s", first->rank, first->host);
    if (first->place.where == NULL)
        return;
    buf_puts(out, ", ");
    put_there(&first->place, "in ", out);
}

static const struct culprit_sign evidence[] = {
    {CULPRIT_HELD, odd_held, put_held, 0},
    {CULPRIT_LAUNCHED, odd_lowest, put_launched, offsetof(struct culprit_rank, launched)},
    {CULPRIT_STALL, odd_stalled, put_stall, 0},
    {CULPRIT_BEHIND, odd_lowest, put_behind, offsetof(struct culprit_rank, enqueued)},
    {CULPRIT_PLACE, odd_place, put_place, 0},
    {CULPRIT_ABSENT, odd_absent, put_absent, 0},
    {CULPRIT_WAY, odd_way, put_way, 0},
    {CULPRIT_ENDED, odd_ended, put_ended, 0},
    {CULPRIT_SILENT, odd_silent, put_silent, 0},
};

/* All that stand out are on its host. */
static int rank_to_blame(const struct culprit_search *search)
{
    if (search->odd.count == 0 || first_odd(search)->host == NULL)
        return -1;
    for (int i = 1; i < search->odd.count; i++) {
        if (strcmp(search->ranks[search->odd.list[i]].host, first_odd(search)->host) != 0)
            return -1;
    }
    return first_odd(search)->rank;
}

static int by_rank(const void *a, const void *b)
{
    const struct culprit_rank *first = a, *second = b;
    return first->rank < second->rank ? -1 : first->rank > second->rank;
}

struct culprit culprit_find(struct culprit_rank *ranks, int count,
                            const struct culprit_stall *stall, const struct culprit_ended *ended,
                            struct buf *out)
{
    struct culprit_search search = {.ranks = ranks, .count = count, .stall = stall, .ended = ended};
    struct culprit culprit = {CULPRIT_NONE, -1};
    if (count > 1)
        qsort(ranks, (size_t)count, sizeof(*ranks), by_rank);
    search.odd.list = mem_array((size_t)count + 1, sizeof(*search.odd.list));
    for (size_t i = 0; i < sizeof(evidence) / sizeof(evidence[0]); i++) {
        search.sign = &evidence[i];
        if (!search.sign->find(&search))
            continue;
        search.sign->put(&search, out);
        culprit = (struct culprit){search.sign->kind, rank_to_blame(&search)};
        break;
    }
    if (culprit.kind == CULPRIT_NONE) {
        buf_puts(out, "no rank stands out");
        put_calls(&search, out);
    }
    free(search.odd.list);
    return culprit;
}
