/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent and hvdrun-pmix.so hand each other: a job, requests, and the operations by which
 * the server asks the agent. The module exports one symbol, a table of functions behind a version.
 * Raise the version with every change of this file. So an agent never calls into a module that was
 * built for another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strv.h"
#include "pmix/publish_store.h"

#define PMIX_MODULE_VERSION 9
/* for io/module_open.h */
#define PMIX_MODULE_KIND                                                                          \
    (&(const struct module_kind){"hvdrun-pmix.so", "hvdrun_pmix_module", PMIX_MODULE_VERSION,     \
                                 "MPI programs need the PMIx library, 4.2 or newer: install the " \
                                 "package libpmix2 on this host, or run "                         \
                                 "with --mpi=pmi1 (MPICH) or --mpi=none"})

#define PMIX_EVERY_RANK (-2) /* in signals: all ranks of all namespaces */

/* The source of a request for the data of one of our ranks; comes back with the answer. */
struct pmix_asker {
    uint32_t node;
    uint64_t token;
};

/* A request to the store that serves all nodes; borrowed for the call. */
struct pmix_store_request {
    enum { STORE_ASK_PUBLISH, STORE_ASK_LOOKUP, STORE_ASK_UNPUBLISH } kind;
    struct store_owner owner;
    enum store_range range;
    enum store_keep keep;           /* publish */
    const struct store_item *items; /* publish */
    size_t item_count;
    char *const *keys; /* lookup, unpublish; NULL-ended */
    size_t wait_for;   /* lookup: keys that must be there before the answer */
    int timeout_s;     /* lookup; 0: none */
};

/* PMIx_Spawn, MPI_Comm_spawn; borrowed for the call. */
struct pmix_spawn_app {
    char *const *argv; /* NULL-ended, as is env */
    char *const *env;  /* NAME=value of this program alone */
    const char *wdir;  /* NULL: that of the job */
    const char *hosts; /* "a,b:2": only on these; NULL: on any */
    int np;
};
struct pmix_spawn {
    int rank; /* that asks */
    const struct pmix_spawn_app *apps;
    size_t app_count;
};
enum pmix_spawn_result {
    PMIX_SPAWNED_OK,
    PMIX_SPAWN_NO_ROOM,   /* fewer slots are free, or a host is not one of the job */
    PMIX_SPAWN_NOT_FOUND, /* a program cannot be started */
    PMIX_SPAWN_FAILED,
};

/* The namespace of ranks: the job's id and the epoch. */
#define PMIX_NSPACE_FORMAT "%s@%u"

struct pmix_process {
    const char *nspace; /* one of its table */
    const char *host;
    int rank;
    pid_t pid;
    bool ended;
    int exit_code; /* 128 + the signal that ended it */
};

/* What tools get to know. */
struct pmix_table {
    struct strv nspaces;
    char *program; /* "": not known, as a job can have several */
    struct pmix_process *rows;
    size_t count;
};

/* A job can have several namespaces at a time, since ranks can spawn others. A rank below is a
 * number among those of all of them: the first of its namespace, and its rank there.
 *
 * Any op but aborted and log may be NULL, and a server for tools needs only log. What it would do
 * is then refused as unsupported. Only `store` falls back to a store of this node. Memory handed to
 * an op is borrowed for the call. */
struct pmix_server_ops {
    /* PMIx_Abort, MPI_Abort: the rank waits until this returns, then exits. `whole_job`:
     * it wants all ranks to end, as MPI_Abort does. */
    void (*aborted)(void *context, int rank, int status, const char *message, bool whole_job);
    void (*log)(void *context, enum log_level level, const char *line);
    /* A worker asks (PMIx_Job_control) for a signal to a rank or PMIX_EVERY_RANK. */
    void (*signal)(void *context, int rank, int signal);

    /* Several nodes only. All local participants have entered a fence, connect or group. `ranks`,
     * ascending, are those of all nodes that take part (count 0: all of the namespace whose rank 0
     * is `ranks[0]`). Together with `operation`, they identify it. Answer with
     * collect_reply(). */
    void (*collect)(void *context, uint64_t id, const char *operation, const int *ranks,
                    size_t count, const void *bytes, size_t length);
    /* Data of a rank on another node; answer with modex_reply(). */
    void (*modex)(void *context, uint64_t id, int rank);
    /* The outcome of modex_request(): ok, and the data to send back. */
    void (*modex_answer)(void *context, struct pmix_asker asker, bool ok, const void *bytes,
                         size_t length);
    /* Answer with store_reply(). */
    void (*store)(void *context, uint64_t id, const struct pmix_store_request *request);
    /* An event that other nodes should hear of, for their event(). */
    void (*event)(void *context, const void *bytes, size_t length);

    /* Answer with spawn_reply(); until then the rank waits. */
    void (*spawn)(void *context, uint64_t id, const struct pmix_spawn *request);

