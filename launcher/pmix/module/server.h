/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one server of the module, with its own copy of each job (namespace), and what all operations
 * need of it. Only server_active(), server_ok(), server_error() and server_is_alone() may be called
 * on PMIx's thread.
 */
#pragma once

#include <pmix.h>
#include <pmix_server.h>
#include <stdatomic.h>

#include "pmix/module/bridge.h"
#include "pmix/module/infos.h"
#include "pmix/pmix_module.h"

struct server_job;

struct local {
    const struct server_job *job;
    int rank, app; /* rank: in its namespace */
    enum pmix_worker_state state;
    int connections; /* that it has not finalized; only PMIx's thread knows */
    pid_t pid;
    bool ended;
    int exit_code;
    char *cpuset;
};

struct job_app {
    char *command; /* argv[0] */
    char *arguments;
    char *wdir;
    int np, first_rank;
};

/* A copy of the agent's struct pmix_job, arranged for lookups by rank. */
struct server_job {
    struct server_job *next;
    pmix_nspace_t nspace;
    pmix_proc_t parent; /* an empty namespace: none */
    int first;          /* the number of its rank 0 */
    int size, universe_size, node_count, my_node, local_count, app_count;
    struct local *locals;
    int *node_of;       /* of each rank */
    int *local_rank_of; /* of each rank */
    int *node_sizes;
    char **node_names;
    struct job_app *apps;
    char *shm_dir;
    uid_t uid;
    gid_t gid;
    bool oversubscribed;
};

struct group;

struct server {
    struct pmix_server_ops ops;
    void *context;
    struct bridge bridge;
    int poll_fd, timer_fd;
    char *nspace; /* of the server itself */
    char *tmpdir;
    struct server_job *jobs; /* NULL between epochs */
    atomic_bool alone;       /* they have one node */
    atomic_uint tools;       /* that have been given a name (query.c) */
    bool stuck; /* PMIx's thread does not answer (namespace.c): it gets no further request */
    struct publish_store *store;
    struct group *groups;
    uint64_t last_round;       /* of collectives on one node */
    int64_t modex_deadline_ms; /* monotonic; -1: nobody waits for data with a limit */
};

/* The server that PMIx's callbacks work for; NULL when it is stopped. */
struct server *server_active(void);
/* Makes it the active one. False: PMIx was started in this process before. */
bool server_claim(struct server *server, struct error *err);
void server_release(void); /* no server is active any more */

struct server_job *server_job_named(const struct server *server, const char *nspace); /* or NULL */
struct server_job *server_job_with(const struct server *server, int number);          /* likewise */
/* NULL: it is not on this node. */
struct local *server_local(const struct server *server, int number);
struct local *server_local_proc(const struct server *server, const pmix_proc_t *proc);
/* The number of a rank of any node; -1: it is not known, or not a single rank. */
int server_number(const struct server *server, const pmix_proc_t *proc);
int local_number(const struct local *local);
bool server_is_alone(const struct server *server); /* the job has one node */
void server_log(const struct server *server, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of the library itself, for -v; an empty one is left out. */
void server_complain(const struct server *server, const char *line, size_t length);
/* After each change of the store, or of modex_deadline_ms. */
void server_arm_timer(struct server *server);
/* Fills `err` with "cannot <what>: <PMIx's text>". Returns -1. */
int server_error(struct error *err, pmix_status_t status, const char *what);
bool server_ok(pmix_status_t status);
long server_library_major(void); /* of the library that is loaded */

struct server_job *server_job_create(const struct pmix_job *from);
void server_job_destroy(struct server_job *job);
int server_app(const struct server_job *job, int rank); /* the number of its app */

/*
 * What the PMIx library prints to standard error while it works for us: plugins of another version,
 * no compression, no space. It prints before any caller knows whether that matters. So the lines
 * become messages for -v, and the caller's own error says what matters.
 */
struct complaints {
    int file, stderr_fd; /* -1: standard error stays as it is */
};

/* Between these two, standard error of the process is a file of our own. For the loop's thread
 * only. */
void complaints_begin(struct complaints *complaints);
/* Tells each line that was printed. */
void complaints_end(struct complaints *complaints, const struct server *server);
