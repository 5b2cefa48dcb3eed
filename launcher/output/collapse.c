/* SPDX-License-Identifier: Apache-2.0 */
#include "output/collapse.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BUCKETS 512

/* A waiting line. Groups leave in the order in which they came, so the first of a bucket is always
 * the first to leave it. */
struct group {
    struct group *next;      /* in the queue */
    struct group *same_hash; /* in the bucket, younger */
    uint64_t sequence, hash;
    int64_t since_ms;
    int stream, count, first_rank;
    size_t length;
    char *text;
    uint64_t ranks[];
};

struct collapse {
    int ranks;
    int talking[2];     /* how many ranks will write to each of the two streams */
    uint64_t *ended[2]; /* bit sets of ranks, by stream */
    void (*emit)(void *context, const struct collapse_line *line);
    void *context;
    struct group *first, **end;
    struct group *bucket[BUCKETS];
    uint64_t *last; /* by rank: sequence of its last line */
    uint64_t next_sequence;
    size_t bytes;
    int count;
};

static size_t set_words(int ranks)
{
    return ((size_t)ranks + 63) / 64;
}

struct collapse *collapse_create(int ranks,
                                 void (*emit)(void *context, const struct collapse_line *line),
                                 void *context)
{
    struct collapse *collapse = mem_alloc(sizeof(*collapse));
    collapse->ranks = ranks;
    collapse->emit = emit;
    collapse->context = context;
    collapse->end = &collapse->first;
    collapse->last = mem_array((size_t)ranks, sizeof(*collapse->last));
    for (int i = 0; i < 2; i++)
        collapse->ended[i] = mem_array(set_words(ranks), sizeof(uint64_t));
    collapse->next_sequence = 1;
    return collapse;
}

static struct group *take_first(struct collapse *collapse)
{
    struct group *group = collapse->first;
    collapse->first = group->next;
    if (collapse->first == NULL)
        collapse->end = &collapse->first;
    collapse->bucket[group->hash % BUCKETS] = group->same_hash;
    collapse->bytes -= group->length;
    collapse->count--;
    return group;
}

void collapse_destroy(struct collapse *collapse)
{
    if (collapse == NULL)
        return;
    while (collapse->first != NULL)
        free(take_first(collapse));
    free(collapse->last);
    free(collapse->ended[0]);
    free(collapse->ended[1]);
    free(collapse);
}

static void emit_first(struct collapse *collapse)
{
    struct group *group = take_first(collapse);
    struct collapse_line line = {
        .stream = group->stream,
        .text = group->text,
        .length = group->length,
        .first_rank = group->first_rank,
        .count = group->count,
        .ranks = group->ranks,
    };
    collapse->emit(collapse->context, &line);
    free(group);
}

/* Has every rank that still talks said it? Ranks that have ended meanwhile do not count for those
 * that have not come yet. */
static bool is_complete(const struct collapse *collapse, const struct group *group)
{
    int talking = collapse->talking[group->stream];
    if (group->count < talking)
        return false;
    const uint64_t *ended = collapse->ended[group->stream];
    int still_talking = 0;
    for (size_t i = 0; i < set_words(collapse->ranks); i++)
        still_talking += __builtin_popcountll(group->ranks[i] & ~ended[i]);
    return still_talking >= talking;
}

static void emit_complete(struct collapse *collapse)
{
    while (collapse->first != NULL && is_complete(collapse, collapse->first))
        emit_first(collapse);
}

/* Eight bytes a step; good enough to tell lines apart, which are compared anyway. */
static uint64_t hash_of(int stream, const char *text, size_t length)
{
    uint64_t hash = (length << 1 | (uint64_t)stream) + 0x9E3779B97F4A7C15u;
    while (length > 0) {
        uint64_t word = 0;
        size_t part = length < sizeof(word) ? length : sizeof(word);
        memcpy(&word, text, part);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
        text += part;
        length -= part;
    }
    return hash;
}

static struct group *find(struct collapse *collapse, int rank, int stream, uint64_t hash,
                          const char *text, size_t length)
{
    struct group *group = collapse->bucket[hash % BUCKETS];
    for (; group != NULL; group = group->same_hash)
        if (group->sequence > collapse->last[rank] && group->hash == hash &&
            group->stream == stream && group->length == length &&
            memcmp(group->text, text, length) == 0)
            return group;
    return NULL;
}

