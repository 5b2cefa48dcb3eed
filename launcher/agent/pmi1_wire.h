/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets under the PMI-1 engine: a socketpair per worker, whose other end is its PMI_FD. */
#pragma once

#include "agent/mpi_job.h"
#include "base/log.h"
#include "base/strv.h"
#include "io/loop.h"
#include "pmi1/engine.h"

struct pmi1_wire;

/* What the engine leaves to its owner; see pmi1/engine.h. */
struct pmi1_wire_ops {
    void (*aborted)(void *context, int rank, int code, const char *text);
    void (*spawn)(void *context, int rank, const struct pmi1_spawn *request);
    void (*barrier_in)(void *context, const char *bytes, size_t length);
    void (*name)(void *context, int rank, enum pmi1_name_request request, const char *service,
                 const char *port);
};

struct pmi1_wire *pmi1_wire_create(struct loop *loop, const struct log *log,
                                   const struct mpi_job *job, const char *kvsname,
                                   const struct pmi1_wire_ops *ops, void *context);
void pmi1_wire_destroy(struct pmi1_wire *wire);

/* Opens the worker's connection; `*worker_fd` is the end that it inherits, the caller's to close.
 */
int pmi1_wire_worker(struct pmi1_wire *wire, int local_rank, struct strv *env, int *worker_fd,
                     struct error *err);
bool pmi1_wire_has_spoken(const struct pmi1_wire *wire, int local_rank);
bool pmi1_wire_has_finalized(const struct pmi1_wire *wire, int local_rank);
void pmi1_wire_collect(struct pmi1_wire *wire, int local_rank); /* reads what is there */

int pmi1_wire_barrier_out(struct pmi1_wire *wire, const char *bytes, size_t length,
                          struct error *err);
void pmi1_wire_spawn_reply(struct pmi1_wire *wire, int rank, bool ok);
void pmi1_wire_name_reply(struct pmi1_wire *wire, int rank, enum pmi1_name_request request,
                          const char *port);
