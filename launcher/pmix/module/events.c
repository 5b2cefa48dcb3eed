/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. PMIx itself delivers them among the workers of a node and remembers which worker asked
 * for which; we have nothing to add to a registration. An event that is to reach other nodes is
 * packed, goes through the agent, and is raised again by each of the other servers.
 *
 * A worker that ends badly is reported to those that registered for it, never to default handlers:
 * the one of Open MPI would end the survivors on its own, and that decision is the launcher's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

pmix_status_t up_register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                 size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)done, (void)done_data;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t up_deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t done,
                                   void *done_data)
{
    (void)codes, (void)ncodes, (void)done, (void)done_data;
    return PMIX_OPERATION_SUCCEEDED;
}

struct event {
    pmix_status_t code;
    pmix_proc_t source;
    pmix_data_range_t range;
    pmix_info_t *items;
    size_t count;
};

static pmix_status_t pack_one(pmix_data_buffer_t *buffer, void *value, size_t count,
                              pmix_data_type_t type)
{
    return PMIx_Data_pack(NULL, buffer, value, (int32_t)count, type);
}

/* The caller frees out->bytes. */
static bool pack(struct event *event, pmix_byte_object_t *out)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    bool ok = pack_one(&buffer, &event->code, 1, PMIX_STATUS) == PMIX_SUCCESS &&
              pack_one(&buffer, &event->source, 1, PMIX_PROC) == PMIX_SUCCESS &&
              pack_one(&buffer, &event->range, 1, PMIX_DATA_RANGE) == PMIX_SUCCESS &&
              pack_one(&buffer, &event->count, 1, PMIX_SIZE) == PMIX_SUCCESS &&
              (event->count == 0 ||
               pack_one(&buffer, event->items, event->count, PMIX_INFO) == PMIX_SUCCESS) &&
              PMIx_Data_unload(&buffer, out) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

static bool unpack_one(pmix_data_buffer_t *buffer, void *value, size_t count, pmix_data_type_t type)
{
    int32_t wanted = (int32_t)count;
    return PMIx_Data_unpack(NULL, buffer, value, &wanted, type) == PMIX_SUCCESS &&
           wanted == (int32_t)count;
}

/* The caller frees the items with PMIX_INFO_FREE. */
static bool unpack(const void *bytes, size_t length, struct event *event)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_byte_object_t blob = {.bytes = malloc(length + 1), .size = length}; /* PMIx frees it */
    *event = (struct event){0};
    size_t count = 0;
    bool ok = blob.bytes != NULL && memcpy(blob.bytes, bytes, length) != NULL &&
              PMIx_Data_load(&buffer, &blob) == PMIX_SUCCESS &&
              unpack_one(&buffer, &event->code, 1, PMIX_STATUS) &&
              unpack_one(&buffer, &event->source, 1, PMIX_PROC) &&
              unpack_one(&buffer, &event->range, 1, PMIX_DATA_RANGE) &&
              unpack_one(&buffer, &count, 1, PMIX_SIZE) && count <= length;
    if (ok && count > 0) {
        PMIX_INFO_CREATE(event->items, count);
        event->count = count;
        ok = unpack_one(&buffer, event->items, count, PMIX_INFO);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

struct notify_request {
    struct request base;
    pmix_byte_object_t packed;
};

static void notify_drop(struct request *base)
{
    free(((struct notify_request *)base)->packed.bytes);
    free(base);
}

static void notify_run(struct server *server, struct request *base)
{
    const struct notify_request *request = (struct notify_request *)base;
    server->ops.event(server->context, request->packed.bytes, request->packed.size);
    notify_drop(base);
}

static const struct request_kind notify_kind = {notify_run, notify_drop};

pmix_status_t up_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                        pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)done, (void)done_data;
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    bool here = range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL;
    if (here || server_is_alone(server))
        return PMIX_OPERATION_SUCCEEDED;
    if (server->ops.event == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct event event = {code, *source, range, info, ninfo};
    struct notify_request *request =
        MEM_NEW((struct notify_request){.base = {.kind = &notify_kind}});
    if (!pack(&event, &request->packed)) {
        free(request);
        return PMIX_ERR_PACK_FAILURE;
    }
    bridge_push(&server->bridge, &request->base);
    return PMIX_OPERATION_SUCCEEDED;
}

/* The infos must live until PMIx has delivered the event. */
static void delivered(pmix_status_t status, void *context)
{
    (void)status;
    infos_free(context);
}

/* To all nodes: here at once, and through the agent to the others. */
static void raise_event(struct server *server, struct event *event, struct infos *list)
{
    pmix_byte_object_t packed = {0};
    event->items = list->items;
    event->count = list->count;
    if (!server_is_alone(server) && server->ops.event != NULL && pack(event, &packed)) {
        server->ops.event(server->context, packed.bytes, packed.size);
        free(packed.bytes);
    }
    pmix_status_t status = PMIx_Notify_event(event->code, &event->source, event->range, list->items,
                                             list->count, delivered, list);
    if (status != PMIX_SUCCESS)
        delivered(status, list);
}

void events_worker_ended(struct server *server, const struct local *local, int code, int signal)
{
    const struct server_job *job = local->job;
    bool clean = code == 0 && signal == 0 && local->state != PMIX_WORKER_CONNECTED;
    if (clean || local->state == PMIX_WORKER_SILENT)
        return;
    struct event event = {.code = PMIX_ERR_PROC_TERM_WO_SYNC, .range = PMIX_RANGE_NAMESPACE};
    if (signal != 0)
        event.code = PMIX_ERR_PROC_ABORTED_BY_SIG;
    else if (local->state == PMIX_WORKER_ABORTED)
        event.code = PMIX_ERR_PROC_REQUESTED_ABORT;
    else if (code != 0)
        event.code = PMIX_ERR_EXIT_NONZERO_TERM;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)local->rank);
    PMIX_LOAD_PROCID(&event.source, job->nspace, PMIX_RANK_UNDEF);
    struct infos *list = mem_alloc(sizeof(*list));
    infos_add_true(list, PMIX_EVENT_NON_DEFAULT);
    infos_add(list, PMIX_EVENT_AFFECTED_PROC, &proc, PMIX_PROC);
    infos_add(list, PMIX_EXIT_CODE, &code, PMIX_INT);
    raise_event(server, &event, list);
}

static void delivered_from_afar(pmix_status_t status, void *context)
{
    (void)status;
    struct event *event = context;
    if (event->items != NULL)
        PMIX_INFO_FREE(event->items, event->count);
    free(event);
}

void events_from_afar(struct server *server, const void *bytes, size_t length)
{
    struct event *event = mem_alloc(sizeof(*event));
    bool ok = unpack(bytes, length, event);
    if (!ok)
        server_log(server, LOG_WARNING, "cannot read an event of another node");
    pmix_status_t status = PMIX_ERR_UNPACK_FAILURE;
    if (ok && server->jobs != NULL && !server->stuck)
        status = PMIx_Notify_event(event->code, &event->source, event->range, event->items,
                                   event->count, delivered_from_afar, event);
    if (status != PMIX_SUCCESS)
        delivered_from_afar(status, event);
}
