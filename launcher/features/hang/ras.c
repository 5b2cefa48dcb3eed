/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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
            MEM_ADD(seen, seen_count) = comm;
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

static bool ends_value(char byte)
{
    return isalnum((unsigned char)byte) || byte == '"' || byte == '}' || byte == ']';
}

/* A string can follow a value only behind a comma. */
static void put_commas(const char *text, size_t length, struct buf *out)
{
    bool inside = false;
    char last = '{';
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (!inside && byte == '"' && ends_value(last))
            buf_putc(out, ',');
        if (inside && byte == '\\' && i + 1 < length) {
            buf_putc(out, byte);
            byte = text[++i];
        } else if (byte == '"') {
            inside = !inside;
        }
        buf_putc(out, byte);
        last = isspace((unsigned char)byte) ? last : byte;
    }
}

static void take_counts(const json_t *counts, struct ras_place *out)
{
    static const char *const keys[] = {
#define RAS_KEY(name, key, plural) key,
        RAS_OPERATION_LIST(RAS_KEY)
#undef RAS_KEY
    };
    for (size_t i = 0; i < RAS_OPERATIONS; i++) {
        json_int_t count = json_integer_value(json_object_get(counts, keys[i]));
        out->counts[i] = count > 0 ? count : 0;
    }
}

/* A number like "0x58860ee4db018a99". */
static uint64_t hash_of(const json_t *comm, const char *key)
{
    const char *text = json_string_value(json_object_get(comm, key));
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

static void take_rank(const json_t *rank, uint64_t comm, struct ras_report *out)
{
    const json_t *counts = json_object_get(rank, "collective_counts");
    const char *host = json_string_value(json_object_get(rank, "host"));
    if (!json_is_object(counts) || host == NULL || out->count == RAS_ENTRIES_MAX)
        return;
    struct ras_entry *entry = &MEM_ADD(out->entries, out->count);
    *entry = (struct ras_entry){.place.comm = comm,
                                .pid = json_integer_value(json_object_get(rank, "pid"))};
    if (strlen(host) < sizeof(entry->host))
        memcpy(entry->host, host, strlen(host));
    take_counts(counts, &entry->place);
}

int ras_json_read(const char *text, size_t length, struct ras_report *out, struct error *err)
{
    struct buf repaired AUTO_BUF = BUF_INIT(2 * RAS_JSON_MAX);
    const char *begin = memchr(text, '{', length);
    json_error_t why;
    *out = (struct ras_report){.count = 0};
    if (begin == NULL || length > RAS_JSON_MAX)
        return error_set(err, "the answer of NCCL's RAS is not JSON");
    put_commas(begin, length - (size_t)(begin - text), &repaired);
    json_t *root = json_loadb(buf_text(&repaired), repaired.length, JSON_DISABLE_EOF_CHECK, &why);
    if (root == NULL && json_error_code(&why) == json_error_out_of_memory)
        mem_exhausted();
    const json_t *comms = json_object_get(root, "communicators");
    bool right = json_is_array(comms);
    for (size_t i = 0; i < json_array_size(comms); i++) {
        const json_t *comm = json_array_get(comms, i), *ranks = json_object_get(comm, "ranks");
        uint64_t hash = hash_of(comm, "hash") * 0x100000001b3 ^ hash_of(comm, "secondary_hash");
        for (size_t j = 0; j < json_array_size(ranks); j++)
            take_rank(json_array_get(ranks, j), hash, out);
    }
    json_decref(root);
    return right ? 0 : error_set(err, "the answer of NCCL's RAS has no communicators");
}

void ras_report_clear(struct ras_report *report)
{
    free(report->entries);
    *report = (struct ras_report){.count = 0};
}
