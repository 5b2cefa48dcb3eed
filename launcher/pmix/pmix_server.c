/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: opens the module and checks that it fits. The module is never
 * closed again, since the PMIx library leaves threads and exit handlers behind. */
#include "pmix/pmix_server.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/module_open.h"

#define LARGE_JOB 100 /* ranks; of a smaller one there is less to give back than it would cost */

struct pmix_server *pmix_server_load(const char *module_path, const struct pmix_server_ops *ops,
                                     void *context, struct error *err)
{
    const struct pmix_module *module = module_open(module_path, PMIX_MODULE_KIND, err);
    if (module == NULL)
        return NULL;
    return MEM_NEW((struct pmix_server){.module = module, .ops = *ops, .context = context});
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
