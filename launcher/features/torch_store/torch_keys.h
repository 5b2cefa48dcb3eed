/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a store: their values, their queues, and the clients that wait for them. Each byte of
 * keys, values and waits counts against one limit, and what does not fit is refused before it is
 * allocated. A value that was replaced counts while answers hold it. A key without value, queue and
 * waits is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "features/torch_store/torch_query.h"
#include "io/send_queue.h"

struct torch_wait;

struct torch_waiter { /* one key of a wait */
    struct torch_wait *wait;
    struct torch_key *key; /* NULL: it is there */
    TAILQ_ENTRY(torch_waiter) others;
};

/* A client waits for all of these keys. All zero: it does not wait. */
struct torch_wait {
    void *owner;
    struct torch_waiter *items; /* NULL: it does not wait */
    size_t count, missing;
    bool barrier; /* only TORCH_WAKE_BARRIER ends it */
};

struct torch_element { /* of a queue */
    struct torch_element *next;
    struct shared_block *value;
};

struct torch_key {
    struct shared_block *value; /* NULL: none */
    struct torch_element *first, **last;
    size_t queued;
    TAILQ_HEAD(, torch_waiter) waiters; /* the oldest first */
    size_t length;
    char name[];
};

struct torch_keys {
    struct map map;
    size_t values; /* keys with a value */
    size_t used, limit;
    void (*woken)(void *owner);     /* of a wait that is over */
    struct torch_element *replaced; /* values that no key has, but answers that are not sent */
    size_t pinned, sweep_at;        /* their bytes, and from when on they are looked at */
};

void torch_keys_destroy(struct torch_keys *keys); /* nobody waits; all answers are sent */

/* Counts bytes that are not in a key. -1: over the limit. */
int torch_keys_charge(struct torch_keys *keys, size_t bytes);
void torch_keys_release(struct torch_keys *keys, size_t bytes);
size_t torch_keys_used(struct torch_keys *keys); /* bytes that count now */

struct torch_key *torch_keys_find(const struct torch_keys *keys, struct torch_bytes name);
/* It has a value, or a queue that is not empty. */
bool torch_keys_has(const struct torch_keys *keys, struct torch_bytes name);

/* -1: over the limit, and nothing has changed. The value is `head` and `tail`. */
int torch_keys_set(struct torch_keys *keys, struct torch_bytes name, struct torch_bytes head,
                   struct torch_bytes tail);
int torch_keys_push(struct torch_keys *keys, struct torch_bytes name, struct torch_bytes value);
/* The oldest element, which the caller releases; NULL: the queue is empty. */
struct shared_block *torch_keys_pop(struct torch_keys *keys, struct torch_bytes name);
bool torch_keys_delete(struct torch_keys *keys, struct torch_bytes name); /* the value only */

/* The caller had the value, and has shared it with answers: it counts until all of them are sent.
 * Accepts NULL. */
void torch_keys_let_go(struct torch_keys *keys, struct shared_block *value);

/* Waits for the keys of a list of names that begins at `names`. `missing` says how many are not
 * there; if none, it does not wait. -1: over the limit. */
int torch_keys_wait(struct torch_keys *keys, struct torch_wait *wait, uint64_t count,
                    const uint8_t *names);
/* Waits for the end of a barrier. */
int torch_keys_join(struct torch_keys *keys, struct torch_wait *wait, struct torch_bytes name);
void torch_keys_cancel(struct torch_keys *keys, struct torch_wait *wait);

/* The key is there: tells those that wait for it, only the oldest of them, or, when a barrier is
 * over, also those that joined it. `woken` is called for each that waits for nothing any more. */
enum torch_wake { TORCH_WAKE_ALL, TORCH_WAKE_OLDEST, TORCH_WAKE_BARRIER };
void torch_keys_wake(struct torch_keys *keys, struct torch_bytes name, enum torch_wake whom);
