/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a process set keep of earlier steps: numbers for requests, and a plan. */
#pragma once

#include "base/map.h"
#include "core/bits.h"
#include "core/request.h"

/* The response cache: numbers for requests that ranks have agreed on. All ranks change it in the
 * same order, so it is the same on all of them. */
struct cache_slot {
    struct request request; /* key NULL: free */
    size_t id;              /* the slot's own number */
};

struct cache {
    struct cache_slot *slots;
    size_t capacity;
    struct map by_key; /* -> struct cache_slot */
};

void cache_init(struct cache *cache, size_t capacity);
void cache_destroy(struct cache *cache);

/* NULL: it is not there. Borrowed until the slot changes. */
const struct cache_slot *cache_find(const struct cache *cache, const char *key);
const struct request *cache_get(const struct cache *cache, size_t id);

/* Copies the request. What had this key or number before is gone. */
void cache_put(struct cache *cache, size_t id, const struct request *request);
void cache_drop(struct cache *cache, size_t id);

/* SIZE_MAX: all are in use. */
size_t cache_free_id(const struct cache *cache);

/*
 * The plan of training steps: the groups of tensors that run together, as numbers of the cache.
 *
 * The root learns it. A step ends when a tensor comes that the step already had. If a step has the
 * same tensors as the two steps before it, its groups join the plan. From then on, members report a
 * group at once when they have all its tensors, and hold back its tensors until then. The plan is
 * only advice about when to report: without it, or with a wrong one, the same operations run.
 *
 * What is in the plan is not learned again, and does not keep other tensors from being learned. A
 * program may have steps of several kinds.
 */
struct step_plan {
    struct bits *groups; /* disjoint */
    size_t count, room;
    struct bits all; /* of all groups */
};

void step_plan_destroy(struct step_plan *plan); /* leaves an empty plan */
void step_plan_add(struct step_plan *plan, const struct bits *group);
/* The group of a number; NULL: it is not in the plan. Borrowed. */
const struct bits *step_plan_group(const struct step_plan *plan, size_t id);

struct learner {
    struct step_plan step; /* the groups of the current step */
    struct bits previous;  /* the tensors of the step before */
    int repeats;           /* how often in a row a step had the tensors of the one before */
};

void learner_destroy(struct learner *learner); /* it may begin again */

/* A group runs. Returns how many groups of the step before it have joined the end of `plan`. */
size_t learner_run(struct learner *learner, const struct bits *group, struct step_plan *plan);
