/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_pmix.h"

#include <stdlib.h>

#include "base/mem.h"
#include "node/runtime_dir.h"

static void ready(void *context, int what)
{
    (void)what;
    const struct mpi_pmix *pmix = context;
    pmix_server_dispatch(pmix->server);
}

/* Loads the module and starts the library, if there is room for its files. */
static struct pmix_server *open_server(struct mpi_pmix *pmix, const struct mpi_pmix_start *start,
                                       struct error *err)
{
    pmix->dir = runtime_dir_create(err);
    struct pmix_server *server =
        pmix->dir == NULL ? NULL
                          : pmix_server_load(start->module_path, start->ops, start->context, err);
    if (server == NULL)
        return NULL;
    if (runtime_dir_room(pmix->dir, pmix_server_space(server), "PMIx", err) == 0 &&
        pmix_server_start(server, runtime_dir_path(pmix->dir), start->hostname, err) == 0)
        return server;
    pmix_server_stop(server);
    return NULL;
}

int mpi_pmix_need(struct mpi_pmix *pmix, struct loop *loop, const struct mpi_pmix_start *start,
                  struct error *err)
{
    if (pmix->server != NULL)
        return 0;
    if (pmix->problem != NULL)
        return error_set(err, "%s", pmix->problem);
    pmix->server = open_server(pmix, start, err);
    if (pmix->server == NULL) {
        pmix->problem = mem_strdup(err->text);
        return -1;
    }
    pmix->watch = loop_fd_create(loop, pmix_server_fd(pmix->server), ready, pmix);
    loop_fd_watch(pmix->watch, LOOP_READ);
    return 0;
}

void mpi_pmix_leave(struct mpi_pmix *pmix)
{
    loop_fd_destroy(pmix->watch);
    pmix_server_leave(pmix->server);
    runtime_dir_destroy(pmix->dir);
    free(pmix->problem);
}
