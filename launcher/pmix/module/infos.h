/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of pmix_info_t, and lookups in those that workers send. */
#pragma once

#include <pmix_server.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct infos {
    pmix_info_t *items;
    size_t count, room;
};

#define AUTO_INFOS __attribute__((cleanup(infos_destroy)))

void infos_destroy(struct infos *list);
void infos_free(void *list); /* of memory of its own */
void infos_add(struct infos *list, const char *key, const void *value, pmix_data_type_t type);
void infos_add_text(struct infos *list, const char *key, const char *text); /* NULL: nothing */
void infos_add_u32(struct infos *list, const char *key, uint32_t value);
void infos_add_u16(struct infos *list, const char *key, uint16_t value);
void infos_add_rank(struct infos *list, const char *key, uint32_t rank);
void infos_add_true(struct infos *list, const char *key);
/* A deep copy. */
void infos_add_array(struct infos *list, const char *key, pmix_data_type_t type, void *items,
                     size_t count);

const pmix_info_t *infos_find(const pmix_info_t *items, size_t count, const char *key);
bool infos_true(const pmix_info_t *items, size_t count, const char *key);
int64_t infos_number(const pmix_info_t *items, size_t count, const char *key, int64_t otherwise);
const char *infos_text(const pmix_info_t *items, size_t count, const char *key); /* NULL: none */
