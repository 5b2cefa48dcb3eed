/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for tools, in a process of its own: libpmix 4.2 counts what a tool says into the fences
 * of the ranks, and ends the process if a tool that it refuses has gone. So none ever meets the
 * server of a job. Every tool is let in, and the op of the command cuts those of others at each
 * question.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

#define NAMES_MAX ((size_t)4 << 20)

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

static pmix_proc_state_t state_of(const struct pmix_process *from)
{
    if (!from->ended)
        return PMIX_PROC_STATE_RUNNING;
    return from->exit_code == 0 ? PMIX_PROC_STATE_TERMINATED : PMIX_PROC_STATE_TERM_NON_ZERO;
}

/* Of one namespace; "": of all. */
static void add_table(struct infos *list, const char *key, const struct pmix_table *from,
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
        row->state = state_of(process);
    }
    pmix_data_array_t array = {.type = PMIX_PROC_INFO, .size = kept, .array = table};
    infos_add(list, key, &array, PMIX_DATA_ARRAY); /* a deep copy */
    free(table);
}

static bool has_namespace(const struct pmix_table *table, const char *nspace)
{
    size_t i = 0;
    while (i < table->nspaces.count && strcmp(table->nspaces.items[i], nspace) != 0)
        i++;
    return nspace[0] == '\0' || i < table->nspaces.count;
}

static void add_namespaces(struct infos *list, const struct pmix_table *table)
{
    struct buf names AUTO_BUF = BUF_INIT(NAMES_MAX);
    for (size_t i = 0; i < table->nspaces.count; i++)
        buf_printf(&names, "%s%s", i > 0 ? "," : "", table->nspaces.items[i]);
    infos_add_text(list, PMIX_QUERY_NAMESPACES, buf_text(&names));
}

pmix_status_t tools_answer(const struct pmix_table *table, const char *key, const char *nspace,
                           struct infos *list)
{
    if (!has_namespace(table, nspace))
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        add_namespaces(list, table);
    else if (strcmp(key, PMIX_QUERY_PROC_TABLE) == 0)
        add_table(list, key, table, nspace);
    else
        return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_SUCCESS;
}
