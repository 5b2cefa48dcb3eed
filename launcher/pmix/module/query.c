/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx_Query_info, as far as the launcher knows the answer. Each key that it does not know is left
 * out of the answer, and the status says so: all, some, or none of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

#define NAMES_MAX ((size_t)4 << 20)
#define KEYS_MAX 64 /* of a tool */

struct query_request {
    struct request base;
    pmix_proc_t asker;
    struct strv keys;
    struct strv groups, nspaces; /* that each key asks about; "" for none */
    pmix_info_cbfunc_t done;
    void *done_data;
};

static void request_free(struct query_request *request)
{
    strv_destroy(&request->keys);
    strv_destroy(&request->groups);
    strv_destroy(&request->nspaces);
    free(request);
}

static void finish(struct query_request *request, pmix_status_t status, struct infos *list)
{
    bool some = list != NULL && list->count > 0;
    request->done(status, some ? list->items : NULL, some ? list->count : 0, request->done_data,
                  list != NULL ? infos_free : NULL, list);
    request_free(request);
}

static pmix_proc_state_t state_of(bool ended, int exit_code, enum pmix_worker_state state)
{
    if (ended)
        return exit_code == 0 ? PMIX_PROC_STATE_TERMINATED : PMIX_PROC_STATE_TERM_NON_ZERO;
    return state == PMIX_WORKER_SILENT ? PMIX_PROC_STATE_RUNNING : PMIX_PROC_STATE_CONNECTED;
}

/* Of all namespaces, with commas between them. */
static void add_namespaces(const struct server *server, struct infos *list, const char *key)
{
    struct buf names AUTO_BUF = BUF_INIT(NAMES_MAX);
    for (const struct server_job *job = server->jobs; job != NULL; job = job->next)
        buf_printf(&names, "%s%s", names.length > 0 ? "," : "", job->nspace);
    infos_add_text(list, key, buf_text(&names));
}

static void add_table(const struct server *server, const struct server_job *job, struct infos *list,
                      const char *key, bool local_only)
{
    pmix_proc_info_t *table = mem_array((size_t)job->size, sizeof(*table));
    size_t count = 0;
    for (int rank = 0; rank < job->size; rank++) {
        const struct local *local = server_local(server, job->first + rank);
        if (local == NULL && local_only)
            continue;
        pmix_proc_info_t *row = &table[count++];
        PMIX_LOAD_PROCID(&row->proc, job->nspace, (pmix_rank_t)rank);
        row->hostname = job->node_names[job->node_of[rank]];
        row->executable_name = job->apps[server_app(job, rank)].command;
        if (local == NULL)
            continue;
        row->pid = local->pid;
        row->exit_code = local->exit_code;
        row->state = state_of(local->ended, local->exit_code, local->state);
    }
    infos_add_array(list, key, PMIX_PROC_INFO, table, count);
    free(table);
}

static void add_group_names(const struct server *server, struct infos *list, const char *key)
{
    struct strv names AUTO_STRV = STRV_INIT;
    for (const struct group *group = server->groups; group != NULL; group = group->next)
        strv_add(&names, group->name);
    infos_add_array(list, key, PMIX_STRING, names.items, names.count);
}

static bool add_group_members(const struct server *server, struct infos *list, const char *key,
                              const char *name)
{
    for (const struct group *group = server->groups; group != NULL; group = group->next) {
        if (strcmp(group->name, name) != 0)
            continue;
        infos_add_array(list, key, PMIX_PROC, group->members, group->count);
        return true;
    }
    return false;
}

static void add_group_count(const struct server *server, struct infos *list, const char *key)
{
    size_t count = 0;
    for (const struct group *group = server->groups; group != NULL; group = group->next)
        count++;
    infos_add(list, key, &count, PMIX_SIZE);
}

