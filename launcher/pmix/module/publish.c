/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publish, lookup and unpublish: translated between PMIx and publish_store.h. The store of this
 * node answers as long as the job has no other; with several nodes there is one store for all,
 * which the op `store` asks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

struct store_call {
    struct request base;
    struct pmix_store_request ask;
    pmix_proc_t proc;
    struct store_item *items; /* keys and bytes are owned */
    struct strv keys;
    bool all_keys; /* unpublish without keys */
    pmix_op_cbfunc_t done;
    pmix_lookup_cbfunc_t found;
    void *done_data;
};

static void call_free(struct store_call *call)
{
    for (size_t i = 0; i < call->ask.item_count; i++) {
        free((void *)(uintptr_t)call->items[i].key);
        free((void *)(uintptr_t)call->items[i].bytes);
    }
    free(call->items);
    strv_destroy(&call->keys);
    free(call);
}

static pmix_status_t status_of(enum store_status status)
{
    switch (status) {
    case STORE_OK: return PMIX_SUCCESS;
    case STORE_PARTIAL: return PMIX_ERR_PARTIAL_SUCCESS;
    case STORE_NOT_FOUND: return PMIX_ERR_NOT_FOUND;
    case STORE_DUPLICATE: return PMIX_ERR_DUPLICATE_KEY;
    case STORE_TIMEOUT: return PMIX_ERR_TIMEOUT;
    case STORE_FULL: return PMIX_ERR_OUT_OF_RESOURCE;
    }
    return PMIX_ERROR;
}

static bool unpack(const struct store_item *item, pmix_value_t *value)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    char *copy = malloc(item->length); /* PMIx frees it */
    if (copy == NULL)
        return false;
    pmix_byte_object_t blob = {.bytes = memcpy(copy, item->bytes, item->length),
                               .size = item->length};
    int32_t one = 1;
    bool ok = PMIx_Data_load(&buffer, &blob) == PMIX_SUCCESS &&
              PMIx_Data_unpack(NULL, &buffer, value, &one, PMIX_VALUE) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

static void finish_lookup(const struct store_call *call, enum store_status status,
                          const struct store_item *items, size_t count)
{
    pmix_pdata_t *found = NULL;
    size_t good = 0;
    if (count > 0)
        PMIX_PDATA_CREATE(found, count);
    for (size_t i = 0; i < count && found != NULL; i++) {
        PMIX_LOAD_PROCID(&found[good].proc, items[i].owner.nspace, items[i].owner.rank);
        PMIX_LOAD_KEY(found[good].key, items[i].key);
        if (unpack(&items[i], &found[good].value))
            good++;
    }
    call->found(status_of(status), found, good, call->done_data);
    if (found != NULL)
        PMIX_PDATA_FREE(found, count);
}

/* A store_answer_fn; the end of each call. */
static void finish(void *context, enum store_status status, const struct store_item *items,
                   size_t count)
{
    struct store_call *call = context;
    if (call->found != NULL)
        finish_lookup(call, status, items, count);
    else
        call->done(status_of(status), call->done_data);
    call_free(call);
}

static void drop(struct request *base)
{
    finish(base, STORE_NOT_FOUND, NULL, 0);
}

static void ask_here(struct server *server, struct store_call *call)
{
    struct pmix_store_request *ask = &call->ask;
    int64_t deadline = ask->timeout_s > 0 ? clock_mono_ms() + (int64_t)ask->timeout_s * 1000 : -1;
    switch (ask->kind) {
    case STORE_ASK_PUBLISH:
        finish(call,
               publish_store_publish(server->store, &ask->owner, ask->range, ask->keep, ask->items,
                                     ask->item_count),
               NULL, 0);
        break;
    case STORE_ASK_LOOKUP:
        publish_store_lookup(server->store, &ask->owner, ask->range, ask->keys, ask->wait_for,
                             deadline, finish, call);
        break;
    case STORE_ASK_UNPUBLISH:
        publish_store_unpublish(server->store, &ask->owner, ask->range, ask->keys);
        finish(call, STORE_OK, NULL, 0);
        break;
    }
    server_arm_timer(server);
}

static void run(struct server *server, struct request *base);
static const struct request_kind store_kind = {run, drop};

static void run(struct server *server, struct request *base)
{
    struct store_call *call = (struct store_call *)base;
    call->ask.owner = (struct store_owner){call->proc.nspace, call->proc.rank,
                                           server->jobs != NULL ? server->jobs->my_node : 0};
    call->ask.items = call->items;
    call->ask.keys = call->all_keys ? NULL : strv_items(&call->keys);
    if (server->ops.store == NULL || server_is_alone(server)) {
        ask_here(server, call);
        return;
    }
    uint64_t id = bridge_park(&server->bridge, base);
    struct pmix_store_request ask = call->ask;
    server->ops.store(server->context, id, &ask);
}

void store_reply(struct server *server, uint64_t id, enum store_status status,
                 const struct store_item *items, size_t count)
{
    struct request *base = bridge_unpark(&server->bridge, id, &store_kind);
    if (base != NULL)
        finish(base, status, items, count);
}

/* -1: a range that does not exist here. */
static int range_of(int64_t range, enum store_range *out)
{
    switch (range) {
    case PMIX_RANGE_RM: *out = STORE_RM; return 0;
    case PMIX_RANGE_LOCAL: *out = STORE_LOCAL; return 0;
    case PMIX_RANGE_NAMESPACE: *out = STORE_NSPACE; return 0;
    case PMIX_RANGE_UNDEF:
    case PMIX_RANGE_SESSION: *out = STORE_SESSION; return 0;
    case PMIX_RANGE_GLOBAL: *out = STORE_GLOBAL; return 0;
    case PMIX_RANGE_PROC_LOCAL: *out = STORE_PROC; return 0;
    default: return -1;
    }
}

