/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SMALL_COST 64 /* of an allocation and its place in a table, about */
#define SWEEP_FROM ((size_t)16 << 20)

static const struct torch_bytes nothing = {NULL, 0};

/* Lets go of the values of which no answer is left to be sent. */
static void sweep(struct torch_keys *keys)
{
    struct torch_element **at = &keys->replaced;
    keys->pinned = 0;
    while (*at != NULL) {
        struct torch_element *element = *at;
        if (element->value->holders > 1) {
            keys->pinned += element->value->length;
            at = &element->next;
            continue;
        }
        *at = element->next;
        torch_keys_release(keys, element->value->length + SMALL_COST);
        shared_block_release(element->value);
        free(element);
    }
    keys->sweep_at = keys->pinned > SWEEP_FROM / 2 ? 2 * keys->pinned : SWEEP_FROM;
}

int torch_keys_charge(struct torch_keys *keys, size_t bytes)
{
    if (bytes > keys->limit - keys->used)
        sweep(keys);
    if (bytes > keys->limit - keys->used)
        return -1;
    keys->used += bytes;
    return 0;
}

void torch_keys_release(struct torch_keys *keys, size_t bytes)
{
    keys->used -= bytes;
}

size_t torch_keys_used(struct torch_keys *keys)
{
    sweep(keys);
    return keys->used;
}

/* Keys */

static size_t key_cost(size_t length)
{
    return sizeof(struct torch_key) + length + SMALL_COST;
}

void torch_keys_let_go(struct torch_keys *keys, struct shared_block *value)
{
    if (value == NULL || value->holders == 1) {
        shared_block_release(value);
        return;
    }
    struct torch_element *element =
        MEM_NEW((struct torch_element){.next = keys->replaced, .value = value});
    keys->replaced = element;
    keys->used += value->length + SMALL_COST; /* no more than it was when a key had it */
    keys->pinned += value->length;
    if (keys->pinned > keys->sweep_at)
        sweep(keys);
}

static void replace(struct torch_keys *keys, struct torch_key *key, struct shared_block *value)
{
    struct shared_block *old = key->value;
    key->value = value;
    if (old != NULL)
        torch_keys_release(keys, old->length + SMALL_COST);
    torch_keys_let_go(keys, old);
}

struct torch_key *torch_keys_find(const struct torch_keys *keys, struct torch_bytes name)
{
    return map_get(&keys->map, map_bytes(name.at, name.length));
}

bool torch_keys_has(const struct torch_keys *keys, struct torch_bytes name)
{
    const struct torch_key *key = torch_keys_find(keys, name);
    return key != NULL && (key->value != NULL || key->queued > 0);
}

/* NULL: over the limit. */
static struct torch_key *find_or_make(struct torch_keys *keys, struct torch_bytes name)
{
    struct torch_key *key = torch_keys_find(keys, name);
    if (key != NULL || torch_keys_charge(keys, key_cost(name.length)) < 0)
        return key;
    key = mem_alloc(sizeof(*key) + name.length + 1);
    key->length = name.length;
    key->last = &key->first;
    TAILQ_INIT(&key->waiters);
    if (name.length > 0)
        memcpy(key->name, name.at, name.length);
    map_put(&keys->map, map_bytes(key->name, key->length), key);
    return key;
}

static void forget_if_idle(struct torch_keys *keys, struct torch_key *key)
{
    if (key->value != NULL || key->queued > 0 || !TAILQ_EMPTY(&key->waiters))
        return;
    map_remove(&keys->map, map_bytes(key->name, key->length));
    torch_keys_release(keys, key_cost(key->length));
    free(key);
}

/* The same with so many bytes for what it gets. */
static struct torch_key *key_with_room(struct torch_keys *keys, struct torch_bytes name,
                                       size_t bytes)
{
    struct torch_key *key = find_or_make(keys, name);
    if (key == NULL || torch_keys_charge(keys, bytes) == 0)
        return key;
    forget_if_idle(keys, key);
    return NULL;
}

static struct shared_block *block_of(struct torch_bytes head, struct torch_bytes tail)
{
    struct shared_block *block = shared_block_create(head.length + tail.length);
    if (head.length > 0)
        memcpy(block->bytes, head.at, head.length);
    if (tail.length > 0)
        memcpy(block->bytes + head.length, tail.at, tail.length);
    return block;
}

int torch_keys_set(struct torch_keys *keys, struct torch_bytes name, struct torch_bytes head,
                   struct torch_bytes tail)
{
    struct torch_key *key = key_with_room(keys, name, head.length + tail.length + SMALL_COST);
    if (key == NULL)
        return -1;
    keys->values += key->value == NULL;
    replace(keys, key, block_of(head, tail)); /* `head` may be in the old one */
    return 0;
}

bool torch_keys_delete(struct torch_keys *keys, struct torch_bytes name)
{
    struct torch_key *key = torch_keys_find(keys, name);
    if (key == NULL || key->value == NULL)
        return false;
    replace(keys, key, NULL);
    keys->values--;
    forget_if_idle(keys, key);
    return true;
}

int torch_keys_push(struct torch_keys *keys, struct torch_bytes name, struct torch_bytes value)
{
    struct torch_key *key = key_with_room(keys, name, value.length + 2 * SMALL_COST);
    if (key == NULL)
        return -1;
    struct torch_element *element =
        MEM_NEW((struct torch_element){.value = block_of(value, nothing)});
    *key->last = element;
    key->last = &element->next;
    key->queued++;
    return 0;
}

