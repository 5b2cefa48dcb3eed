/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI on this node: what is known of each world, the frames to other nodes, and the sockets of
 * PMI-1. mpi_host.h has what all worlds share.
 */
#pragma once

#include <sys/types.h>

#include "agent/post.h"
#include "agent/rank_places.h"
#include "base/log.h"
#include "base/strv.h"
#include "io/loop.h"
#include "model/binding/binding.h"
#include "model/settings/words.h"
#include "pmi1/engine.h"
#include "pmix/pmix_server.h"
#include "wire/control.pb-c.h"

/* The MPI side of one epoch on this node: what the servers need to know about its workers. */

/* How the servers reach the workers, which are named by their index in PREPARE. */
struct mpi_job_ops {
    /* A worker asked that a rank of this node (or -2: all of them) gets a signal. */
    void (*signal)(void *context, int rank, int signal);
    pid_t (*pid)(void *context, int index); /* 0: does not run */
    /* Reads what it has written, so that there is room for more. */
    void (*read)(void *context, int index);
};

struct mpi_job {
    const struct mpi_job_ops *ops;
    void *context;
    const struct post *post;          /* of the epoch; borrowed until mpi_world_destroy() */
    const Hvdrun__Prepare *prepare;   /* borrowed until mpi_world_destroy() */
    const struct rank_places *places; /* of `prepare`; borrowed likewise */
    const enum mpi_kind *kinds;       /* of each app; borrowed likewise */
    char *const *reasons;             /* for these kinds, of each app; borrowed likewise */
    const int *app_np;                /* ranks of each app in the whole job */
    const char *module_path, *shm_dir, *job_id;
    const char *hostname;          /* gethostname(), for a job of one node */
    const struct binding *binding; /* by slot; NULL: not bound */
    bool oversubscribed;           /* more ranks than CPUs on this machine */
};

/*
 * mpi_world.c: a world is what MPI knows of one epoch. Workers are named by their index in PREPARE,
 * and ranks are those of this world.
 *
 * It looks at its workers for MPI that cannot work: 1, 5 and 20 seconds after their start.
 * A wrong kind of MPI fails silently: every process becomes a world of one. So there is a warning
 * if a process has an MPI library mapped and its rank never spoke to its server. It names the right
 * --mpi. A process that another launcher started gets no warning. Another warning is about a rank
 * that has exited without MPI_Finalize while others may wait for it: a second later, too. There is
 * one warning of each kind in an epoch.
 */
struct mpi_world {
    struct mpi_world *next;
    struct mpi_host *host;
    struct loop *loop;
    struct mpi_job job;
    struct pmix_server *pmix; /* that has its namespace; NULL: none has */
    struct pmi1_wire *pmi1;   /* NULL likewise */
    char *nspace;
    bool published; /* the store of all nodes has heard of this one */
    struct {
        struct loop_timer *timer;
        int looked;
        bool warned; /* of a wrong kind */
        int early;   /* index of one that ended well but without MPI_Finalize; -1: none */
    } look;
};

/* Adds to `env` what a worker needs to find its server, and to `hints` the settings of its MPI that
 * the user's settings override. `*keep_fd`: a descriptor that the worker inherits under its own
 * number, and that the caller closes after the spawn. -1: none. */
int mpi_world_worker(struct mpi_world *world, int index, struct strv *env, struct strv *hints,
                     int *keep_fd, struct error *err);
void mpi_world_spawned(struct mpi_world *world, int index, pid_t pid);
void mpi_world_exited(struct mpi_world *world, int index, int code, int signal);

/* Handles now what this worker sent before it ended. */
void mpi_world_collect(struct mpi_world *world, int index);

/* For mpi_host.c, which makes and destroys worlds. */
void mpi_world_open(struct mpi_world *world);
void mpi_world_open_pmi1(struct mpi_world *world);
void mpi_world_look(struct mpi_world *world); /* from now on */
void mpi_world_close(struct mpi_world *world);

