/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx_Job_control: signals and their kin are served. What only tells us something of the job, such
 * as that it may be preempted, is accepted, and has no effect. A request with anything else
 * (checkpoints, provisioning, restarts, clean-up that PMIx does not do itself) is refused.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* The directives that are understood. Those of no signal only tell us something. What PMIx does not
 * clean up itself, nobody does. */
static const char *const understood[] = {
    PMIX_JOB_CTRL_KILL,
    PMIX_JOB_CTRL_TERMINATE,
    PMIX_JOB_CTRL_PAUSE,
    PMIX_JOB_CTRL_RESUME,
    PMIX_JOB_CTRL_SIGNAL,
    PMIX_JOB_CTRL_ID,
    PMIX_JOB_CTRL_PREEMPTIBLE,
    PMIX_JOB_CTRL_CHECKPOINT_EVENT,
    PMIX_JOB_CTRL_CHECKPOINT_SIGNAL, /* also of CHECKPOINT_TIMEOUT */
    PMIX_JOB_CTRL_CHECKPOINT_METHOD,
    PMIX_USERID, /* PMIx may add these two */
    PMIX_GRPID,
};

static bool is_understood(const pmix_info_t *directive)
{
    for (size_t i = 0; i < sizeof(understood) / sizeof(understood[0]); i++)
        if (strncmp(directive->key, understood[i], PMIX_MAX_KEYLEN) == 0)
            return true;
    return false;
}

static bool all_are_understood(const pmix_info_t *directives, size_t ndirs)
{
    for (size_t i = 0; i < ndirs; i++)
        if (!is_understood(&directives[i]))
            return false;
    return ndirs > 0;
}

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
    if (server == NULL || !all_are_understood(directives, ndirs))
        return PMIX_ERR_NOT_SUPPORTED;
    if (number < 0)
        return PMIX_ERR_BAD_PARAM;
    if (number == 0)
        return PMIX_OPERATION_SUCCEEDED;
    struct control_request *request =
        MEM_NEW((struct control_request){.base = {.kind = &control_kind},
                                         .targets = mem_dup(targets, ntargets * sizeof(*targets)),
                                         .count = targets != NULL ? ntargets : 0,
                                         .signal = number,
                                         .done = done,
                                         .done_data = done_data});
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
