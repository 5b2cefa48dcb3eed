/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PMIx server, as the agent uses it. The PMIx library is not linked here. It comes with a
 * module of our own, hvdrun-pmix.so. pmix_server_load() opens that by its full path when a job
 * needs PMIx, so other jobs do not pay for it.
 *
 * Call everything below, and the functions of the module, from the loop's thread.
 *
 * PMIx allows one start per process, early (while few descriptors are open). A job here is a
 * namespace: an epoch of an elastic job, or the ranks that a rank has spawned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strv.h"
#include "pmix/pmix_module.h"
#include "pmix/publish_store.h"

/* After its start, `server->module->fd(server->inner)` and so on call the module. */
struct pmix_server {
    const struct pmix_module *module;
    struct pmix_server_ops ops;
    void *context;
    struct server *inner; /* NULL: it was not started */
};

/* The version and the file of the PMIx library that would serve MPI programs here. Opens the module
 * and starts nothing. The caller frees the texts; `file` is "" when unknown. -1: it cannot be
 * loaded. */
int pmix_server_version(const char *module_path, char **version, char **file, struct error *err);

/* NULL: the module or the PMIx library is missing or of another version; the text says which. */
struct pmix_server *pmix_server_load(const char *module_path, const struct pmix_server_ops *ops,
                                     void *context, struct error *err);

/* Starts the library: its files go into `tmpdir`, which exists and is removed by the caller after
 * pmix_server_stop(). Costs about 20 ms. -1 when PMIx was started in this process before. */
int pmix_server_start(struct pmix_server *server, const char *tmpdir, const char *hostname,
                      struct error *err);

/* Registers a namespace and its local ranks. */
int pmix_server_job(struct pmix_server *server, const struct pmix_job *job, struct error *err);

void pmix_server_stop(struct pmix_server *server); /* also the jobs; accepts NULL; frees */
/* Frees it, and leaves the library with its thread to the end of the process, which is near. */
void pmix_server_leave(struct pmix_server *server);
