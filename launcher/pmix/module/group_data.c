/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/group_data.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool has_key(const pmix_info_t *info, const char *key)
{
    return strncmp(info->key, key, PMIX_MAX_KEYLEN) == 0;
}

static bool is_blob(const pmix_info_t *info)
{
    return has_key(info, PMIX_GROUP_ENDPT_DATA) && info->value.type == PMIX_BYTE_OBJECT &&
           info->value.data.bo.bytes != NULL && info->value.data.bo.size > 0;
}

/* An array of a member, which begins with the member itself. */
static bool is_of_member(const pmix_info_t *info, const char *key)
{
    if (!has_key(info, key) || info->value.type != PMIX_DATA_ARRAY)
        return false;
    const pmix_data_array_t *array = info->value.data.darray;
    if (array == NULL || array->type != PMIX_INFO || array->array == NULL || array->size == 0)
        return false;
    const pmix_info_t *first = array->array;
    return has_key(first, PMIX_PROCID) && first->value.type == PMIX_PROC &&
           first->value.data.proc != NULL;
}

/* The library puts its blob behind all that members say; one before it is a member's own. */
static const pmix_info_t *blob_of(const pmix_info_t *items, size_t count)
{
    return count > 0 && is_blob(&items[count - 1]) ? &items[count - 1] : NULL;
}

static pmix_status_t pack_one(pmix_data_buffer_t *buffer, const pmix_info_t *info)
{
    return PMIx_Data_pack(NULL, buffer, (void *)(uintptr_t)info, 1, PMIX_INFO);
}

static pmix_status_t pack(pmix_data_buffer_t *buffer, const pmix_info_t *items, size_t count)
{
    const pmix_info_t *blob = blob_of(items, count);
    pmix_status_t status = blob != NULL ? pack_one(buffer, blob) : PMIX_SUCCESS;
    for (size_t i = 0; blob == NULL && i < count && status == PMIX_SUCCESS; i++)
        if (is_of_member(&items[i], PMIX_GROUP_INFO) ||
            is_of_member(&items[i], PMIX_PROC_INFO_ARRAY))
            status = pack_one(buffer, &items[i]);
    return status;
}

pmix_status_t group_data_pack(const pmix_info_t *directives, size_t count, char **bytes,
                              size_t *length)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t out = {0};
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = pack(&buffer, directives, count);
    if (status == PMIX_SUCCESS && buffer.bytes_used > 0)
        status = PMIx_Data_unload(&buffer, &out);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    *bytes = out.bytes;
    *length = out.size;
    return status;
}

struct joined { /* the blobs of all nodes */
    char *bytes;
    size_t length;
};

static void join(struct joined *joined, const pmix_byte_object_t *blob)
{
    joined->bytes = mem_resize(joined->bytes, joined->length + blob->size);
    memcpy(joined->bytes + joined->length, blob->bytes, blob->size);
    joined->length += blob->size;
}

static pmix_status_t take(const pmix_info_t *info, struct joined *joined, struct infos *answer,
                          struct infos *resources)
{
    if (is_blob(info))
        join(joined, &info->value.data.bo);
    else if (is_of_member(info, PMIX_GROUP_INFO))
        infos_add(answer, PMIX_GROUP_INFO, info->value.data.darray, PMIX_DATA_ARRAY);
    else if (is_of_member(info, PMIX_PROC_INFO_ARRAY))
        infos_add(resources, PMIX_GROUP_ENDPT_DATA, info->value.data.darray, PMIX_DATA_ARRAY);
    else
        return PMIX_ERR_UNPACK_FAILURE;
    return PMIX_SUCCESS;
}

/* One by one: the bytes, and no number in them, say how many there are. */
static pmix_status_t take_all(pmix_data_buffer_t *buffer, struct joined *joined,
                              struct infos *answer, struct infos *resources)
{
    for (;;) {
        pmix_info_t info;
        int32_t wanted = 1;
        PMIX_INFO_CONSTRUCT(&info);
        pmix_status_t status = PMIx_Data_unpack(NULL, buffer, &info, &wanted, PMIX_INFO);
        if (status == PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER)
            return PMIX_SUCCESS;
        if (status == PMIX_SUCCESS)
            status = take(&info, joined, answer, resources);
        PMIX_INFO_DESTRUCT(&info);
        if (status != PMIX_SUCCESS)
            return status;
    }
}

pmix_status_t group_data_unpack(const char *bytes, size_t length, struct infos *answer,
                                struct infos *resources)
{
    struct joined joined = {0};
    pmix_data_buffer_t buffer;
    pmix_byte_object_t blob = {.bytes = malloc(length), .size = length}; /* PMIx frees it */
    if (length == 0 || blob.bytes == NULL) {
        free(blob.bytes);
        return length == 0 ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
    }
    memcpy(blob.bytes, bytes, length);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &blob);
    if (status == PMIX_SUCCESS)
        status = take_all(&buffer, &joined, answer, resources);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    blob = (pmix_byte_object_t){joined.bytes, joined.length};
    if (joined.length > 0)
        infos_add(answer, PMIX_GROUP_ENDPT_DATA, &blob, PMIX_BYTE_OBJECT);
    free(joined.bytes);
    return status;
}
