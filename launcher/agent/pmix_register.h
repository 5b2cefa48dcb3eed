/* SPDX-License-Identifier: Apache-2.0 */
/* What PMIx is told about the job of an epoch, out of PREPARE. */
#pragma once

#include "agent/mpi_job.h"
#include "pmix/pmix_server.h"

/* Of this node. */
const char *pmix_register_name(const struct mpi_job *job);

int pmix_register(struct pmix_server *pmix, const struct mpi_job *from, const char *nspace,
                  struct error *err);
