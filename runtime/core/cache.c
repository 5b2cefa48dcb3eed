/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- Numbers of requests --------------------------------------------------------------------- */

void cache_init(struct cache *cache, size_t capacity)
{
    *cache =
        (struct cache){.slots = mem_array(capacity, sizeof *cache->slots), .capacity = capacity};
    for (size_t id = 0; id < capacity; id++)
        cache->slots[id].id = id;
}

void cache_destroy(struct cache *cache)
{
    for (size_t id = 0; id < cache->capacity; id++)
        request_destroy(&cache->slots[id].request);
    free(cache->slots);
    map_clear(&cache->by_key, NULL);
    *cache = (struct cache){0};
}

const struct cache_slot *cache_find(const struct cache *cache, const char *key)
{
    return map_get(&cache->by_key, map_text(key));
}

const struct request *cache_get(const struct cache *cache, size_t id)
{
    bool used = id < cache->capacity && cache->slots[id].request.key != NULL;
    return used ? &cache->slots[id].request : NULL;
}

void cache_drop(struct cache *cache, size_t id)
{
    if (cache_get(cache, id) == NULL)
        return;
    map_remove(&cache->by_key, map_text(cache->slots[id].request.key));
    request_destroy(&cache->slots[id].request);
}

void cache_put(struct cache *cache, size_t id, const struct request *request)
{
    struct request copy = request_copy(request); /* it may be that of the slot */
    const struct cache_slot *old = cache_find(cache, copy.key);
    if (old != NULL)
        cache_drop(cache, old->id);
    cache_drop(cache, id);
    cache->slots[id].request = copy;
    map_put(&cache->by_key, map_text(copy.key), &cache->slots[id]);
}

size_t cache_free_id(const struct cache *cache)
{
    if (cache->by_key.count == cache->capacity)
        return SIZE_MAX;
    for (size_t id = 0; id < cache->capacity; id++)
        if (cache->slots[id].request.key == NULL)
            return id;
    return SIZE_MAX;
}

/* ---- The plan -------------------------------------------------------------------------------- */

enum { REPEATS_NEEDED = 2 };

void step_plan_destroy(struct step_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        bits_destroy(&plan->groups[i]);
    free(plan->groups);
    bits_destroy(&plan->all);
    *plan = (struct step_plan){0};
}

void step_plan_add(struct step_plan *plan, const struct bits *group)
{
    struct bits *copy = &MEM_ADD_ROOM(plan->groups, plan->count, plan->room);
    *copy = (struct bits){0};
    bits_copy(copy, group);
    bits_add(&plan->all, group);
}

const struct bits *step_plan_group(const struct step_plan *plan, size_t id)
{
    for (size_t i = 0; i < plan->count && bits_test(&plan->all, id); i++)
        if (bits_test(&plan->groups[i], id))
            return &plan->groups[i];
    return NULL;
}

void learner_destroy(struct learner *learner)
{
    step_plan_destroy(&learner->step);
    bits_destroy(&learner->previous);
    learner->repeats = 0;
}

static size_t join(const struct learner *learner, struct step_plan *plan)
{
    for (size_t i = 0; i < learner->step.count; i++)
        step_plan_add(plan, &learner->step.groups[i]);
    return learner->step.count;
}

size_t learner_run(struct learner *learner, const struct bits *group, struct step_plan *plan)
{
    if (bits_meet(&plan->all, group))
        return 0;
    if (bits_meet(&learner->step.all, group)) { /* the next step begins */
        bool same = bits_equal(&learner->step.all, &learner->previous);
        learner->repeats = same ? learner->repeats + 1 : 0;
        if (learner->repeats >= REPEATS_NEEDED) {
            size_t learned = join(learner, plan);
            learner_destroy(learner);
            return learned;
        }
        bits_copy(&learner->previous, &learner->step.all);
        step_plan_destroy(&learner->step);
    }
    step_plan_add(&learner->step, group);
    return 0;
}