int mpi_world_first(const struct mpi_world *world); /* the seat of its rank 0 */
/* The index of a rank, which is its local rank; -1: it is not here. */
int mpi_world_index(const struct mpi_world *world, int rank);
void mpi_world_abort(const struct mpi_world *world, int rank, int status, const char *text);
/* The ranks of an elastic job could only wait for each other. */
void mpi_world_refuse_spawn(const struct mpi_world *world, int rank);
/* Open MPI ends the process with _exit() after we answer: what it has printed before would be
 * lost. Until then it waits for the answer. */
void mpi_world_flush(const struct mpi_world *world, int rank);
/* The environment with which the worker of this rank was started; empty if it is not known. */
void mpi_world_given(const struct mpi_world *world, int rank, struct buf *out);
void mpi_too_large(const struct log *log, size_t length); /* an error: the data of one step */

/* pmi1_wire.c: the sockets under the PMI-1 engine: a socketpair per worker, whose other end is its
 * PMI_FD. */
struct pmi1_wire;

/* `ops`: what the engine leaves to the world, which is their context; all but `send` and
 * `spawn_refused`. */
struct pmi1_wire *pmi1_wire_create(struct mpi_world *world, const struct pmi1_ops *ops);
void pmi1_wire_destroy(struct pmi1_wire *wire);
struct pmi1_engine *pmi1_wire_engine(const struct pmi1_wire *wire);

/* Opens the worker's connection; `*worker_fd` is the end that it inherits, the caller's to close.
 */
int pmi1_wire_worker(struct pmi1_wire *wire, int local_rank, struct strv *env, int *worker_fd,
                     struct error *err);
enum pmi1_state pmi1_wire_state(const struct pmi1_wire *wire, int local_rank);
void pmi1_wire_collect(struct pmi1_wire *wire, int local_rank); /* reads what is there */

/*
 * mpi_relay.c: connects the MPI servers of this node (PMIx and our PMI-1 engine) with the driver.
 * Their messages to other nodes become MPI_* frames, and the frames that come back become calls.
 * Spawns and the names of PMI-1 need the driver in jobs of one node, too. It has no state.
 *
 * -1: more data than a message holds; nothing was sent. Those of a fence stay here then, and other
 * nodes ask for them.
 */
int mpi_relay_collect(const struct post *post, uint64_t token, const char *operation,
                      const int *ranks, size_t count, const void *bytes, size_t length);
int mpi_relay_barrier(const struct post *post, const char *bytes, size_t length); /* PMI-1 */
int mpi_relay_store(const struct post *post, uint64_t token,
                    const struct pmix_store_request *request);

void mpi_relay_modex(const struct post *post, uint64_t token, int rank);
/* Data that are too large for a message are reported as not found. */
void mpi_relay_modex_data(const struct post *post, struct pmix_asker asker, bool ok,
                          const void *bytes, size_t length);
void mpi_relay_name(const struct post *post, int rank, enum pmi1_name_request request,
                    const char *service, const char *port); /* PMI-1 */
void mpi_relay_rank_ended(const struct post *post, const char *nspace, int rank);
void mpi_relay_event(const struct post *post, const void *bytes, size_t length);
void mpi_relay_signal(const struct post *post, int rank, int signal); /* also PMIX_EVERY_RANK */
/* `given`: the environment with which the rank that asks was started, each variable with its NUL.
 * Open MPI hands all OMPI_* of it to the new ranks, although they get those of their own node.
 * -1: the request is too large. */
int mpi_relay_spawn(const struct post *post, uint64_t token, const struct pmix_spawn *request,
                    const struct buf *given);
/* The same over PMI-1. `number` is the seat of the rank. */
int mpi_relay_spawn_pmi1(const struct post *post, int rank, int number,
                         const struct pmi1_spawn *request);

/* Any MPI_* frame of the world's epoch, or SPAWNED, with the message of its type. Returns
 * what is wrong with it, or NULL. */
const char *mpi_relay_frame(const struct mpi_world *world, uint8_t type, const void *message);