static struct shared_block *take_first(struct torch_keys *keys, struct torch_key *key)
{
    struct torch_element *element = key->first;
    struct shared_block *value = element->value;
    key->first = element->next;
    if (key->first == NULL)
        key->last = &key->first;
    key->queued--;
    torch_keys_release(keys, value->length + 2 * SMALL_COST);
    free(element);
    return value;
}

struct shared_block *torch_keys_pop(struct torch_keys *keys, struct torch_bytes name)
{
    struct torch_key *key = torch_keys_find(keys, name);
    if (key == NULL || key->queued == 0)
        return NULL;
    struct shared_block *value = take_first(keys, key);
    forget_if_idle(keys, key);
    return value;
}

void torch_keys_destroy(struct torch_keys *keys)
{
    size_t at = 0;
    struct torch_key *key = map_next(&keys->map, &at);
    for (; key != NULL; key = map_next(&keys->map, &at)) {
        while (key->queued > 0)
            shared_block_release(take_first(keys, key));
        shared_block_release(key->value);
    }
    sweep(keys);
    map_clear(&keys->map, free);
}

/* Waits */

static size_t wait_cost(size_t count)
{
    return count * sizeof(struct torch_waiter) + SMALL_COST;
}

static void link_waiter(struct torch_wait *wait, struct torch_key *key)
{
    struct torch_waiter *waiter = &wait->items[wait->count++];
    *waiter = (struct torch_waiter){.wait = wait, .key = key};
    TAILQ_INSERT_TAIL(&key->waiters, waiter, others);
    wait->missing++;
}

static void unlink_waiter(struct torch_waiter *waiter)
{
    TAILQ_REMOVE(&waiter->key->waiters, waiter, others);
    waiter->key = NULL;
}

static int make_room(struct torch_keys *keys, struct torch_wait *wait, size_t count)
{
    if (torch_keys_charge(keys, wait_cost(count)) < 0)
        return -1;
    *wait =
        (struct torch_wait){.owner = wait->owner, .items = mem_array(count, sizeof(*wait->items))};
    return 0;
}

static size_t count_missing(const struct torch_keys *keys, uint64_t count, const uint8_t *names)
{
    size_t missing = 0;
    for (uint64_t i = 0; i < count; i++)
        missing += !torch_keys_has(keys, torch_field_bytes(&names));
    return missing;
}

static void stop(struct torch_keys *keys, struct torch_wait *wait)
{
    torch_keys_release(keys, wait_cost(wait->count));
    free(wait->items);
    *wait = (struct torch_wait){.owner = wait->owner};
}

void torch_keys_cancel(struct torch_keys *keys, struct torch_wait *wait)
{
    if (wait->items == NULL)
        return;
    for (size_t i = 0; i < wait->count; i++) {
        struct torch_key *key = wait->items[i].key;
        if (key == NULL)
            continue;
        unlink_waiter(&wait->items[i]);
        forget_if_idle(keys, key);
    }
    stop(keys, wait);
}

int torch_keys_wait(struct torch_keys *keys, struct torch_wait *wait, uint64_t count,
                    const uint8_t *names)
{
    size_t missing = count_missing(keys, count, names);
    if (missing == 0)
        return 0;
    if (make_room(keys, wait, missing) < 0)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        struct torch_bytes name = torch_field_bytes(&names);
        if (torch_keys_has(keys, name))
            continue;
        struct torch_key *key = find_or_make(keys, name);
        if (key == NULL) {
            wait->count = missing; /* of which the rest has no key */
            torch_keys_cancel(keys, wait);
            return -1;
        }
        link_waiter(wait, key);
    }
    return 0;
}

int torch_keys_join(struct torch_keys *keys, struct torch_wait *wait, struct torch_bytes name)
{
    struct torch_key *key = torch_keys_find(keys, name);
    if (key == NULL || make_room(keys, wait, 1) < 0)
        return -1;
    wait->barrier = true;
    link_waiter(wait, key);
    return 0;
}

/* The key of this waiter is there. */
static void satisfy(struct torch_keys *keys, struct torch_waiter *waiter)
{
    struct torch_wait *wait = waiter->wait;
    unlink_waiter(waiter);
    if (--wait->missing > 0)
        return;
    stop(keys, wait);
    keys->woken(wait->owner);
}

void torch_keys_wake(struct torch_keys *keys, struct torch_bytes name, enum torch_wake whom)
{
    bool only_one = whom == TORCH_WAKE_OLDEST;
    struct torch_key *key = torch_keys_find(keys, name);
    struct torch_waiter *waiter = key == NULL ? NULL : TAILQ_FIRST(&key->waiters);
    while (waiter != NULL) {
        struct torch_waiter *next = TAILQ_NEXT(waiter, others);
        if (!waiter->wait->barrier || whom == TORCH_WAKE_BARRIER) {
            /* a wait may name a key twice: what follows may end with it */
            while (next != NULL && next->wait == waiter->wait && !only_one) {
                struct torch_waiter *again = next;
                next = TAILQ_NEXT(next, others);
                satisfy(keys, again);
            }
            satisfy(keys, waiter);
            if (only_one)
                break;
        }
        waiter = next;
    }
    if (key != NULL)
        forget_if_idle(keys, key);
}
