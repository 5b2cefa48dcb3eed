/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from keys (request.h) to things of the caller, which own the text of their key. An
 * all-zero struct is an empty table. */
#pragma once

#include <stddef.h>

struct names_slot {
    const char *key; /* NULL: free */
    void *value;
    size_t hash; /* of the key */
};

struct names {
    struct names_slot *slots; /* owned; open addressing, a power of two */
    size_t room, count;
};

void names_destroy(struct names *names);

/* NULL: there is not such a key. */
void *names_get(const struct names *names, const char *key);
/* The same, for a caller that changes the value. Valid until the table changes. */
struct names_slot *names_find(const struct names *names, const char *key);

/* The key must not be in the table, and must live until it is removed. */
void names_put(struct names *names, const char *key, void *value);

/* Returns the value, or NULL. */
void *names_remove(struct names *names, const char *key);
