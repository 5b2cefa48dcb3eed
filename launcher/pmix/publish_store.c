/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/publish_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"

struct published {
    struct published *next;
    struct store_owner owner; /* its namespace is owned, too */
    char *key;
    enum store_range range;
    enum store_keep keep;
    void *bytes;
    size_t length;
};

struct waiter {
    struct waiter *next;
    struct store_owner who; /* its namespace is owned */
    enum store_range range;
    struct strv keys;
    size_t wait_for;
    int64_t deadline_ms;
    store_answer_fn *answer;
    void *context;
};

struct publish_store {
    struct published *data; /* newest first */
    struct waiter *waiters; /* oldest first */
    size_t count, bytes, waiting;
};

/* Small items cost memory too. */
static size_t cost_of(const char *key, size_t length)
{
    return length + strlen(key) + sizeof(struct published);
}

static struct store_owner owner_copy(const struct store_owner *owner)
{
    return (struct store_owner){mem_strdup(owner->nspace), owner->rank, owner->node};
}

struct publish_store *publish_store_create(void)
{
    return mem_alloc(sizeof(struct publish_store));
}

static void published_free(struct published *data)
{
    free((void *)(uintptr_t)data->owner.nspace);
    free(data->key);
    free(data->bytes);
    free(data);
}

static void waiter_free(struct waiter *waiter)
{
    free((void *)(uintptr_t)waiter->who.nspace);
    strv_destroy(&waiter->keys);
    free(waiter);
}

static void remove_at(struct publish_store *store, struct published **at)
{
    struct published *data = *at;
    *at = data->next;
    store->count--;
    store->bytes -= cost_of(data->key, data->length);
    published_free(data);
}

void publish_store_destroy(struct publish_store *store)
{
    if (store == NULL)
        return;
    while (store->waiters != NULL) {
        struct waiter *waiter = store->waiters;
        store->waiters = waiter->next;
        waiter->answer(waiter->context, STORE_NOT_FOUND, NULL, 0);
        waiter_free(waiter);
    }
    while (store->data != NULL)
        remove_at(store, &store->data);
    free(store);
}

static bool is_owner(const struct published *data, const char *nspace, uint32_t rank)
{
    return data->owner.rank == rank && strcmp(data->owner.nspace, nspace) == 0;
}

/* Whether the range of the data reaches this process. */
static bool reaches(const struct published *data, const struct store_owner *who)
{
    switch (data->range) {
    case STORE_PROC: return is_owner(data, who->nspace, who->rank);
    case STORE_LOCAL: return data->owner.node == who->node;
    case STORE_NSPACE: return strcmp(data->owner.nspace, who->nspace) == 0;
    case STORE_SESSION:
    case STORE_GLOBAL: return true;
    case STORE_RM: break;
    }
    return false;
}

/* The narrowest key that reaches the asker within the range asked for. */
static struct published **find(struct publish_store *store, const struct store_owner *who,
                               enum store_range range, const char *key)
{
    struct published **best = NULL;
    for (struct published **at = &store->data; *at != NULL; at = &(*at)->next)
        if ((*at)->range <= range && reaches(*at, who) && strcmp((*at)->key, key) == 0 &&
            (best == NULL || (*at)->range < (*best)->range))
            best = at;
    return best;
}

/* Data of the same range that some process would see together with the new one. */
static bool is_taken(const struct publish_store *store, const struct store_owner *owner,
                     enum store_range range, const char *key)
{
    for (const struct published *data = store->data; data != NULL; data = data->next) {
        if (data->range != range || strcmp(data->key, key) != 0)
            continue;
        if (range == STORE_RM || reaches(data, owner))
            return true;
    }
    return false;
}

static bool keys_repeat(const struct store_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(items[i].key, items[j].key) == 0)
                return true;
    return false;
}

/* Collects what is there of the keys; the caller frees *items. */
static size_t collect(struct publish_store *store, const struct waiter *waiter,
                      struct store_item **items)
{
    *items = mem_array(waiter->keys.count + 1, sizeof(**items));
    size_t found = 0;
    for (size_t i = 0; i < waiter->keys.count; i++) {
        struct published **at = find(store, &waiter->who, waiter->range, waiter->keys.items[i]);
        if (at == NULL)
            continue;
        const struct published *data = *at;
        (*items)[found++] = (struct store_item){data->owner, data->key, data->bytes, data->length};
    }
    return found;
}

static void answer(struct publish_store *store, const struct waiter *waiter, bool late)
{
    struct store_item *items AUTO_FREE = NULL;
    size_t found = collect(store, waiter, &items);
    enum store_status status = STORE_OK;
    if (late)
        status = STORE_TIMEOUT;
    else if (found == 0)
        status = STORE_NOT_FOUND;
    else if (found < waiter->keys.count)
        status = STORE_PARTIAL;
    waiter->answer(waiter->context, status, items, late ? 0 : found);
    if (late)
        return;
    for (size_t i = 0; i < waiter->keys.count; i++) {
        struct published **at = find(store, &waiter->who, waiter->range, waiter->keys.items[i]);
        if (at != NULL && (*at)->keep == STORE_KEEP_FIRST_READ)
            remove_at(store, at);
    }
}

