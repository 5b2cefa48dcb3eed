/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hvdrun-pmix.so exports: one symbol, a table of functions behind a
 * version. Raise the version with every change of this file or of the structs in pmix_types.h. So
 * an agent never calls into a module that was built for another one.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "pmix/pmix_types.h"

#define PMIX_MODULE_VERSION 5
/* for io/module_open.h */
#define PMIX_MODULE_KIND                                                                         \
    (&(const struct module_kind){                                                                \
        "hvdrun-pmix.so", "hvdrun_pmix_module", PMIX_MODULE_VERSION,                             \
        "MPI programs need the PMIx library: install the package libpmix2 on this host, or run " \
        "with --mpi=pmi1 (MPICH) or --mpi=none"})

struct server; /* the module's own */

struct pmix_module {
    int version;
    const char *hvdrun_version;
    uint64_t (*space)(void);
    struct server *(*start)(const struct pmix_server_ops *ops, void *context, const char *tmpdir,
                            const char *hostname, struct error *err);
    void (*stop)(struct server *server);
    int (*fd)(const struct server *server);
    void (*dispatch)(struct server *server);
    int (*job)(struct server *server, const struct pmix_job *job, struct error *err);
    void (*job_end)(struct server *server);
    int (*worker_env)(struct server *server, int rank, struct strv *env, struct strv *hints,
                      struct error *err);
    void (*worker_started)(struct server *server, int rank, pid_t pid);
    void (*worker_ended)(struct server *server, int rank, int code, int signal);
    enum pmix_worker_state (*worker_state)(const struct server *server, int rank);
    void (*collect_reply)(struct server *server, uint64_t id, bool ok, uint64_t round,
                          const void *bytes, size_t length);
    void (*modex_reply)(struct server *server, uint64_t id, bool ok, const void *bytes,
                        size_t length);
    void (*modex_request)(struct server *server, struct pmix_asker asker, int rank);
    void (*store_reply)(struct server *server, uint64_t id, enum store_status status,
                        const struct store_item *items, size_t count);
    void (*event)(struct server *server, const void *bytes, size_t length);
};
