/* SPDX-License-Identifier: Apache-2.0 */
/* What the root keeps of tensors: entries, and the numbers of the cache. */
#pragma once

#include "base/buf.h"
#include "core/bits.h"
#include "core/cache.h"
#include "core/config.h"

/*
 * An entry of the root's table: a request that some ranks have submitted and others have not. The
 * request of the first rank is the measure for the others.
 */
struct entry {
    size_t id; /* of the tensor in the cache; NO_ID: it has none */
    struct request request;
    bool borrowed;          /* the request's memory is that of the cache */
    struct request other;   /* of the first rank that disagrees; key NULL: none does */
    const char *difference; /* what it disagrees about */
    struct bits have;       /* set ranks that have submitted it */
    struct bits others;     /* those whose request is that of `other` */
    struct bits apart;      /* those whose request is neither that of `other` nor the first one */
    int64_t since_ns, warned_ns;
    uint64_t ready; /* 0: not all ranks have submitted it; else its number among those that were */
    struct entry *next, *previous; /* in the order of their coming */
};

/* Copies the request if it is borrowed: the cache is about to change. */
void entry_own(struct entry *entry);
void entry_add(struct entry *entry, int rank, const struct request *request);

/* The error of an entry that all ranks have submitted. Appends nothing if it has none. */
void entry_describe_error(const struct entry *entry, const struct bits *joined,
                          const struct core_config *config, struct buf *out);

/* Appends the global numbers of set ranks: "rank 3", "ranks 0 and 2", "ranks 0, 1 and 2". */
void entry_describe_ranks(const struct bits *which, const struct core_config *config,
                          struct buf *out);

/*
 * The root's table of entries. Those of a tensor that has a number in the cache are found by the
 * number, all others by their key. While an entry exists, a number keeps its tensor
 * (see struct numbers), so the entry may borrow the request of the cache.
 */
struct entries {
    struct map by_key;          /* without a number -> struct entry */
    struct entry **by_id;       /* with one */
    struct entry *first, *last; /* all, in the order of their coming */
    struct entry *spare;        /* for later use: a list */
};

void entries_init(struct entries *entries, size_t capacity);
void entries_destroy(struct entries *entries);

/* `id` is the number of the tensor in the cache, or NO_ID. NULL: there is not such an entry. */
struct entry *entries_find(const struct entries *entries, size_t id, const char *key);

/* `borrowed`: the request is that of the cache. */
struct entry *entries_add(struct entries *entries, size_t id, const struct request *request,
                          bool borrowed, int64_t now_ns);
void entries_remove(struct entries *entries, struct entry *entry);

/*
 * The cache as the root sees it: which number means what, and when a number may get another
 * meaning.
 *
 * All members change their caches with the root's decisions, but a report may have been sent
 * before. So a number that is taken from a tensor first *leaves*. The root asks members to forget
 * it, and it keeps its meaning here until every member has seen that decision. The least recently
 * used tensors leave, a few at a time.
 */
struct numbers {
    struct cache cache;
    uint64_t *used;      /* for each number, the last decision that had it */
    struct bits leaving; /* numbers that leave */
    uint64_t left_at;    /* the decision that made the members forget them */
    bool wanted;         /* a tensor did not get a number, because all are in use */
};

void numbers_init(struct numbers *numbers, size_t capacity);
void numbers_destroy(struct numbers *numbers);

/* The number of a tensor, or NO_ID. The members may have other values for it. */
size_t numbers_find(const struct numbers *numbers, const char *key);

/* Whether the members know this request under the number `id` (or NO_ID). `now` is the number of
 * the decision that uses it. */
bool numbers_known(struct numbers *numbers, size_t id, const struct request *request, uint64_t now);

/* A number for a tensor that the members do not know; SIZE_MAX: it gets none. */
size_t numbers_assign(struct numbers *numbers, const struct request *request, uint64_t now);

/* Ends the leaving if each member has seen decision `seen`, unless a number is in `entries`. */
void numbers_reclaim(struct numbers *numbers, uint64_t seen, const struct entries *entries);

/* Chooses numbers that leave with decision `now`, if some are wanted and none leaves. They are not
 * in `entries`, and decision `now` has not used them. False: none leaves; else they are `leaving`.
 */
bool numbers_make_room(struct numbers *numbers, uint64_t now, const struct entries *entries);
