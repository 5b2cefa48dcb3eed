/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx_Job_control: signals and their kin are served. What only tells us something of the job, such
 * as that it may be preempted, is accepted, and has no effect. Anything else that acts
 * (checkpoints, provisioning, restarts) is refused. PMIx itself keeps most clean-up requests.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

struct control_request {
    struct request base;
    pmix_proc_t *targets; /* NULL: every rank */
    size_t count;
    int signal;
    pmix_info_cbfunc_t done;
    void *done_data;
};

static void finish(struct control_request *request, pmix_status_t status)
{
    request->done(status, NULL, 0, request->done_data, NULL, NULL);
    free(request->targets);
    free(request);
}

static pmix_status_t check(const struct server *server, const struct control_request *request)
{
    if (server->ops.signal == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    if (server->jobs == NULL)
        return PMIX_ERR_NOT_FOUND;
    for (size_t i = 0; i < request->count; i++) {
        const pmix_proc_t *proc = &request->targets[i];
        bool known = proc->rank == PMIX_RANK_WILDCARD
                         ? server_job_named(server, proc->nspace) != NULL
                         : server_number(server, proc) >= 0;
        if (!known)
            return PMIX_ERR_NOT_FOUND;
    }
    return PMIX_SUCCESS;
}

static void signal_namespace(struct server *server, const char *nspace, int number)
{
    const struct server_job *job = server_job_named(server, nspace);
    if (server->jobs->next == NULL) {
        server->ops.signal(server->context, PMIX_EVERY_RANK, number);
        return;
    }
    for (int rank = 0; rank < job->size; rank++)
        server->ops.signal(server->context, job->first + rank, number);
}

static void run(struct server *server, struct request *base)
{
    struct control_request *request = (struct control_request *)base;
    pmix_status_t status = check(server, request);
    if (status == PMIX_SUCCESS && request->count == 0)
        server->ops.signal(server->context, PMIX_EVERY_RANK, request->signal);
    for (size_t i = 0; status == PMIX_SUCCESS && i < request->count; i++) {
        const pmix_proc_t *proc = &request->targets[i];
        if (proc->rank == PMIX_RANK_WILDCARD)
            signal_namespace(server, proc->nspace, request->signal);
        else
            server->ops.signal(server->context, server_number(server, proc), request->signal);
    }
    finish(request, status);
}

static void drop(struct request *base)
{
    finish((struct control_request *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind control_kind = {run, drop};

static const char *const told[] = {
    PMIX_JOB_CTRL_ID,
    PMIX_JOB_CTRL_PREEMPTIBLE,
    PMIX_JOB_CTRL_CHECKPOINT_EVENT,
    PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, /* also of CHECKPOINT_TIMEOUT */
    PMIX_JOB_CTRL_CHECKPOINT_METHOD,
    PMIX_REGISTER_CLEANUP,
    PMIX_REGISTER_CLEANUP_DIR,
    PMIX_CLEANUP_RECURSIVE,
    PMIX_CLEANUP_EMPTY,
    PMIX_CLEANUP_IGNORE,
    PMIX_CLEANUP_LEAVE_TOPDIR,
};

static const char *const refused[] = {
    PMIX_JOB_CTRL_CANCEL,    PMIX_JOB_CTRL_RESTART,         PMIX_JOB_CTRL_CHECKPOINT,
    PMIX_JOB_CTRL_PROVISION, PMIX_JOB_CTRL_PROVISION_IMAGE,
};

static bool has_any(const pmix_info_t *items, size_t count, const char *const *keys,
                    size_t keys_count)
{
    for (size_t i = 0; i < keys_count; i++)
        if (infos_find(items, count, keys[i]) != NULL)
            return true;
    return false;
}

#define HAS_ANY(keys) has_any(directives, ndirs, keys, sizeof(keys) / sizeof((keys)[0]))

/* 0: none of the directives asks for one; -1: it asks for one that does not exist. */
static int signal_of(const pmix_info_t *directives, size_t ndirs)
{
    if (infos_true(directives, ndirs, PMIX_JOB_CTRL_KILL))
        return SIGKILL;
    if (infos_true(directives, ndirs, PMIX_JOB_CTRL_TERMINATE))
        return SIGTERM;
    if (infos_true(directives, ndirs, PMIX_JOB_CTRL_PAUSE))
        return SIGSTOP;
    if (infos_true(directives, ndirs, PMIX_JOB_CTRL_RESUME))
        return SIGCONT;
    if (infos_find(directives, ndirs, PMIX_JOB_CTRL_SIGNAL) == NULL)
        return 0;
    int64_t number = infos_number(directives, ndirs, PMIX_JOB_CTRL_SIGNAL, 0);
    return number > 0 && number < NSIG ? (int)number : -1;
}

pmix_status_t up_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                             size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                             pmix_info_cbfunc_t done, void *done_data)
{
    (void)requestor;
    struct server *server = server_active();
    int number = signal_of(directives, ndirs);
    if (server == NULL || HAS_ANY(refused))
        return PMIX_ERR_NOT_SUPPORTED;
    if (number < 0)
        return PMIX_ERR_BAD_PARAM;
    if (number == 0)
        return HAS_ANY(told) ? PMIX_OPERATION_SUCCEEDED : PMIX_ERR_NOT_SUPPORTED;
    struct control_request *request = mem_alloc(sizeof(*request));
    *request = (struct control_request){.base = {.kind = &control_kind},
                                        .targets = mem_dup(targets, ntargets * sizeof(*targets)),
                                        .count = targets != NULL ? ntargets : 0,
                                        .signal = number,
                                        .done = done,
                                        .done_data = done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
