/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent and hvdrun-pmix.so hand each other: a job, requests, and the operations by which
 * the server asks the agent. A change here needs a new PMIX_MODULE_VERSION (pmix_module.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "pmix/publish_store.h"

#define PMIX_EVERY_RANK (-2) /* in signals: all ranks of the namespace */

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

/* Any op but connected, finalized, aborted and log may be NULL. What it would do is then refused as
 * unsupported. Only `store` falls back to a store of this node. Memory handed to an op is borrowed
 * for the call. */
struct pmix_server_ops {
    void (*connected)(void *context, int rank);
    void (*finalized)(void *context, int rank);
    /* PMIx_Abort, MPI_Abort: the rank waits until this returns, then exits. `whole_job`:
     * it wants all ranks to end, as MPI_Abort does. */
    void (*aborted)(void *context, int rank, int status, const char *message, bool whole_job);
    void (*log)(void *context, enum log_level level, const char *line);
    /* A worker asks (PMIx_Job_control) for a signal to a rank or PMIX_EVERY_RANK. */
    void (*signal)(void *context, int rank, int signal);

    /* Several nodes only. All local participants have entered a fence, connect or group. `ranks`,
     * ascending, are those of all nodes that take part (count 0: all of the job). Together with
     * `operation`, they identify it. Answer with pmix_server_collect_reply(). */
    void (*collect)(void *context, uint64_t id, const char *operation, const int *ranks,
                    size_t count, const void *bytes, size_t length);
    /* Data of a rank on another node; answer with pmix_server_modex_reply(). */
    void (*modex)(void *context, uint64_t id, int rank);
    /* The outcome of pmix_server_modex_request(): ok, and the data to send back. */
    void (*modex_answer)(void *context, struct pmix_asker asker, bool ok, const void *bytes,
                         size_t length);
    /* Answer with pmix_server_store_reply(). */
    void (*store)(void *context, uint64_t id, const struct pmix_store_request *request);
    /* An event that other nodes should hear of, for their pmix_server_event(). */
    void (*event)(void *context, const void *bytes, size_t length);

    /* PMIx_Spawn, MPI_Comm_spawn: the rank waits until the job ends. */
    void (*spawn)(void *context, int rank);
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
