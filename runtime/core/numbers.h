/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache as the root sees it: which number means what, and when a number may get another
 * meaning.
 *
 * All members change their caches with the root's decisions, but a report may have been sent
 * before. So a number that is taken from a tensor first *leaves*. The root asks members to forget
 * it, and it keeps its meaning here until every member has seen that decision. The least recently
 * used tensors leave, a few at a time.
 */
#pragma once

#include "core/bits.h"
#include "core/cache.h"
#include "core/entries.h"

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
