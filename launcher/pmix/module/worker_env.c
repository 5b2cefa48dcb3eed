/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a worker: what PMIx wants set, what Open MPI programs read about themselves,
 * and where temporary files go.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

/* The kernel takes no single variable of 128 KiB. */
#define VALUE_MAX ((size_t)120 << 10)

#define LIST_MAX ((size_t)1 << 16)

static void set_number(struct strv *env, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    strv_env_set(env, name, text);
}

static int from_pmix(const struct server_job *job, int rank, struct strv *env, struct error *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)rank);
    char **pairs = NULL;
    pmix_status_t status = PMIx_server_setup_fork(&proc, &pairs);
    for (char **pair = pairs; pair != NULL && *pair != NULL; pair++) {
        if (status == PMIX_SUCCESS)
            strv_env_put(env, *pair);
        free(*pair);
    }
    free(pairs);
    return status == PMIX_SUCCESS ? 0 : server_error(err, status, "prepare a worker for PMIx");
}

static void set_app_lists(const struct server_job *job, struct strv *env)
{
    struct buf counts AUTO_BUF = BUF_INIT(LIST_MAX);
    struct buf firsts AUTO_BUF = BUF_INIT(LIST_MAX);
    for (int i = 0; i < job->app_count; i++) {
        buf_printf(&counts, i > 0 ? " %d" : "%d", job->apps[i].np);
        buf_printf(&firsts, i > 0 ? " %d" : "%d", job->apps[i].first_rank);
    }
    set_number(env, "OMPI_NUM_APP_CTX", job->app_count);
    strv_env_set(env, "OMPI_APP_CTX_NUM_PROCS", buf_text(&counts));
    strv_env_set(env, "OMPI_FIRST_RANKS", buf_text(&firsts));
}

static void set_open_mpi(const struct server_job *job, const struct local *local, struct strv *env)
{
    int local_rank = job->local_rank_of[local->rank];
    const struct job_app *app = &job->apps[local->app];
    set_number(env, "OMPI_COMM_WORLD_RANK", local->rank);
    set_number(env, "OMPI_COMM_WORLD_SIZE", job->size);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_RANK", local_rank);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", job->local_count);
    set_number(env, "OMPI_COMM_WORLD_NODE_RANK", local_rank);
    set_number(env, "OMPI_UNIVERSE_SIZE", job->universe_size);
    set_number(env, "OMPI_WORLD_SIZE", job->size);
    set_number(env, "OMPI_WORLD_LOCAL_SIZE", job->local_count);
    set_number(env, "OMPI_MCA_num_procs", job->size);
    set_app_lists(job, env);
    strv_env_set(env, "OMPI_COMMAND", app->command);
    if (strlen(app->arguments) < VALUE_MAX)
        strv_env_set(env, "OMPI_ARGV", app->arguments);
    if (app->wdir != NULL)
        strv_env_set(env, "OMPI_MCA_initial_wdir", app->wdir);
}

static void set_hints(const struct server_job *job, struct strv *hints)
{
    /* What Open MPI picks anyway; but first each rank would try POSIX shared memory, with a file in
     * /dev/shm that a rank killed at that moment leaves behind. */
    strv_env_set(hints, "OMPI_MCA_shmem", "mmap");
    if (job->shm_dir != NULL) {
        strv_env_set(hints, "OMPI_MCA_btl_vader_backing_directory", job->shm_dir); /* 4 */
        strv_env_set(hints, "OMPI_MCA_btl_sm_backing_directory", job->shm_dir);    /* 5 */
    }
    if (job->oversubscribed)
        strv_env_set(hints, "OMPI_MCA_mpi_yield_when_idle", "1");
}

int worker_env(struct server *server, int number, struct strv *env, struct strv *hints,
               struct error *err)
{
    const struct local *local = server_local(server, number);
    if (local == NULL)
        return error_set(err, "rank %d is not one of this node's PMIx ranks", number);
    if (from_pmix(local->job, local->rank, env, err) < 0)
        return -1;
    set_open_mpi(local->job, local, env);
    strv_env_set(env, "PMIX_SERVER_TMPDIR", server->tmpdir);
    strv_env_set(env, "PMIX_SYSTEM_TMPDIR", server->tmpdir);
    strv_env_set(env, "OMPI_MCA_orte_tmpdir_base", server->tmpdir);
    /* Open MPI 4 asks PMIx only when it believes in a launcher it knows; any value will do. */
    strv_env_set(env, "JSM_JSRUN_PORT", "hvdrun");
    strv_env_set(env, "PRTE_LAUNCHED", "1");
    set_hints(local->job, hints);
    return 0;
}
