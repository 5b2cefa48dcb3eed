/* SPDX-License-Identifier: Apache-2.0 */
/* The limits, states and operations that all files of the PMI-1 engine share. */
#pragma once

#include <stddef.h>

#include "base/strv.h"

/* The limits that workers get from us; the same as Hydra's. */
#define PMI1_KVSNAME_MAX 256
#define PMI1_KEY_MAX 64
#define PMI1_VALUE_MAX 1024

#define PMI1_MAPPING_KEY "PMI_process_mapping" /* from which ranks learn who shares a node */

/* How far a rank has come. A rank that exits in PMI1_RUNNING left without a finalize, and others
 * may wait for it in a barrier. That and PMI1_BROKEN are bad ends. */
enum pmi1_state {
    PMI1_SILENT, /* has said nothing */
    PMI1_RUNNING,
    PMI1_BARRIER, /* waits in it */
    PMI1_FINALIZED,
    PMI1_ABORTED,
    PMI1_BROKEN /* has broken the protocol */
};

enum pmi1_name_request { PMI1_PUBLISH, PMI1_LOOKUP, PMI1_UNPUBLISH };

/* MPI_Comm_spawn. */
struct pmi1_spawn_app {
    struct strv argv;
    char *wdir;  /* NULL: that of the job */
    char *hosts; /* "a,b:2": only on these; NULL: on any */
    int np;
};
struct pmi1_spawn {
    struct pmi1_spawn_app *apps;
    size_t app_count, room;
    struct strv preput; /* a key, its value, ... that the new ranks find in their space */
};

/* Bytes and texts are borrowed for the call. An op must not destroy the engine. */
struct pmi1_ops {
    void (*send)(void *context, int rank, const char *bytes, size_t length);
    /* MPI_Abort. MPICH does not exit on its own: the rank now waits to be killed. So the caller
     * kills it and takes `code` for its exit status. Its further bytes are ignored. */
    void (*abort)(void *context, int rank, int code, const char *text);
    /* Only with several nodes: all local ranks are in the barrier; `bytes` are their new pairs. */
    void (*barrier_in)(void *context, const char *bytes, size_t length);
    /* Answer each request once with pmi1_name_reply(); until then the rank waits. `port` is NULL
     * but for PMI1_PUBLISH. */
    void (*name)(void *context, int rank, enum pmi1_name_request request, const char *service,
                 const char *port);
    /* Answer with pmi1_spawn_reply(); until then the rank waits. */
    void (*spawn)(void *context, int rank, const struct pmi1_spawn *request);
    /* A request to spawn has `what`, which nobody here knows. At its end, the rank gets an error
     * for its answer. If its end does not come in time, call pmi1_spawn_unended(). */
    void (*spawn_refused)(void *context, int rank, const char *what);
};