    /* Makes it a server for tools, which has no job and serves nothing but the table, borrowed
     * until the next call. NULL: it is not known now. */
    const struct pmix_table *(*processes)(void *context);
};

struct pmix_job_node {
    const char *name; /* what gethostname gives to its processes */
    const int *ranks; /* ascending */
    int rank_count;
};

struct pmix_job_app {
    char *const *argv;
    const char *wdir; /* NULL: the job's */
    int np, first_rank;
};

/* Borrowed for the call of pmix_server_job(). */
struct pmix_job {
    const char *nspace; /* unique to the job and epoch, at most 200 bytes */
    int size;
    int universe_size; /* 0: as size */
    int first;         /* the number of its rank 0; those of two namespaces do not overlap */
    const char *parent_nspace; /* of the rank that has spawned it; NULL: none has */
    int parent_rank;           /* in that namespace */
    const struct pmix_job_node *nodes;
    int node_count, my_node;
    const struct pmix_job_app *apps; /* ranks are consecutive within an app */
    int app_count;
    uid_t uid;
    gid_t gid;
    const char *wdir;
    /* The folder for the memory that Open MPI's ranks share. NULL: its own choice, /dev/shm, where
     * killed ranks leave files. It holds nothing else and is on tmpfs, since messages go through
     * it. Each node needs one: Open MPI names the files after gethostname(), so simulated hosts on
     * one machine would collide. It is emptied when the job ends; the caller removes it. */
    const char *shm_dir;
    bool oversubscribed;        /* more ranks than CPUs: workers yield while they wait */
    const char *const *cpusets; /* "0-3" for each local rank; NULL: not bound or not known */
};

enum pmix_worker_state {
    PMIX_WORKER_SILENT,    /* never connected: no PMIx program, or it ended before it connected */
    PMIX_WORKER_CONNECTED, /* when it ends in this state it left without a finalize */
    PMIX_WORKER_FINALIZED,
    PMIX_WORKER_ABORTED,
};

struct server; /* the module's own */

/* Only dispatch() calls the ops, on the loop's thread, as all of these are called. The ops may call
 * back into the server, but not stop it. The agent watches fd() for reading and calls dispatch()
 * when it is ready. It calls it once more before it judges the exit of a worker, to know what that
 * worker sent before it ended. */
struct pmix_module {
    int version;
    const char *hvdrun_version;
    uint64_t (*space)(void); /* how many bytes the library needs for its files where it starts */
    struct server *(*start)(const struct pmix_server_ops *ops, void *context, const char *tmpdir,
                            const char *hostname, struct error *err);
    void (*stop)(struct server *server);
    int (*fd)(const struct server *server);
    void (*dispatch)(struct server *server);
    int (*job)(struct server *server, const struct pmix_job *job, struct error *err);
    /* Deregisters the namespace whose rank 0 has the number `first`, if there is one. With the last
     * of them, requests that wait for an answer end as failed. PMIx's thread may have locked up, as
     * libpmix 4.2 can when a worker is killed while it connects. Then this gives up after 5 s with
     * a warning, no further job can start, and stop() leaves the library as it is. */
    void (*job_end)(struct server *server, int first);
    /* Sets in `env` what a local rank needs to find the server: the PMIX_* variables, the names
     * that Open MPI programs read (OMPI_COMM_WORLD_RANK...), what makes Open MPI 4 ask
     * (JSM_JSRUN_PORT), and the temporary folders; in `hints` the Open MPI settings that give way
     * to the user's. */
    int (*worker_env)(struct server *server, int rank, struct strv *env, struct strv *hints,
                      struct error *err);
    void (*worker_started)(struct server *server, int rank, pid_t pid); /* for queries; optional */
    /* Tells the other workers that asked for such events. `signal` 0: it exited with `code`. */
    void (*worker_ended)(struct server *server, int rank, int code, int signal);
    enum pmix_worker_state (*worker_state)(const struct server *server, int rank);
    /* Several nodes. `bytes` are those of all nodes, concatenated; `round` is a number that is the
     * same on all of them, and of this operation alone. */
    void (*collect_reply)(struct server *server, uint64_t id, bool ok, uint64_t round,
                          const void *bytes, size_t length);
    void (*modex_reply)(struct server *server, uint64_t id, bool ok, const void *bytes,
                        size_t length);
    /* Another node asks for the data of a local rank; ops->modex_answer follows. */
    void (*modex_request)(struct server *server, struct pmix_asker asker, int rank);
    void (*store_reply)(struct server *server, uint64_t id, enum store_status status,
                        const struct store_item *items, size_t count);
    /* From another node's ops->event; what cannot be read is dropped with a warning. */
    void (*event)(struct server *server, const void *bytes, size_t length);
    /* `nspace`: of the new ranks; used only if the result is PMIX_SPAWNED_OK. */
    void (*spawn_reply)(struct server *server, uint64_t id, enum pmix_spawn_result result,
                        const char *nspace);
};
