/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras.h"

#include <stdlib.h>

#include "base/mem.h"

/* All ranks of the job in one communicator, with one operation. */
struct column {
    const struct ras_rank *ranks;
    size_t count;
    uint64_t comm;
    int operation;
};

/* -1: the rank is not in the communicator. */
static int64_t launched_of(const struct column *column, size_t rank)
{
    const struct ras_rank *of = &column->ranks[rank];
    for (size_t i = 0; i < of->count; i++) {
        if (of->places[i].comm == column->comm)
            return of->places[i].counts[column->operation];
    }
    return -1;
}

struct launched_range {
    int64_t least, most;
};

static struct launched_range range_of(const struct column *column)
{
    struct launched_range range = {INT64_MAX, -1};
    for (size_t i = 0; i < column->count; i++) {
        int64_t launched = launched_of(column, i);
        if (launched < 0)
            continue;
        range.least = launched < range.least ? launched : range.least;
        range.most = launched > range.most ? launched : range.most;
    }
    return range;
}

/* Calls `each` for every operation of every communicator; one that many ranks are in comes as
 * often. */
static void each_column(const struct ras_rank *ranks, size_t count,
                        void (*each)(void *context, const struct column *column), void *context)
{
    uint64_t *seen AUTO_FREE = NULL;
    size_t seen_count = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ranks[i].count; j++) {
            uint64_t comm = ranks[i].places[j].comm;
            bool known = false;
            for (size_t k = 0; k < seen_count && !known; k++)
                known = seen[k] == comm;
            if (known)
                continue;
            seen = mem_resize_array(seen, seen_count + 1, sizeof(*seen));
            seen[seen_count++] = comm;
            for (int operation = 0; operation < RAS_OPERATIONS; operation++)
                each(context, &(struct column){ranks, count, comm, operation});
        }
    }
}

/* By rank. */
struct sides {
    bool *behind, *ahead;
};

static void take_sides(void *context, const struct column *column)
{
    const struct sides *sides = context;
    struct launched_range range = range_of(column);
    for (size_t i = 0; i < column->count; i++) {
        int64_t launched = launched_of(column, i);
        if (launched < 0 || range.least == range.most)
            continue;
        sides->behind[i] = sides->behind[i] || launched < range.most;
        sides->ahead[i] = sides->ahead[i] || launched > range.least;
    }
}

struct culprit_choice {
    const struct sides *sides;
    bool found;
    struct column column;
};

static bool is_culprit(const struct sides *sides, size_t rank)
{
    return sides->behind[rank] && !sides->ahead[rank];
}

/* The first column in which a culprit is behind. */
static void choose(void *context, const struct column *column)
{
    struct culprit_choice *choice = context;
    int64_t most = range_of(column).most;
    for (size_t i = 0; i < column->count && !choice->found; i++) {
        int64_t launched = launched_of(column, i);
        if (launched < 0 || launched == most || !is_culprit(choice->sides, i))
            continue;
        choice->found = true;
        choice->column = *column;
    }
}

static const char *name_of(int operation)
{
    static const char *const names[] = {
#define RAS_PLURAL(name, key, plural) plural,
        RAS_OPERATION_LIST(RAS_PLURAL)
#undef RAS_PLURAL
    };
    return names[operation];
}

bool ras_find(const struct ras_rank *ranks, size_t count, struct ras_finding *finding,
              int64_t *launched)
{
    bool *behind AUTO_FREE = mem_array(count + 1, sizeof(*behind));
    bool *ahead AUTO_FREE = mem_array(count + 1, sizeof(*ahead));
    const struct sides sides = {behind, ahead};
    struct culprit_choice choice = {.sides = &sides};
    for (size_t i = 0; i < count; i++)
        launched[i] = -1;
    each_column(ranks, count, take_sides, (void *)&sides);
    each_column(ranks, count, choose, &choice);
    if (!choice.found)
        return false;
    int64_t most = range_of(&choice.column).most;
    *finding = (struct ras_finding){name_of(choice.column.operation), most};
    for (size_t i = 0; i < count; i++) {
        int64_t its = launched_of(&choice.column, i);
        launched[i] = its == most || is_culprit(&sides, i) ? its : -1;
    }
    return true;
}

uint64_t ras_mark(const struct ras_rank *rank)
{
    uint64_t mark = rank->count;
    for (size_t i = 0; i < rank->count; i++) {
        for (int operation = 0; operation < RAS_OPERATIONS; operation++)
            mark = mark * 0x100000001b3 + rank->places[i].comm +
                   (uint64_t)rank->places[i].counts[operation];
    }
    return mark;
}
