/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each file of the module offers to module.c, which composes them. PMIx calls the up_*
 * functions on its thread; they only queue. All others belong to the loop's thread.
 */
#pragma once

#include "pmix/module/server.h"

/* namespace.c */
int namespace_register(struct server *server, const struct pmix_job *job, struct error *err);
void namespace_end(struct server *server, int first);
void namespace_end_all(struct server *server);

/* client.c */
int worker_env(struct server *server, int rank, struct strv *env, struct strv *hints,
               struct error *err);

/* One file per operation of the server. */
pmix_status_t up_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t ninfo,
                           pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                           void *done_data);
pmix_status_t up_abort(const pmix_proc_t *proc, void *object, int status, const char message[],
                       pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                       size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                       void *done_data);
pmix_status_t up_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       pmix_modex_cbfunc_t done, void *done_data);
pmix_status_t up_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                        size_t ninfo, pmix_lookup_cbfunc_t done, void *done_data);
pmix_status_t up_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                           size_t ninfo, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                         size_t ninfo, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                 size_t ninfo, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t done,
                                   void *done_data);
pmix_status_t up_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                        pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done, void *done_data);
pmix_status_t up_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                       pmix_info_cbfunc_t done, void *done_data);
pmix_status_t up_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[],
                             size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                             pmix_info_cbfunc_t done, void *done_data);
pmix_status_t up_group(pmix_group_operation_t op, char name[], const pmix_proc_t procs[],
                       size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                       pmix_info_cbfunc_t done, void *done_data);
pmix_status_t up_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                       void *done_data);
void up_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
            const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done, void *done_data);

/* collective.c, dmodex.c, publish.c: answers that come from the agent. */
void collect_reply(struct server *server, uint64_t id, bool ok, uint64_t round, const void *bytes,
                   size_t length);
void modex_reply(struct server *server, uint64_t id, bool ok, const void *bytes, size_t length);
void modex_request(struct server *server, struct pmix_asker asker, int rank);
void store_reply(struct server *server, uint64_t id, enum store_status status,
                 const struct store_item *items, size_t count);
void modex_expire(struct server *server, int64_t now_ms);
void modex_worker_ended(struct server *server, const struct local *local);

/* client.c */
void spawn_reply(struct server *server, uint64_t id, enum pmix_spawn_result result,
                 const char *nspace);

/* events.c */
void events_worker_ended(struct server *server, const struct local *local, int code, int signal);
void events_from_afar(struct server *server, const void *bytes, size_t length);

/* query.c */
void up_tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t done,
                       void *done_data);

/*
 * collective.c: a collective operation, which is a fence, a connect, or a group. PMIx calls us
 * when all local participants have entered it. On one node these are all of them. Over several
 * nodes the agent sends the bytes to the others and brings back the bytes of all.
 *
 * Operations of one kind with the same participants differ by their order. The order is the same on
 * all nodes, because every participant has the same.
 */
struct collective {
    struct request base;
    char *operation; /* owned */
    pmix_proc_t *procs;
    size_t count;
    char *bytes; /* of this node's ranks; owned; NULL: none */
    size_t length;
    /* Called once, on the loop's thread. Takes `bytes` (NULL with length 0), which are of all
     * nodes. After collective_clear(), it frees the struct that this is the first member of.
     * `round` is the same on all nodes, and of this operation alone. */
    void (*finish)(struct collective *collective, pmix_status_t status, uint64_t round, char *bytes,
                   size_t length);
};

/* The texts and arrays are copied. */
void collective_init(struct collective *collective, const char *operation, const pmix_proc_t *procs,
                     size_t count, const char *bytes, size_t length);
void collective_clear(struct collective *collective);

void collective_push(struct server *server, struct collective *collective);  /* PMIx's thread */
void collective_begin(struct server *server, struct collective *collective); /* the loop's */

/* group.c; the names are what queries answer with. */
struct group {
    struct group *next;
    char *name;
    pmix_proc_t *members;
    size_t count, context;
};
void group_destroy_all(struct server *server);
