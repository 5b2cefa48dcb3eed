/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. PMIx itself delivers them among the workers of a node and remembers who asked for what;
 * we have nothing to add to a registration. An event that is to reach other nodes is refused, since
 * nobody carries it there.
 *
 * A worker that ends badly is reported to those that registered for it, never to default handlers:
 * the one of Open MPI would end the survivors on its own, and that decision is the launcher's.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/server.h"

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

pmix_status_t up_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                        pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)code, (void)source, (void)info, (void)ninfo, (void)done, (void)done_data;
    struct server *server = server_active();
    bool here = range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL;
    if (server == NULL || !(here || server_is_alone(server)))
        return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_OPERATION_SUCCEEDED;
}

/* The infos must live until PMIx has delivered the event. */
static void delivered(pmix_status_t status, void *context)
{
    (void)status;
    struct infos *list = context;
    infos_destroy(list);
    free(list);
}

void events_worker_ended(struct server *server, const struct local *local, int code, int signal)
{
    const struct job *job = server->job;
    bool clean = code == 0 && signal == 0 && local->state != PMIX_WORKER_CONNECTED;
    if (clean || local->state == PMIX_WORKER_SILENT)
        return;
    pmix_status_t event = PMIX_ERR_PROC_TERM_WO_SYNC;
    if (signal != 0)
        event = PMIX_ERR_PROC_ABORTED_BY_SIG;
    else if (local->state == PMIX_WORKER_ABORTED)
        event = PMIX_ERR_PROC_REQUESTED_ABORT;
    else if (code != 0)
        event = PMIX_ERR_EXIT_NONZERO_TERM;
    pmix_proc_t proc;
    pmix_proc_t source;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)local->rank);
    PMIX_LOAD_PROCID(&source, job->nspace, PMIX_RANK_UNDEF);
    struct infos *list = mem_alloc(sizeof(*list));
    infos_add_true(list, PMIX_EVENT_NON_DEFAULT);
    infos_add(list, PMIX_EVENT_AFFECTED_PROC, &proc, PMIX_PROC);
    infos_add(list, PMIX_EXIT_CODE, &code, PMIX_INT);
    pmix_status_t status = PMIx_Notify_event(event, &source, PMIX_RANGE_NAMESPACE, list->items,
                                             list->count, delivered, list);
    if (status != PMIX_SUCCESS)
        delivered(status, list);
}
