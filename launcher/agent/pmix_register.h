/* SPDX-License-Identifier: Apache-2.0 */
/* Registers the job of an epoch with PMIx, as PREPARE describes it. */
#pragma once

#include "agent/mpi_job.h"
#include "pmix/pmix_server.h"

/* The name of this node for PMIx. Borrowed. */
const char *pmix_register_name(const struct mpi_job *job);

int pmix_register(struct pmix_server *pmix, const struct mpi_job *from, const char *nspace,
                  struct error *err);
