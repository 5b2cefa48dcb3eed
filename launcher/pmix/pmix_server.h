/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PMIx server, as the agent uses it. The PMIx library is not linked here. It comes with a
 * module of our own, hvdrun-pmix.so. pmix_server_load() opens that by its full path when a job
 * needs PMIx, so other jobs do not pay for it.
 *
 * Call everything below from the loop's thread. Only pmix_server_dispatch() calls the ops, also on
 * the loop's thread. They may call back into the server, but not stop it. The agent watches
 * pmix_server_fd() for reading and calls pmix_server_dispatch() when it is ready. It calls it once
 * more before it judges the exit of a worker, to know what that worker sent before it ended.
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

struct pmix_server;

/* The version and the file of the PMIx library that would serve MPI programs here. Opens the module
 * and starts nothing. The caller frees the texts; `file` is "" when unknown. -1: it cannot be
 * loaded. */
int pmix_server_version(const char *module_path, char **version, char **file, struct error *err);

/* NULL: the module or the PMIx library is missing or of another version; the text says which. */
struct pmix_server *pmix_server_load(const char *module_path, const struct pmix_server_ops *ops,
                                     void *context, struct error *err);

/* How many bytes the library needs for its files where it starts. */
uint64_t pmix_server_space(const struct pmix_server *server);

/* Starts the library: its files go into `tmpdir`, which exists and is removed by the caller after
 * pmix_server_stop(). Costs about 20 ms. -1 when PMIx was started in this process before. */
int pmix_server_start(struct pmix_server *server, const char *tmpdir, const char *hostname,
                      struct error *err);

int pmix_server_fd(const struct pmix_server *server);
void pmix_server_dispatch(struct pmix_server *server);

/* Registers a namespace and its local ranks. */
int pmix_server_job(struct pmix_server *server, const struct pmix_job *job, struct error *err);

/* Sets in `env` what a local rank needs to find the server: the PMIX_* variables, the names that
 * Open MPI programs read (OMPI_COMM_WORLD_RANK...), what makes Open MPI 4 ask (JSM_JSRUN_PORT), and
 * the temporary folders; in `hints` the Open MPI settings that give way to the user's. */
int pmix_server_worker_env(struct pmix_server *server, int rank, struct strv *env,
                           struct strv *hints, struct error *err);

/* For the answers to queries; optional. */
void pmix_server_worker_started(struct pmix_server *server, int rank, pid_t pid);
/* Tells the other workers that asked for such events. `signal` 0: it exited with `code`. */
void pmix_server_worker_ended(struct pmix_server *server, int rank, int code, int signal);

enum pmix_worker_state pmix_server_worker_state(const struct pmix_server *server, int rank);

/* Deregisters the namespace whose rank 0 has the number `first`, if there is one. With the last of
 * them, requests that wait for an answer end as failed. PMIx's thread may have locked up, as
 * libpmix 4.2 can when a worker is killed while it connects. Then this gives up after 5 s with a
 * warning, no further job can start, and pmix_server_stop() leaves the library as it is.
 */
void pmix_server_job_end(struct pmix_server *server, int first);

void pmix_server_stop(struct pmix_server *server); /* also the jobs; accepts NULL; frees */
/* Frees it, and leaves the library with its thread to the end of the process, which is near. */
void pmix_server_leave(struct pmix_server *server);

/* Several nodes. `bytes` are those of all nodes, concatenated; `round` is a number that is the same
 * on all of them, and of this operation alone. */
void pmix_server_collect_reply(struct pmix_server *server, uint64_t id, bool ok, uint64_t round,
                               const void *bytes, size_t length);
void pmix_server_modex_reply(struct pmix_server *server, uint64_t id, bool ok, const void *bytes,
                             size_t length);
/* Another node asks for the data of a local rank; ops->modex_answer follows. */
void pmix_server_modex_request(struct pmix_server *server, struct pmix_asker asker, int rank);
void pmix_server_store_reply(struct pmix_server *server, uint64_t id, enum store_status status,
                             const struct store_item *items, size_t count);
/* From another node's ops->event; what cannot be read is dropped with a warning. */
void pmix_server_event(struct pmix_server *server, const void *bytes, size_t length);
/* `nspace`: of the new ranks; used only if the result is PMIX_SPAWNED_OK. */
void pmix_server_spawn_reply(struct pmix_server *server, uint64_t id, enum pmix_spawn_result result,
                             const char *nspace);
