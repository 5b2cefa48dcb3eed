/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PMIx library in this process. A process can start it only once, so it outlives the epochs,
 * and the first failure is the answer to each later request.
 */
#pragma once

#include "agent/mpi_job.h"
#include "base/error.h"
#include "io/loop.h"
#include "pmix/pmix_server.h"

struct mpi_pmix {
    struct pmix_server *server; /* NULL: it does not run */
    struct loop_fd *watch;
    struct runtime_dir *dir; /* for its files */
    char *problem;           /* why it could not be started; NULL: nobody has tried */
};

struct mpi_pmix_start {
    const char *module_path, *hostname;
    const struct pmix_server_ops *ops; /* borrowed */
    void *context;
};

/* Starts the library, if it does not run yet. */
int mpi_pmix_need(struct mpi_pmix *pmix, struct loop *loop, const struct mpi_pmix_start *start,
                  struct error *err);

/* Does not finalize PMIx: see mpi_host_destroy(). */
void mpi_pmix_leave(struct mpi_pmix *pmix);

/* The name of this node for PMIx. Borrowed. */
const char *pmix_register_name(const struct mpi_job *job);
int pmix_register(struct pmix_server *pmix, const struct mpi_job *from, const char *nspace,
                  struct error *err);