static struct group *append(struct collapse *collapse, int stream, uint64_t hash, const char *text,
                            size_t length)
{
    size_t words = set_words(collapse->ranks);
    struct group *group = mem_alloc(sizeof(*group) + words * sizeof(uint64_t) + length);
    group->text = (char *)(group->ranks + words);
    memcpy(group->text, text, length);
    group->length = length;
    group->stream = stream;
    group->hash = hash;
    group->sequence = collapse->next_sequence++;
    group->first_rank = collapse->ranks;
    *collapse->end = group;
    collapse->end = &group->next;
    struct group **place = &collapse->bucket[hash % BUCKETS];
    while (*place != NULL)
        place = &(*place)->same_hash;
    *place = group;
    collapse->bytes += length;
    collapse->count++;
    return group;
}

void collapse_add(struct collapse *collapse, int rank, int stream, const char *text, size_t length,
                  int64_t now_ms)
{
    uint64_t hash = hash_of(stream, text, length);
    struct group *group = find(collapse, rank, stream, hash, text, length);
    if (group == NULL) {
        group = append(collapse, stream, hash, text, length);
        group->since_ms = now_ms;
    }
    group->ranks[rank / 64] |= (uint64_t)1 << (rank % 64);
    group->count++;
    if (rank < group->first_rank)
        group->first_rank = rank;
    collapse->last[rank] = group->sequence;
    emit_complete(collapse);
    while (collapse->bytes > COLLAPSE_BYTES || collapse->count > COLLAPSE_LINES)
        emit_first(collapse);
}

void collapse_flush_rank(struct collapse *collapse, int rank)
{
    while (collapse->first != NULL && collapse->first->sequence <= collapse->last[rank])
        emit_first(collapse);
}

void collapse_flush(struct collapse *collapse)
{
    while (collapse->first != NULL)
        emit_first(collapse);
}

void collapse_ended(struct collapse *collapse, int rank, int stream)
{
    uint64_t *word = &collapse->ended[stream][rank / 64];
    uint64_t bit = (uint64_t)1 << (rank % 64);
    if ((*word & bit) == 0 && collapse->talking[stream] > 0)
        collapse->talking[stream]--;
    *word |= bit;
    emit_complete(collapse);
}

static void *grow_words(void *words, size_t before, size_t after)
{
    uint64_t *grown = mem_resize_array(words, after, sizeof(*grown));
    memset(grown + before, 0, (after - before) * sizeof(*grown));
    return grown;
}

void collapse_grow(struct collapse *collapse, int ranks)
{
    if (ranks <= collapse->ranks)
        return;
    collapse_flush(collapse); /* the sets of waiting lines have the old size */
    if (ranks < collapse->ranks * 2)
        ranks = collapse->ranks * 2;
    size_t before = set_words(collapse->ranks);
    for (int i = 0; i < 2; i++)
        collapse->ended[i] = grow_words(collapse->ended[i], before, set_words(ranks));
    collapse->last = grow_words(collapse->last, (size_t)collapse->ranks, (size_t)ranks);
    collapse->ranks = ranks;
}

void collapse_joined(struct collapse *collapse, int rank, int stream)
{
    collapse->ended[stream][rank / 64] &= ~((uint64_t)1 << (rank % 64));
    collapse->talking[stream]++;
}

int64_t collapse_due_ms(const struct collapse *collapse)
{
    return collapse->first == NULL ? -1 : collapse->first->since_ms + COLLAPSE_MS;
}

void collapse_tick(struct collapse *collapse, int64_t now_ms)
{
    while (collapse->first != NULL && collapse->first->since_ms + COLLAPSE_MS <= now_ms)
        emit_first(collapse);
}

static bool has(const uint64_t *set, int rank)
{
    return (set[rank / 64] >> (rank % 64) & 1) != 0;
}

void collapse_ranks(const uint64_t *set, int ranks, struct buf *out)
{
    const char *comma = "";
    for (int rank = 0; rank < ranks; rank++) {
        if (!has(set, rank))
            continue;
        int last = rank;
        while (last + 1 < ranks && has(set, last + 1))
            last++;
        if (last == rank)
            buf_printf(out, "%s%d", comma, rank);
        else
            buf_printf(out, "%s%d-%d", comma, rank, last);
        comma = ",";
        rank = last;
    }
}
