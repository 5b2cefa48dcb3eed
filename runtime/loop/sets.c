/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LANE_SHIFT 32 /* above the numbers of sets, in those of communicators */

/* ---- The ranks of a set ---------------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int *members_sorted(const int32_t *ranks, int32_t count, int size, struct error *err)
{
    if (ranks == NULL || count < 1 || count > size) {
        error_set(err, "a process set has 1 to %d ranks, and not %d", size, count);
        return NULL;
    }
    int *sorted = mem_array((size_t)count, sizeof *sorted);
    for (int32_t i = 0; i < count; i++)
        sorted[i] = ranks[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    for (int32_t i = 0; i < count; i++) {
        bool twice = i > 0 && sorted[i] == sorted[i - 1];
        if (!twice && sorted[i] >= 0 && sorted[i] < size)
            continue;
        error_set(err, "the rank %d of a process set %s", sorted[i],
                  twice ? "occurs twice" : "is not in the job");
        free(sorted);
        return NULL;
    }
    return sorted;
}

int *members_all(int size)
{
    int *ranks = mem_array((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    return ranks;
}

/* ---- Sets that the ranks have given ---------------------------------------------------------- */

const int32_t *given_sets_of(const struct given_sets *given, int32_t rank)
{
    const int32_t *at = given->ranks;
    for (int32_t i = 0; i < rank; i++)
        at += given->counts[i];
    return at;
}

static bool has(const int32_t *set, int64_t count, int32_t member)
{
    for (int64_t i = 0; i < count; i++)
        if (set[i] == member)
            return true;
    return false;
}

static int another(int32_t rank, int32_t member, struct error *err)
{
    return error_set(err, "the communicator of rank %d has rank %d, which gave another one", rank,
                     member);
}

/* Each set is compared with that of its first member only. So the work grows with the length of
 * the sets, and not with its square. */
int given_sets_check(const struct given_sets *given, struct error *err)
{
    const int64_t *counts = given->counts;
    int64_t *at AUTO_FREE = mem_array((size_t)given->size, sizeof *at);
    for (int32_t rank = 1; rank < given->size; rank++)
        at[rank] = at[rank - 1] + counts[rank - 1];
    for (int32_t rank = 0; rank < given->size; rank++) {
        if (counts[rank] == 0)
            continue;
        const int32_t *set = given->ranks + at[rank];
        int32_t first = set[0];
        if (!has(set, counts[rank], rank))
            return error_set(err, "rank %d is not in the communicator that it gave", rank);
        if (counts[first] != counts[rank] ||
            memcmp(given->ranks + at[first], set, (size_t)counts[rank] * sizeof *set) != 0)
            return another(rank, first, err);
        for (int64_t i = 0; i < counts[rank]; i++)
            if (counts[set[i]] == 0 || given->ranks[at[set[i]]] != first)
                return another(rank, set[i], err);
    }
    return 0;
}

const int32_t *given_sets_first(const struct given_sets *given, int32_t rank)
{
    const int32_t *set = given_sets_of(given, rank);
    return given->counts[rank] > 0 && set[0] == rank ? set : NULL;
}

/* ---- The list -------------------------------------------------------------------------------- */

void sets_init(struct sets *sets)
{
    *sets = (struct sets){.count = 0};
    pthread_mutex_init(&sets->lock, NULL);
}

void sets_destroy(struct sets *sets)
{
    for (int32_t i = 0; i < sets->count; i++)
        set_release(sets->items[i]);
    free(sets->items);
    pthread_mutex_destroy(&sets->lock);
}

/* The number of the set of exactly these ranks, ascending; -1: there is none. */
static int32_t sets_of_ranks(struct sets *sets, const int *ranks, int count)
{
    int32_t found = -1;
    pthread_mutex_lock(&sets->lock);
    for (int32_t i = 0; i < sets->count && found < 0; i++)
        if (sets->items[i]->count == count &&
            memcmp(sets->items[i]->ranks, ranks, (size_t)count * sizeof *ranks) == 0)
            found = sets->items[i]->id;
    pthread_mutex_unlock(&sets->lock);
    return found;
}

static int32_t sets_take_number(struct sets *sets)
{
    pthread_mutex_lock(&sets->lock);
    int32_t number = sets->next++;
    pthread_mutex_unlock(&sets->lock);
    return number;
}

