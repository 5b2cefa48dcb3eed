/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Takes `in`. After a failure, the engine may still use its buffers: see engine.h. */
static enum hvd_status exchange(const struct message_set *set, char *in, const size_t *send,
                                const size_t *receive, void *out, struct error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < set->size; i++)
        bytes += receive[i];
    char *received = mem_alloc(bytes);
    enum hvd_status status =
        set->engine->alltoallv(set->comm, in, send, received, receive, set->timeout_ms, err);
    if (status == HVD_OK && bytes > 0)
        memcpy(out, received, bytes);
    if (status != HVD_OK && set->engine->keeps_buffers)
        return status;
    free(in);
    free(received);
    return status;
}

/* Set rank 0 gets the `own` bytes of each rank, or of rank `only` if that is not -1. */
static enum hvd_status to_root(const struct message_set *set, const void *own, size_t bytes,
                               int only, void *all, struct error *err)
{
    size_t size = (size_t)set->size;
    size_t *send AUTO_FREE = mem_array(2 * size, sizeof *send), *receive = send + size;
    char *in = mem_alloc(bytes);
    memcpy(in, own, bytes);
    send[0] = only < 0 || set->rank == only ? bytes : 0;
    for (int i = 0; i < set->size && set->rank == 0; i++)
        receive[i] = only < 0 || i == only ? bytes : 0;
    return exchange(set, in, send, receive, all, err);
}

enum hvd_status messages_from_root(const struct message_set *set, void *data, size_t bytes,
                                   struct error *err)
{
    size_t size = (size_t)set->size, copies = set->rank == 0 ? size : 0;
    size_t *send AUTO_FREE = mem_array(2 * size, sizeof *send), *receive = send + size;
    char *in = mem_array(copies, bytes);
    for (size_t i = 0; i < copies; i++) {
        memcpy(in + i * bytes, data, bytes);
        send[i] = bytes;
    }
    receive[0] = bytes;
    return exchange(set, in, send, receive, data, err);
}

/* If each rank told each other one, that would be a message for each pair of ranks. */
enum hvd_status messages_compare(const struct message_set *set, const void *own, size_t bytes,
                                 bool *same, struct error *err)
{
    size_t size = set->rank == 0 ? (size_t)set->size : 0;
    char *all AUTO_FREE = mem_array(size, bytes), equal = 1;
    enum hvd_status status = to_root(set, own, bytes, -1, all, err);
    for (size_t i = 0; i < size && equal; i++)
        equal = memcmp(all + i * bytes, own, bytes) == 0;
    if (status == HVD_OK)
        status = messages_from_root(set, &equal, sizeof equal, err);
    *same = equal != 0;
    return status;
}

enum hvd_status messages_agree(const struct message_set *set, const char *problem, int *failed,
                               struct error *err)
{
    size_t size = (size_t)set->size;
    const char own = problem[0] != '\0';
    char *flags AUTO_FREE = mem_alloc(size), text[ERROR_TEXT_MAX] = "";
    *failed = -1;
    enum hvd_status status = to_root(set, &own, 1, -1, flags, err);
    const char *found = memchr(flags, 1, size);
    int32_t first = found != NULL ? (int32_t)(found - flags) : -1;
    if (status == HVD_OK)
        status = messages_from_root(set, &first, sizeof first, err);
    if (status != HVD_OK || first < 0)
        return status;
    snprintf(text, sizeof text, "%s", problem);
    status = to_root(set, text, sizeof text, first, text, err);
    if (status == HVD_OK)
        status = messages_from_root(set, text, sizeof text, err);
    if (status != HVD_OK)
        return status;
    *failed = first;
    error_set(err, "%.*s", (int)sizeof text - 1, text);
    return HVD_OK;
}
