/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/group_data.h"

#include <arpa/inet.h>
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

#define HEAD 8 /* bytes before those of a node: their format, and how many they are */

static uint32_t format_here(void)
{
    const char *version = PMIx_Get_version();
    return (uint32_t)strtoul(version + strcspn(version, "0123456789"), NULL, 10);
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
    if (status == PMIX_SUCCESS && out.size > UINT32_MAX)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    if (status == PMIX_SUCCESS) {
        uint32_t head[] = {htonl(format_here()), htonl((uint32_t)out.size)};
        *length = HEAD + out.size;
        *bytes = mem_alloc(*length);
        memcpy(*bytes, head, HEAD);
        memcpy(*bytes + HEAD, out.size > 0 ? out.bytes : "", out.size);
    }
    free(out.bytes);
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
    pmix_status_t status = PMIX_SUCCESS;
    while (status == PMIX_SUCCESS && buffer->unpack_ptr < buffer->base_ptr + buffer->bytes_used) {
        pmix_info_t info;
        int32_t wanted = 1;
        PMIX_INFO_CONSTRUCT(&info);
        status = PMIx_Data_unpack(NULL, buffer, &info, &wanted, PMIX_INFO);
        if (status != PMIX_SUCCESS)
            return status; /* what libpmix has left in it may not be freed */
        status = take(&info, joined, answer, resources);
        PMIX_INFO_DESTRUCT(&info);
    }
    return status;
}

static pmix_status_t take_node(const char *bytes, size_t length, struct joined *joined,
                               struct infos *answer, struct infos *resources)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t blob = {.bytes = malloc(length), .size = length}; /* PMIx frees it */
    if (blob.bytes == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(blob.bytes, bytes, length);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &blob);
    if (status == PMIX_SUCCESS)
        status = take_all(&buffer, joined, answer, resources);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

/* Are the bytes whole, and of one format if any node gives something? All nodes see the same here,
 * so all of them refuse. */
static pmix_status_t check(const char *bytes, size_t length)
{
    uint32_t head[2], first = 0;
    bool alike = true, some = false;
    for (size_t at = 0; at < length; at += HEAD + ntohl(head[1])) {
        if (length - at < HEAD)
            return PMIX_ERR_UNPACK_FAILURE;
        memcpy(head, bytes + at, HEAD);
        if (ntohl(head[1]) > length - at - HEAD)
            return PMIX_ERR_UNPACK_FAILURE;
        first = at == 0 ? head[0] : first;
        alike &= head[0] == first;
        some |= head[1] != 0;
    }
    return alike || !some ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t group_data_unpack(const char *bytes, size_t length, struct infos *answer,
                                struct infos *resources)
{
    struct joined joined = {0};
    pmix_status_t status = check(bytes, length);
    for (size_t at = 0, size = 0; status == PMIX_SUCCESS && at < length; at += HEAD + size) {
        uint32_t head[2];
        memcpy(head, bytes + at, HEAD);
        size = ntohl(head[1]);
        if (size > 0)
            status = take_node(bytes + at + HEAD, size, &joined, answer, resources);
    }
    if (joined.length > 0) {
        pmix_byte_object_t blob = {joined.bytes, joined.length};
        infos_add(answer, PMIX_GROUP_ENDPT_DATA, &blob, PMIX_BYTE_OBJECT);
    }
    free(joined.bytes);
    return status;
}