static void sets_add_take(struct sets *sets, struct process_set *set)
{
    pthread_mutex_lock(&sets->lock);
    sets->items =
        mem_one_more(sets->items, (size_t)sets->count, &sets->room, sizeof(struct process_set *));
    sets->items[sets->count++] = set;
    pthread_mutex_unlock(&sets->lock);
}

/* With the lock held. `count`: there is not such a set. */
static int32_t find(const struct sets *sets, int32_t id)
{
    int32_t i = 0;
    while (i < sets->count && sets->items[i]->id != id)
        i++;
    return i;
}

struct process_set *sets_hold(struct sets *sets, int32_t id)
{
    pthread_mutex_lock(&sets->lock);
    int32_t at = find(sets, id);
    struct process_set *set = at < sets->count ? set_hold(sets->items[at]) : NULL;
    pthread_mutex_unlock(&sets->lock);
    return set;
}

static struct process_set *sets_remove(struct sets *sets, int32_t id)
{
    struct process_set *set = NULL;
    pthread_mutex_lock(&sets->lock);
    int32_t at = find(sets, id);
    if (at < sets->count) {
        set = sets->items[at];
        sets->count--;
        memmove(&sets->items[at], &sets->items[at + 1],
                (size_t)(sets->count - at) * sizeof(struct process_set *));
    }
    pthread_mutex_unlock(&sets->lock);
    return set;
}

int32_t sets_ids(struct sets *sets, int32_t *ids, int32_t room)
{
    pthread_mutex_lock(&sets->lock);
    int32_t count = sets->count;
    for (int32_t i = 0; i < count && i < room; i++)
        ids[i] = sets->items[i]->id;
    pthread_mutex_unlock(&sets->lock);
    return count;
}

void sets_each(struct sets *sets, void (*each)(void *context, struct process_set *set),
               void *context)
{
    pthread_mutex_lock(&sets->lock);
    for (int32_t i = 0; i < sets->count; i++)
        each(context, sets->items[i]);
    pthread_mutex_unlock(&sets->lock);
}

/* ---- Making and removing --------------------------------------------------------------------- */

static void destroy_comms(const struct set_maker *maker, struct engine_comm **comms)
{
    pthread_mutex_lock(maker->comm_lock);
    for (int lane = 0; lane < ENGINE_LANES_MAX; lane++)
        maker->engine->comm_destroy(comms[lane]);
    pthread_mutex_unlock(maker->comm_lock);
}

/* Makes those communicators of a set that are missing. */
static enum hvd_status make_comms(const struct set_maker *maker, const struct process_set *set,
                                  struct engine_comm **comms, struct error *err)
{
    enum hvd_status status = HVD_OK;
    pthread_mutex_lock(maker->comm_lock);
    for (int lane = 0; lane < maker->engine->lanes && status == HVD_OK; lane++)
        if (comms[lane] == NULL)
            status = maker->engine->comm_create(maker->engine_world,
                                                (uint64_t)lane << LANE_SHIFT | (uint64_t)set->id,
                                                set->ranks, set->count, &comms[lane], err);
    pthread_mutex_unlock(maker->comm_lock);
    if (status != HVD_OK)
        destroy_comms(maker, comms);
    return status;
}

void set_maker_end(const struct set_maker *maker, struct process_set *set)
{
    struct engine_comm *comms[ENGINE_LANES_MAX];
    set_stop(set);
    for (int lane = 0; lane < ENGINE_LANES_MAX; lane++)
        comms[lane] = executor_take_comm(&set->executor, lane);
    destroy_comms(maker, comms);
}

/* Members make the communicators and start the threads; others have nothing to do. `comm`: that of
 * the first lane, which it takes; NULL: not made yet. */
static enum hvd_status start(const struct set_maker *maker, struct process_set *set,
                             struct engine_comm *comm, struct error *err)
{
    struct engine_comm *comms[ENGINE_LANES_MAX] = {comm};
    if (set->rank < 0)
        return HVD_OK;
    enum hvd_status status = make_comms(maker, set, comms, err);
    if (status != HVD_OK)
        return status;
    status = set_start(set, comms, err);
    if (status != HVD_OK)
        set_maker_end(maker, set);
    return status;
}

