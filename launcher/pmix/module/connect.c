/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx_Connect and PMIx_Disconnect. PMIx calls when all local participants have; on one node these
 * are all of them. What the standard asks of us besides, to report the death of a member to the
 * others, happens for every rank anyway (events.c).
 */
#include "pmix/module/server.h"

static pmix_status_t answer(void)
{
    struct server *server = server_active();
    bool alone = server != NULL && server_is_alone(server);
    return alone ? PMIX_OPERATION_SUCCEEDED : PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t up_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                         size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo, (void)done, (void)done_data;
    return answer();
}

pmix_status_t up_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo, (void)done, (void)done_data;
    return answer();
}
