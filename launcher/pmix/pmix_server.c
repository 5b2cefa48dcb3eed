/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: opens the module, checks that it fits, and passes calls on. The module is never
 * closed again, since the PMIx library leaves threads and exit handlers behind. */
#include "pmix/pmix_server.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/module_open.h"

#define LARGE_JOB 100 /* ranks; of a smaller one there is less to give back than it would cost */

struct pmix_server {
    const struct pmix_module *module;
    struct server *inner; /* NULL until it is started */
    struct pmix_server_ops ops;
    void *context;
};

struct pmix_server *pmix_server_load(const char *module_path, const struct pmix_server_ops *ops,
                                     void *context, struct error *err)
{
    const struct pmix_module *module = module_open(module_path, PMIX_MODULE_KIND, err);
    if (module == NULL)
        return NULL;
    struct pmix_server *server = mem_alloc(sizeof(*server));
    *server = (struct pmix_server){.module = module, .ops = *ops, .context = context};
    return server;
}

/* The library comes with the module, so its own symbols are found through it. */
int pmix_server_version(const char *module_path, char **version, char **file, struct error *err)
{
    union {
        void *object;
        const char *(*version)(void);
    } symbol;
    Dl_info info;
    if (module_open(module_path, PMIX_MODULE_KIND, err) == NULL)
        return -1;
    void *handle = dlopen(module_path, RTLD_NOW | RTLD_LOCAL);
    symbol.object = handle == NULL ? NULL : dlsym(handle, "PMIx_Get_version");
    if (symbol.object == NULL)
        return error_set(err, "%s does not load a PMIx library: reinstall hvdrun", module_path);
    *version = mem_strdup(symbol.version());
    bool known = dladdr(symbol.object, &info) != 0 && info.dli_fname != NULL;
    *file = mem_strdup(known ? info.dli_fname : "");
    return 0;
}

uint64_t pmix_server_space(const struct pmix_server *server)
{
    return server->module->space();
}

int pmix_server_start(struct pmix_server *server, const char *tmpdir, const char *hostname,
                      struct error *err)
{
    server->inner = server->module->start(&server->ops, server->context, tmpdir, hostname, err);
    return server->inner != NULL ? 0 : -1;
}

void pmix_server_stop(struct pmix_server *server)
{
    if (server == NULL)
        return;
    if (server->inner != NULL)
        server->module->stop(server->inner);
    free(server);
}

void pmix_server_leave(struct pmix_server *server)
{
    free(server);
}

int pmix_server_fd(const struct pmix_server *server)
{
    return server->module->fd(server->inner);
}

void pmix_server_dispatch(struct pmix_server *server)
{
    server->module->dispatch(server->inner);
}

/* While PMIx copies what it is told of each rank, both copies are there: about 9 KiB for a rank, of
 * which it keeps a third. The rest goes back to the system. Otherwise it could stay ours until the
 * end, in each of many agents on one machine. */
int pmix_server_job(struct pmix_server *server, const struct pmix_job *job, struct error *err)
{
    int result = server->module->job(server->inner, job, err);
    if (job->size >= LARGE_JOB)
        malloc_trim(0);
    return result;
}

void pmix_server_job_end(struct pmix_server *server, int first)
{
    server->module->job_end(server->inner, first);
}

int pmix_server_worker_env(struct pmix_server *server, int rank, struct strv *env,
                           struct strv *hints, struct error *err)
{
    return server->module->worker_env(server->inner, rank, env, hints, err);
}

void pmix_server_worker_started(struct pmix_server *server, int rank, pid_t pid)
{
    server->module->worker_started(server->inner, rank, pid);
}

void pmix_server_worker_ended(struct pmix_server *server, int rank, int code, int signal)
{
    server->module->worker_ended(server->inner, rank, code, signal);
}

enum pmix_worker_state pmix_server_worker_state(const struct pmix_server *server, int rank)
{
    return server->module->worker_state(server->inner, rank);
}

void pmix_server_collect_reply(struct pmix_server *server, uint64_t id, bool ok, uint64_t round,
                               const void *bytes, size_t length)
{
    server->module->collect_reply(server->inner, id, ok, round, bytes, length);
}

void pmix_server_modex_reply(struct pmix_server *server, uint64_t id, bool ok, const void *bytes,
                             size_t length)
{
    server->module->modex_reply(server->inner, id, ok, bytes, length);
}

void pmix_server_modex_request(struct pmix_server *server, struct pmix_asker asker, int rank)
{
    server->module->modex_request(server->inner, asker, rank);
}

void pmix_server_store_reply(struct pmix_server *server, uint64_t id, enum store_status status,
                             const struct store_item *items, size_t count)
{
    server->module->store_reply(server->inner, id, status, items, count);
}

void pmix_server_event(struct pmix_server *server, const void *bytes, size_t length)
{
    server->module->event(server->inner, bytes, length);
}

void pmix_server_spawn_reply(struct pmix_server *server, uint64_t id, enum pmix_spawn_result result,
                             const char *nspace)
{
    server->module->spawn_reply(server->inner, id, result, nspace);
}