enum hvd_status set_maker_first(const struct set_maker *maker, struct engine_comm *comm,
                                struct error *err)
{
    int size = maker->place->size;
    int *ranks AUTO_FREE = members_all(size);
    struct process_set *all = set_create(maker, sets_take_number(maker->sets), ranks, size);
    sets_add_take(maker->sets, all);
    return start(maker, all, comm, err);
}

enum hvd_status set_maker_static(const struct set_maker *maker, const struct hvd_ranks *wanted,
                                 struct error *err)
{
    int *ranks AUTO_FREE = members_sorted(wanted->ranks, wanted->count, maker->place->size, err);
    if (ranks == NULL)
        return HVD_ERR_ARGUMENT;
    if (sets_of_ranks(maker->sets, ranks, wanted->count) >= 0) {
        error_set(err, "two process sets have the same ranks, or one has all ranks of the job");
        return HVD_ERR_SET_EXISTS;
    }
    struct process_set *set =
        set_create(maker, sets_take_number(maker->sets), ranks, wanted->count);
    enum hvd_status status = start(maker, set, NULL, err);
    if (status == HVD_OK)
        sets_add_take(maker->sets, set);
    else
        set_release(set);
    return status;
}

static int *ranks_of(const struct request *request)
{
    int *ranks = mem_array((size_t)request->dims, sizeof *ranks);
    for (int32_t i = 0; i < request->dims; i++)
        ranks[i] = (int)request->shape[i];
    return ranks;
}

/* Whether all ranks of the job could do their part. */
static enum hvd_status agree_on_start(const struct set_maker *maker, enum hvd_status status,
                                      struct error *err)
{
    const char *problem = status == HVD_OK ? "" : err->text;
    int failed = -1;
    struct process_set *all = sets_hold(maker->sets, 0);
    const struct message_set ranks = {maker->engine, all->executor.lanes[0].runner.comm,
                                      maker->place->rank, maker->place->size,
                                      maker->setup->timeout_ms};
    if (status == HVD_OK || status == HVD_ERR_MEMORY)
        status = messages_agree(&ranks, problem, &failed, err);
    set_release(all);
    if (status != HVD_OK || failed < 0)
        return status;
    error_wrap(err, "rank %d could not make the process set", failed);
    return HVD_ERR_ENGINE;
}

/* The members' result counts for all ranks: a set that one of them could not make does not exist.
 */
static enum hvd_status add(const struct set_maker *maker, const struct request *request,
                           struct outcome *outcome, struct error *err)
{
    int *ranks AUTO_FREE = ranks_of(request);
    outcome->number = sets_of_ranks(maker->sets, ranks, request->dims);
    if (outcome->number >= 0) {
        outcome->status = HVD_ERR_SET_EXISTS;
        outcome->text = "a process set with these ranks exists";
        return HVD_OK;
    }
    outcome->number = sets_take_number(maker->sets);
    struct process_set *set = set_create(maker, outcome->number, ranks, request->dims);
    enum hvd_status status = agree_on_start(maker, start(maker, set, NULL, err), err);
    if (status == HVD_OK) {
        sets_add_take(maker->sets, set);
        return HVD_OK;
    }
    maker->owner->lost(maker->owner->context, status, err->text);
    set_ring(set); /* its thread may run already, and nobody else knows it */
    set_maker_end(maker, set);
    set_release(set);
    outcome->status = status;
    outcome->text = err->text;
    return status;
}

static enum hvd_status leave(const struct set_maker *maker, int32_t id, struct outcome *outcome)
{
    struct process_set *set = sets_remove(maker->sets, id);
    if (set == NULL) {
        outcome->status = HVD_ERR_UNKNOWN_SET;
        outcome->text = "there is not a process set with this number";
        return HVD_OK;
    }
    set_leave(set, HVD_ERR_UNKNOWN_SET);
    set_maker_end(maker, set);
    set_release(set);
    return HVD_OK;
}

enum hvd_status set_maker_change(const struct set_maker *maker, const struct request *request,
                                 struct outcome *outcome, struct error *err)
{
    return request->kind == KIND_ADD_SET ? add(maker, request, outcome, err)
                                         : leave(maker, request->root, outcome);
}