static bool is_complete(struct publish_store *store, const struct waiter *waiter)
{
    struct store_item *items AUTO_FREE = NULL;
    return collect(store, waiter, &items) >= waiter->wait_for;
}

/* Takes each waiter that is complete or late off the list, then answers it. */
static void end_waiters(struct publish_store *store, int64_t now_ms)
{
    struct waiter **at = &store->waiters;
    while (*at != NULL) {
        struct waiter *waiter = *at;
        bool late = now_ms >= 0 && waiter->deadline_ms >= 0 && waiter->deadline_ms <= now_ms;
        if (!late && !is_complete(store, waiter)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        store->waiting--;
        answer(store, waiter, late && !is_complete(store, waiter));
        waiter_free(waiter);
    }
}

enum store_status publish_store_publish(struct publish_store *store,
                                        const struct store_owner *owner, enum store_range range,
                                        enum store_keep keep, const struct store_item *items,
                                        size_t count)
{
    size_t bytes = store->bytes;
    if (keys_repeat(items, count))
        return STORE_DUPLICATE;
    for (size_t i = 0; i < count; i++) {
        if (is_taken(store, owner, range, items[i].key))
            return STORE_DUPLICATE;
        size_t cost = cost_of(items[i].key, items[i].length);
        if (cost > STORE_BYTES_MAX - bytes)
            return STORE_FULL;
        bytes += cost;
    }
    for (size_t i = 0; i < count; i++) {
        struct published *data =
            MEM_NEW((struct published){.next = store->data,
                                       .owner = owner_copy(owner),
                                       .key = mem_strdup(items[i].key),
                                       .range = range,
                                       .keep = keep,
                                       .bytes = mem_dup(items[i].bytes, items[i].length),
                                       .length = items[i].length});
        store->data = data;
        store->count++;
    }
    store->bytes = bytes;
    end_waiters(store, -1);
    return STORE_OK;
}

void publish_store_lookup(struct publish_store *store, const struct store_owner *who,
                          enum store_range range, char *const *keys, size_t wait_for,
                          int64_t deadline_ms, store_answer_fn *answer_fn, void *context)
{
    struct waiter *waiter = MEM_NEW((struct waiter){.who = owner_copy(who),
                                                    .range = range,
                                                    .wait_for = wait_for,
                                                    .deadline_ms = deadline_ms,
                                                    .answer = answer_fn,
                                                    .context = context});
    strv_copy(&waiter->keys, keys);
    if (waiter->wait_for > waiter->keys.count)
        waiter->wait_for = waiter->keys.count;
    if (is_complete(store, waiter)) {
        answer(store, waiter, false);
        waiter_free(waiter);
        return;
    }
    if (store->waiting >= STORE_WAITING_MAX) {
        answer_fn(context, STORE_FULL, NULL, 0);
        waiter_free(waiter);
        return;
    }
    struct waiter **last = &store->waiters;
    while (*last != NULL)
        last = &(*last)->next;
    *last = waiter;
    store->waiting++;
}

static bool is_listed(char *const *keys, const char *key)
{
    for (; keys != NULL && *keys != NULL; keys++)
        if (strcmp(*keys, key) == 0)
            return true;
    return keys == NULL;
}

void publish_store_unpublish(struct publish_store *store, const struct store_owner *owner,
                             enum store_range range, char *const *keys)
{
    struct published **at = &store->data;
    while (*at != NULL) {
        if ((*at)->range == range && is_owner(*at, owner->nspace, owner->rank) &&
            is_listed(keys, (*at)->key))
            remove_at(store, at);
        else
            at = &(*at)->next;
    }
}

int64_t publish_store_deadline(const struct publish_store *store)
{
    int64_t next = -1;
    for (const struct waiter *waiter = store->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->deadline_ms >= 0 && (next < 0 || waiter->deadline_ms < next))
            next = waiter->deadline_ms;
    return next;
}

void publish_store_expire(struct publish_store *store, int64_t now_ms)
{
    end_waiters(store, now_ms);
}

/* Ends the waiting lookups of the process, or of the whole namespace, and what it wanted kept no
 * longer. */
static void end_of(struct publish_store *store, const char *nspace, bool any_rank, uint32_t rank)
{
    struct published **data = &store->data;
    while (*data != NULL) {
        bool ends =
            (*data)->keep == STORE_KEEP_PROC || (any_rank && (*data)->keep == STORE_KEEP_NSPACE);
        if (ends && (any_rank || (*data)->owner.rank == rank) &&
            strcmp((*data)->owner.nspace, nspace) == 0)
            remove_at(store, data);
        else
            data = &(*data)->next;
    }
    struct waiter **at = &store->waiters;
    while (*at != NULL) {
        struct waiter *waiter = *at;
        if (strcmp(waiter->who.nspace, nspace) != 0 || (!any_rank && waiter->who.rank != rank)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        store->waiting--;
        waiter->answer(waiter->context, STORE_NOT_FOUND, NULL, 0);
        waiter_free(waiter);
    }
}

void publish_store_end_proc(struct publish_store *store, const char *nspace, uint32_t rank)
{
    end_of(store, nspace, false, rank);
}

void publish_store_end_nspace(struct publish_store *store, const char *nspace)
{
    end_of(store, nspace, true, 0);
}

size_t publish_store_count(const struct publish_store *store)
{
    return store->count;
}
