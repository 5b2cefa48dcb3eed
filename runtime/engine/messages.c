/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* After a failure, the engine may still use its buffers: see engine.h. */
static enum hvd_status exchange(const struct message_set *set, const void *own, size_t bytes,
                                bool from_all, void *out, struct error *err)
{
    size_t size = (size_t)set->size;
    size_t *send AUTO_FREE = mem_array(2 * size, sizeof *send), *receive = send + size;
    char *copies = mem_array(size, bytes), *in = mem_array(size, bytes);
    for (size_t i = 0; i < size; i++) {
        memcpy(copies + i * bytes, own, bytes);
        send[i] = from_all || set->rank == 0 ? bytes : 0;
        receive[i] = from_all || i == 0 ? bytes : 0;
    }
    enum hvd_status status =
        set->engine->alltoallv(set->comm, copies, send, in, receive, set->timeout_ms, err);
    if (status == HVD_OK)
        memcpy(out, in, from_all ? size * bytes : bytes);
    if (status != HVD_OK && set->engine->keeps_buffers)
        return status;
    free(copies);
    free(in);
    return status;
}

enum hvd_status messages_share(const struct message_set *set, const void *own, size_t bytes,
                               void *all, struct error *err)
{
    return exchange(set, own, bytes, true, all, err);
}

enum hvd_status messages_from_root(const struct message_set *set, void *data, size_t bytes,
                                   struct error *err)
{
    return exchange(set, data, bytes, false, data, err);
}

enum hvd_status messages_agree(const struct message_set *set, const char *problem, int *failed,
                               struct error *err)
{
    size_t size = (size_t)set->size;
    const char own = problem[0] != '\0';
    char *flags AUTO_FREE = mem_alloc(size), text[ERROR_TEXT_MAX] = "";
    *failed = -1;
    enum hvd_status status = messages_share(set, &own, 1, flags, err);
    const char *first = memchr(flags, 1, size);
    if (status != HVD_OK || first == NULL)
        return status;
    char *texts AUTO_FREE = mem_array(size, sizeof text);
    snprintf(text, sizeof text, "%s", problem);
    status = messages_share(set, text, sizeof text, texts, err);
    if (status != HVD_OK)
        return status;
    *failed = (int)(first - flags);
    error_set(err, "%.*s", (int)sizeof text - 1, texts + (size_t)*failed * sizeof text);
    return HVD_OK;
}
