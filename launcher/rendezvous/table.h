/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from byte strings to pointers, for the store, the cache and the proxy. The table
 * copies its keys. Values belong to the caller and are never NULL. Pure.
 */
#pragma once

#include <stddef.h>

struct rendezvous_table;

struct rendezvous_table *rendezvous_table_create(void);
/* Calls `free_value` for each value unless it is NULL. Accepts a NULL table. */
void rendezvous_table_destroy(struct rendezvous_table *table, void (*free_value)(void *value));

size_t rendezvous_table_count(const struct rendezvous_table *table);
void *rendezvous_table_get(const struct rendezvous_table *table, const void *key, size_t length);
/* Returns the value that was there before, or NULL. */
void *rendezvous_table_put(struct rendezvous_table *table, const void *key, size_t length,
                           void *value);
void *rendezvous_table_remove(struct rendezvous_table *table, const void *key, size_t length);

/* Calls `visit` with each value; it must not change the table. */
void rendezvous_table_each(const struct rendezvous_table *table,
                           void (*visit)(void *context, void *value), void *context);

/* Removes any one element and returns its value; NULL: the table is empty. */
void *rendezvous_table_pop(struct rendezvous_table *table);
