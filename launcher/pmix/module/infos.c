/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/infos.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void infos_destroy(struct infos *list)
{
    for (size_t i = 0; i < list->count; i++)
        PMIX_INFO_DESTRUCT(&list->items[i]);
    free(list->items);
    *list = (struct infos){0};
}

void infos_free(void *list)
{
    infos_destroy(list);
    free(list);
}

void infos_add(struct infos *list, const char *key, const void *value, pmix_data_type_t type)
{
    pmix_info_t *info = &MEM_ADD_ROOM(list->items, list->count, list->room);
    PMIX_INFO_CONSTRUCT(info);
    PMIX_INFO_LOAD(info, key, (void *)(uintptr_t)value, type);
}

void infos_add_text(struct infos *list, const char *key, const char *text)
{
    if (text != NULL)
        infos_add(list, key, text, PMIX_STRING);
}

void infos_add_u32(struct infos *list, const char *key, uint32_t value)
{
    infos_add(list, key, &value, PMIX_UINT32);
}

void infos_add_u16(struct infos *list, const char *key, uint16_t value)
{
    infos_add(list, key, &value, PMIX_UINT16);
}

void infos_add_rank(struct infos *list, const char *key, uint32_t rank)
{
    pmix_rank_t value = rank;
    infos_add(list, key, &value, PMIX_PROC_RANK);
}

void infos_add_true(struct infos *list, const char *key)
{
    bool value = true;
    infos_add(list, key, &value, PMIX_BOOL);
}

void infos_add_array(struct infos *list, const char *key, pmix_data_type_t type, void *items,
                     size_t count)
{
    pmix_data_array_t array = {.type = type, .size = count, .array = items};
    infos_add(list, key, &array, PMIX_DATA_ARRAY);
}

const pmix_info_t *infos_find(const pmix_info_t *items, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(items[i].key, key, PMIX_MAX_KEYLEN) == 0)
            return &items[i];
    return NULL;
}

bool infos_true(const pmix_info_t *items, size_t count, const char *key)
{
    const pmix_info_t *info = infos_find(items, count, key);
    /* A flag without a value counts as set. */
    return info != NULL && (info->value.type == PMIX_UNDEF ||
                            (info->value.type == PMIX_BOOL && info->value.data.flag));
}

int64_t infos_number(const pmix_info_t *items, size_t count, const char *key, int64_t otherwise)
{
    const pmix_info_t *info = infos_find(items, count, key);
    if (info == NULL)
        return otherwise;
    const pmix_value_t *value = &info->value;
    switch (value->type) {
    case PMIX_INT: return value->data.integer;
    case PMIX_INT32: return value->data.int32;
    case PMIX_UINT32: return value->data.uint32;
    case PMIX_UINT: return value->data.uint;
    case PMIX_UINT8: return value->data.uint8;
    case PMIX_DATA_RANGE: return value->data.range;
    case PMIX_PERSIST: return value->data.persist;
    case PMIX_SIZE: return (int64_t)value->data.size;
    case PMIX_INT64: return value->data.int64;
    default: return otherwise;
    }
}

const char *infos_text(const pmix_info_t *items, size_t count, const char *key)
{
    const pmix_info_t *info = infos_find(items, count, key);
    return info != NULL && info->value.type == PMIX_STRING ? info->value.data.string : NULL;
}
