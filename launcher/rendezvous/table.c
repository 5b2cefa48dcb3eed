/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { FIRST_BUCKETS = 16 };

struct node {
    struct node *next;
    void *value;
    uint64_t hash;
    size_t length;
    char key[];
};

struct rendezvous_table {
    struct node **buckets;
    size_t bucket_count; /* a power of two, at least as many as nodes */
    size_t count;
    size_t pop_from; /* buckets below it are empty */
};

struct rendezvous_table *rendezvous_table_create(void)
{
    struct rendezvous_table *table = mem_alloc(sizeof(*table));
    table->bucket_count = FIRST_BUCKETS;
    table->buckets = mem_array(FIRST_BUCKETS, sizeof(struct node *));
    return table;
}

void rendezvous_table_destroy(struct rendezvous_table *table, void (*free_value)(void *value))
{
    if (table == NULL)
        return;
    for (void *value = rendezvous_table_pop(table); value != NULL;
         value = rendezvous_table_pop(table)) {
        if (free_value != NULL)
            free_value(value);
    }
    free(table->buckets);
    free(table);
}

size_t rendezvous_table_count(const struct rendezvous_table *table)
{
    return table->count;
}

/* The link that points to the node of this key, or to the NULL at the end of its chain. */
static struct node **find(const struct rendezvous_table *table, uint64_t hash, const void *key,
                          size_t length)
{
    struct node **link = &table->buckets[hash & (table->bucket_count - 1)];
    while (*link != NULL && ((*link)->hash != hash || (*link)->length != length ||
                             memcmp((*link)->key, key, length) != 0))
        link = &(*link)->next;
    return link;
}

static void grow(struct rendezvous_table *table)
{
    size_t bucket_count = table->bucket_count * 2;
    struct node **buckets = mem_array(bucket_count, sizeof(struct node *));
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct node *node = table->buckets[i];
        while (node != NULL) {
            struct node *next = node->next;
            struct node **bucket = &buckets[node->hash & (bucket_count - 1)];
            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = bucket_count;
    table->pop_from = 0;
}

void *rendezvous_table_get(const struct rendezvous_table *table, const void *key, size_t length)
{
    struct node *node = *find(table, hash_of_bytes(key, length), key, length);
    return node == NULL ? NULL : node->value;
}

void *rendezvous_table_put(struct rendezvous_table *table, const void *key, size_t length,
                           void *value)
{
    uint64_t hash = hash_of_bytes(key, length);
    struct node *node = *find(table, hash, key, length);
    if (node != NULL) {
        void *old = node->value;
        node->value = value;
        return old;
    }
    if (table->count == table->bucket_count)
        grow(table);
    node = mem_alloc(sizeof(*node) + length);
    node->value = value;
    node->hash = hash;
    node->length = length;
    memcpy(node->key, key, length);
    size_t index = hash & (table->bucket_count - 1);
    node->next = table->buckets[index];
    table->buckets[index] = node;
    table->count++;
    if (index < table->pop_from)
        table->pop_from = index;
    return NULL;
}

void rendezvous_table_each(const struct rendezvous_table *table,
                           void (*visit)(void *context, void *value), void *context)
{
    for (size_t i = 0; i < table->bucket_count; i++)
        for (const struct node *node = table->buckets[i]; node != NULL; node = node->next)
            visit(context, node->value);
}

static void *unlink_node(struct rendezvous_table *table, struct node **link)
{
    struct node *node = *link;
    void *value = node->value;
    *link = node->next;
    free(node);
    table->count--;
    return value;
}

void *rendezvous_table_remove(struct rendezvous_table *table, const void *key, size_t length)
{
    struct node **link = find(table, hash_of_bytes(key, length), key, length);
    return *link == NULL ? NULL : unlink_node(table, link);
}

void *rendezvous_table_pop(struct rendezvous_table *table)
{
    if (table->count == 0)
        return NULL;
    while (table->buckets[table->pop_from] == NULL)
        table->pop_from++;
    return unlink_node(table, &table->buckets[table->pop_from]);
}
