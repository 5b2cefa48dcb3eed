/* SPDX-License-Identifier: Apache-2.0 */
/* The module's own copy of a job, indexed by rank. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/server.h"

#define ARGUMENTS_MAX ((size_t)1 << 20)

static void copy_app(struct job_app *to, const struct pmix_job_app *from, const char *wdir)
{
    struct buf arguments AUTO_BUF = BUF_INIT(ARGUMENTS_MAX);
    const char *command = from->argv != NULL && from->argv[0] != NULL ? from->argv[0] : "";
    to->command = mem_strdup(command);
    for (char *const *word = from->argv; *command != '\0' && *word != NULL; word++)
        if (buf_printf(&arguments, "%s%s", word == from->argv ? "" : " ", *word) < 0)
            break;
    to->arguments = buf_take(&arguments);
    to->wdir = mem_strdup(from->wdir != NULL ? from->wdir : wdir);
    to->np = from->np;
    to->first_rank = from->first_rank;
}

static int app_of(const struct job *job, int rank)
{
    for (int i = 0; i < job->app_count; i++)
        if (rank >= job->apps[i].first_rank && rank < job->apps[i].first_rank + job->apps[i].np)
            return i;
    return 0;
}

static void copy_nodes(struct job *job, const struct pmix_job *from)
{
    size_t nodes = (size_t)from->node_count;
    job->node_of = mem_array((size_t)from->size, sizeof(*job->node_of));
    job->local_rank_of = mem_array((size_t)from->size, sizeof(*job->local_rank_of));
    job->node_sizes = mem_array(nodes, sizeof(*job->node_sizes));
    job->node_names = mem_array(nodes, sizeof(*job->node_names));
    for (int n = 0; n < from->node_count; n++) {
        job->node_names[n] = mem_strdup(from->nodes[n].name);
        job->node_sizes[n] = from->nodes[n].rank_count;
        for (int i = 0; i < from->nodes[n].rank_count; i++) {
            job->node_of[from->nodes[n].ranks[i]] = n;
            job->local_rank_of[from->nodes[n].ranks[i]] = i;
        }
    }
}

static void copy_locals(struct job *job, const struct pmix_job *from)
{
    const struct pmix_job_node *node = &from->nodes[from->my_node];
    job->local_count = node->rank_count;
    job->locals = mem_array((size_t)node->rank_count, sizeof(*job->locals));
    for (int i = 0; i < node->rank_count; i++)
        job->locals[i] =
            (struct local){.rank = node->ranks[i],
                           .app = app_of(job, node->ranks[i]),
                           .cpuset = from->cpusets != NULL ? mem_strdup(from->cpusets[i]) : NULL};
}

struct job *job_create(const struct pmix_job *from)
{
    struct job *job = mem_alloc(sizeof(*job));
    PMIX_LOAD_NSPACE(job->nspace, from->nspace);
    job->size = from->size;
    job->universe_size = from->universe_size > 0 ? from->universe_size : from->size;
    job->node_count = from->node_count;
    job->my_node = from->my_node;
    job->app_count = from->app_count;
    job->wdir = mem_strdup(from->wdir);
    job->shm_dir = mem_strdup(from->shm_dir);
    job->uid = from->uid;
    job->gid = from->gid;
    job->oversubscribed = from->oversubscribed;
    job->apps = mem_array((size_t)from->app_count, sizeof(*job->apps));
    for (int i = 0; i < from->app_count; i++)
        copy_app(&job->apps[i], &from->apps[i], from->wdir);
    copy_nodes(job, from);
    copy_locals(job, from);
    return job;
}

void job_destroy(struct job *job)
{
    if (job == NULL)
        return;
    for (int i = 0; i < job->app_count; i++) {
        free(job->apps[i].command);
        free(job->apps[i].arguments);
        free(job->apps[i].wdir);
    }
    for (int i = 0; i < job->node_count; i++)
        free(job->node_names[i]);
    for (int i = 0; i < job->local_count; i++)
        free(job->locals[i].cpuset);
    free(job->apps);
    free(job->node_names);
    free(job->node_sizes);
    free(job->node_of);
    free(job->local_rank_of);
    free(job->locals);
    free(job->wdir);
    free(job->shm_dir);
    free(job);
}