static int keep_of(int64_t persistence, enum store_keep *out)
{
    switch (persistence) {
    case PMIX_PERSIST_INDEF: *out = STORE_KEEP_FOREVER; return 0;
    case PMIX_PERSIST_FIRST_READ: *out = STORE_KEEP_FIRST_READ; return 0;
    case PMIX_PERSIST_PROC: *out = STORE_KEEP_PROC; return 0;
    case PMIX_PERSIST_APP: *out = STORE_KEEP_NSPACE; return 0;
    case PMIX_PERSIST_SESSION: *out = STORE_KEEP_SESSION; return 0;
    default: return -1;
    }
}

static bool is_directive(const pmix_info_t *info)
{
    static const char *const directives[] = {
        PMIX_RANGE, PMIX_PERSISTENCE,         PMIX_TIMEOUT,          PMIX_WAIT, PMIX_USERID,
        PMIX_GRPID, PMIX_REQUESTOR_IS_CLIENT, PMIX_REQUESTOR_IS_TOOL};
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++)
        if (PMIX_CHECK_KEY(info, directives[i]))
            return true;
    return false;
}

/* NULL and *status: it cannot be done. */
static struct store_call *call_new(int kind, const pmix_proc_t *proc, const pmix_info_t *info,
                                   size_t ninfo, pmix_status_t *status)
{
    struct store_call *call = MEM_NEW(
        (struct store_call){.base = {.kind = &store_kind}, .ask = {.kind = kind}, .proc = *proc});
    *status = PMIX_SUCCESS;
    int64_t range = infos_number(info, ninfo, PMIX_RANGE, PMIX_RANGE_SESSION);
    int64_t keep = infos_number(info, ninfo, PMIX_PERSISTENCE, PMIX_PERSIST_SESSION);
    bool known = range_of(range, &call->ask.range) == 0;
    /* Open MPI 5 looks up with a range that it never set. That is harmless for a lookup: an invalid
     * range shows no more data. For a publish it could be wrong. */
    if (!known && kind != STORE_ASK_PUBLISH) {
        call->ask.range = STORE_SESSION;
        known = true;
    }
    if (server_active() == NULL || !known || keep_of(keep, &call->ask.keep) < 0)
        *status = PMIX_ERR_NOT_SUPPORTED;
    int64_t timeout = infos_number(info, ninfo, PMIX_TIMEOUT, 0);
    call->ask.timeout_s = timeout > 0 && timeout < INT32_MAX ? (int)timeout : 0;
    if (*status == PMIX_SUCCESS)
        return call;
    free(call);
    return NULL;
}

static void add_item(struct store_call *call, const pmix_info_t *info)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t blob = {0};
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (PMIx_Data_pack(NULL, &buffer, (void *)(uintptr_t)&info->value, 1, PMIX_VALUE) ==
            PMIX_SUCCESS &&
        PMIx_Data_unload(&buffer, &blob) == PMIX_SUCCESS) {
        struct store_item *item = &call->items[call->ask.item_count++];
        item->key = mem_strndup(info->key, PMIX_MAX_KEYLEN);
        item->bytes = mem_dup(blob.bytes, blob.size);
        item->length = blob.size;
        free(blob.bytes);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

pmix_status_t up_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         pmix_op_cbfunc_t done, void *done_data)
{
    pmix_status_t status;
    struct store_call *call = call_new(STORE_ASK_PUBLISH, proc, info, ninfo, &status);
    if (call == NULL)
        return status;
    call->items = mem_array(ninfo + 1, sizeof(*call->items));
    for (size_t i = 0; i < ninfo; i++)
        if (!is_directive(&info[i]))
            add_item(call, &info[i]);
    call->done = done;
    call->done_data = done_data;
    bridge_push(&server_active()->bridge, &call->base);
    return PMIX_SUCCESS;
}

pmix_status_t up_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                        size_t ninfo, pmix_lookup_cbfunc_t done, void *done_data)
{
    pmix_status_t status;
    struct store_call *call = call_new(STORE_ASK_LOOKUP, proc, info, ninfo, &status);
    if (call == NULL)
        return status;
    strv_copy(&call->keys, keys);
    const pmix_info_t *wait = infos_find(info, ninfo, PMIX_WAIT);
    if (wait != NULL) {
        /* PMIX_WAIT as a number is how many keys are wanted, 0 and a flag mean all of them. */
        int64_t wanted = infos_number(info, ninfo, PMIX_WAIT, 0);
        bool off = wait->value.type == PMIX_BOOL && !wait->value.data.flag;
        call->ask.wait_for = wanted > 0 ? (size_t)wanted : off ? 0 : call->keys.count;
    }
    call->found = done;
    call->done_data = done_data;
    bridge_push(&server_active()->bridge, &call->base);
    return PMIX_SUCCESS;
}

pmix_status_t up_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                           size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    pmix_status_t status;
    struct store_call *call = call_new(STORE_ASK_UNPUBLISH, proc, info, ninfo, &status);
    if (call == NULL)
        return status;
    call->all_keys = keys == NULL;
    strv_copy(&call->keys, keys);
    call->done = done;
    call->done_data = done_data;
    bridge_push(&server_active()->bridge, &call->base);
    return PMIX_SUCCESS;
}