static pmix_status_t answer(const struct server *server, const struct server_job *job,
                            struct infos *list, const char *key, const char *group)
{
    if (job == NULL)
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        add_namespaces(server, list, key);
    else if (strcmp(key, PMIX_QUERY_PROC_TABLE) == 0)
        add_table(server, job, list, key, false);
    else if (strcmp(key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0)
        add_table(server, job, list, key, true);
    else if (strcmp(key, PMIX_QUERY_NUM_GROUPS) == 0)
        add_group_count(server, list, key);
    else if (strcmp(key, PMIX_QUERY_GROUP_NAMES) == 0)
        add_group_names(server, list, key);
    else if (strcmp(key, PMIX_QUERY_GROUP_MEMBERSHIP) == 0)
        return add_group_members(server, list, key, group) ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
    else
        return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_SUCCESS;
}

static pmix_status_t answer_rank(const struct server *server, const struct query_request *request,
                                 size_t i, struct infos *list)
{
    const char *nspace = request->nspaces.items[i];
    const struct server_job *job =
        server_job_named(server, nspace[0] != '\0' ? nspace : request->asker.nspace);
    if (job == NULL && nspace[0] == '\0') /* libpmix 4.2 does not always say who asks */
        job = server->jobs;
    return answer(server, job, list, request->keys.items[i], request->groups.items[i]);
}

/*
 * Tools have a server in a process of its own: libpmix 4.2 counts what a tool says into the fences
 * of the ranks, and ends the process if a tool that it refuses has gone. So none ever meets the
 * server of a job. Every tool is let in, and the op of the command cuts those of others at each
 * question.
 */

/* PMIx's thread. A tool has given itself a name, or gets one. */
void up_tool_connected(pmix_info_t *info, size_t ninfo, pmix_tool_connection_cbfunc_t done,
                       void *done_data)
{
    struct server *server = server_active();
    pmix_proc_t proc;
    const char *nspace = infos_text(info, ninfo, PMIX_NSPACE);
    const pmix_info_t *rank = infos_find(info, ninfo, PMIX_RANK);
    char *name AUTO_FREE = nspace != NULL
                               ? mem_strdup(nspace)
                               : mem_printf("hvdrun-tool-%u", atomic_fetch_add(&server->tools, 1));
    bool ranked = rank != NULL && rank->value.type == PMIX_PROC_RANK;
    PMIX_LOAD_PROCID(&proc, name, ranked ? rank->value.data.rank : 0);
    done(PMIX_SUCCESS, &proc, done_data);
}

/* Of one namespace; "": of all. */
static void add_tool_table(struct infos *list, const char *key, const struct pmix_table *from,
                           const char *nspace)
{
    pmix_proc_info_t *table = mem_array(from->count + 1, sizeof(*table));
    size_t kept = 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct pmix_process *process = &from->rows[i];
        if (nspace[0] != '\0' && strcmp(process->nspace, nspace) != 0)
            continue;
        pmix_proc_info_t *row = &table[kept++];
        PMIX_LOAD_PROCID(&row->proc, process->nspace, (pmix_rank_t)process->rank);
        row->hostname = (char *)(uintptr_t)process->host; /* only read */
        row->executable_name = (char *)(uintptr_t)from->program;
        row->pid = process->pid;
        row->exit_code = process->exit_code;
        row->state = state_of(process->ended, process->exit_code, PMIX_WORKER_SILENT);
    }
    infos_add_array(list, key, PMIX_PROC_INFO, table, kept);
    free(table);
}

static bool has_namespace(const struct pmix_table *table, const char *nspace)
{
    size_t i = 0;
    while (i < table->nspaces.count && strcmp(table->nspaces.items[i], nspace) != 0)
        i++;
    return nspace[0] == '\0' || i < table->nspaces.count;
}

static void add_tool_namespaces(struct infos *list, const struct pmix_table *table)
{
    char *names AUTO_FREE = strv_join(table->nspaces.items, table->nspaces.count, ",");
    infos_add_text(list, PMIX_QUERY_NAMESPACES, names);
}

/* To a key that a tool asks for. `nspace`: of this namespace alone; "": of all. */
static pmix_status_t answer_tool(const struct pmix_table *table, const char *key,
                                 const char *nspace, struct infos *list)
{
    if (!has_namespace(table, nspace))
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        add_tool_namespaces(list, table);
    else if (strcmp(key, PMIX_QUERY_PROC_TABLE) == 0)
        add_tool_table(list, key, table, nspace);
    else
        return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_SUCCESS;
}

static void run(struct server *server, struct request *base)
{
    struct query_request *request = (struct query_request *)base;
    struct infos *list = mem_alloc(sizeof(*list));
    bool of_tool = server->ops.processes != NULL;
    const struct pmix_table *table = of_tool ? server->ops.processes(server->context) : NULL;
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    size_t known = 0;
    for (size_t i = 0; i < request->keys.count && (table != NULL || !of_tool); i++) {
        pmix_status_t said =
            of_tool ? answer_tool(table, request->keys.items[i], request->nspaces.items[i], list)
                    : answer_rank(server, request, i, list);
        known += said == PMIX_SUCCESS;
        status = said == PMIX_ERR_NOT_FOUND ? said : status;
    }
    if (of_tool && table == NULL)
        status = PMIX_ERR_UNREACH;
    else if (known > 0)
        status = known < request->keys.count ? PMIX_QUERY_PARTIAL_SUCCESS : PMIX_SUCCESS;
    finish(request, status, list);
}

static void drop(struct request *base)
{
    finish((struct query_request *)base, PMIX_ERR_UNREACH, NULL);
}

static const struct request_kind query_kind = {run, drop};

/* A tool that asks twice gets one answer, as tables can be large. */
static bool is_asked(const struct query_request *request, const char *key, const char *nspace)
{
    for (size_t i = 0; i < request->keys.count; i++)
        if (strcmp(request->keys.items[i], key) == 0 &&
            strcmp(request->nspaces.items[i], nspace) == 0)
            return true;
    return false;
}

static void add_keys(struct query_request *request, const pmix_query_t *query, bool of_tool)
{
    const char *group = infos_text(query->qualifiers, query->nqual, PMIX_GROUP_ID);
    const char *nspace = infos_text(query->qualifiers, query->nqual, PMIX_NSPACE);
    for (char **key = query->keys; key != NULL && *key != NULL; key++) {
        if (of_tool && (request->keys.count > KEYS_MAX ||
                        is_asked(request, *key, nspace != NULL ? nspace : "")))
            continue;
        strv_add(&request->keys, *key);
        strv_add(&request->groups, group != NULL ? group : "");
        strv_add(&request->nspaces, nspace != NULL ? nspace : "");
    }
}

pmix_status_t up_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                       pmix_info_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    bool of_tool = server->ops.processes != NULL;
    struct query_request *request = MEM_NEW(
        (struct query_request){{.kind = &query_kind}, *proc, .done = done, .done_data = done_data});
    for (size_t i = 0; i < nqueries; i++)
        add_keys(request, &queries[i], of_tool);
    if (of_tool && request->keys.count > KEYS_MAX) {
        request_free(request);
        return PMIX_ERR_BAD_PARAM;
    }
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
