/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data that workers publish and look up (PMIx_Publish, MPI_Publish_name). Pure: time is a
 * parameter, values are bytes, and an answer is a struct.
 *
 * A key is visible in a range: its publisher only (PROC), the publisher's node (LOCAL), its
 * namespace, its session, or all processes. RM data is for the launcher, and no lookup finds it. A
 * lookup names the widest range that it wants to see. Two keys of one name can exist if their
 * ranges differ or no process can see both. STORE_KEEP_* says how long data are kept: forever,
 * until the first read, or until the publisher, its namespace or the session ends.
 *
 * A lookup can wait for missing keys. It ends with the publish that completes it, at its deadline,
 * or with the process that asked. If STORE_WAITING_MAX lookups wait, another one that would have to
 * wait ends as STORE_FULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_BYTES_MAX ((size_t)64 << 20) /* of all data, with what it costs to keep them */
#define STORE_WAITING_MAX 100000           /* lookups */

/* From narrow to wide. */
enum store_range { STORE_PROC, STORE_LOCAL, STORE_NSPACE, STORE_SESSION, STORE_GLOBAL, STORE_RM };

enum store_keep {
    STORE_KEEP_FOREVER,
    STORE_KEEP_FIRST_READ,
    STORE_KEEP_PROC,
    STORE_KEEP_NSPACE,
    STORE_KEEP_SESSION,
};

enum store_status {
    STORE_OK,
    STORE_PARTIAL, /* some of the keys */
    STORE_NOT_FOUND,
    STORE_DUPLICATE,
    STORE_TIMEOUT,
    STORE_FULL,
};

struct store_owner {
    const char *nspace;
    uint32_t rank;
    int node;
};

struct store_item {
    struct store_owner owner;
    const char *key;
    const void *bytes;
    size_t length;
};

/* Called exactly once for each lookup, from inside publish_store_lookup(), _publish(), _expire() or
 * _end_*(); `items` are borrowed for the call. */
typedef void store_answer_fn(void *context, enum store_status status,
                             const struct store_item *items, size_t count);

struct publish_store;

struct publish_store *publish_store_create(void);
void publish_store_destroy(struct publish_store *store); /* waiting lookups end as NOT_FOUND */

/* Publishes all items or none: STORE_OK, STORE_DUPLICATE (some process could see two keys of this
 * name), or STORE_FULL. The items' owners are ignored. */
enum store_status publish_store_publish(struct publish_store *store,
                                        const struct store_owner *owner, enum store_range range,
                                        enum store_keep keep, const struct store_item *items,
                                        size_t count);

/* Waits for `wait_for` keys (0: answers at once with what is there). A negative deadline means
 * none; otherwise the lookup ends as STORE_TIMEOUT when publish_store_expire() is called at or
 * after it. */
void publish_store_lookup(struct publish_store *store, const struct store_owner *who,
                          enum store_range range, char *const *keys, size_t wait_for,
                          int64_t deadline_ms, store_answer_fn *answer, void *context);

/* Removes the owner's own keys in this range; `keys` NULL: all of them. A missing key is not
 * an error, as the standard requires. */
void publish_store_unpublish(struct publish_store *store, const struct store_owner *owner,
                             enum store_range range, char *const *keys);

/* The next deadline, -1: none. */
int64_t publish_store_deadline(const struct publish_store *store);
void publish_store_expire(struct publish_store *store, int64_t now_ms);

void publish_store_end_proc(struct publish_store *store, const char *nspace, uint32_t rank);
void publish_store_end_nspace(struct publish_store *store, const char *nspace);

size_t publish_store_count(const struct publish_store *store);
