/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for tools, in a process of its own: libpmix 4.2 counts what a tool says into the fences
 * of the ranks, and ends the process if a tool that it refuses has gone. So none ever meets the
 * server of a job. Every tool is let in, and the op of the command decides at each question.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

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

static void add_namespace(struct infos *list, const struct pmix_process *rows, size_t count)
{
    infos_add_text(list, PMIX_QUERY_NAMESPACES, count > 0 ? rows[0].nspace : "");
}

/* `here`: only those of this host. */
static void add_table(struct infos *list, const char *key, const struct pmix_process *rows,
                      size_t count, bool here)
{
    pmix_proc_info_t *table = mem_array(count + 1, sizeof(*table));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pmix_process *from = &rows[i];
        if (here && !from->here)
            continue;
        pmix_proc_info_t *row = &table[kept++];
        PMIX_LOAD_PROCID(&row->proc, from->nspace, (pmix_rank_t)from->rank);
        row->hostname = (char *)(uintptr_t)from->host; /* only read */
        row->executable_name = (char *)(uintptr_t)from->program;
        row->pid = from->pid;
        row->exit_code = from->exit_code;
        row->state = !from->ended           ? PMIX_PROC_STATE_RUNNING
                     : from->exit_code == 0 ? PMIX_PROC_STATE_TERMINATED
                                            : PMIX_PROC_STATE_TERM_NON_ZERO;
    }
    pmix_data_array_t array = {.type = PMIX_PROC_INFO, .size = kept, .array = table};
    infos_add(list, key, &array, PMIX_DATA_ARRAY); /* a deep copy */
    free(table);
}

int tools_answer(struct server *server, const struct strv *keys, struct infos *list)
{
    const struct pmix_process *rows = NULL;
    size_t count = 0;
    int known = 0;
    if (server->ops.processes(server->context, &rows, &count) < 0)
        return -1;
    for (size_t i = 0; i < keys->count; i++) {
        const char *key = keys->items[i];
        known++;
        if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
            add_namespace(list, rows, count);
        else if (strcmp(key, PMIX_QUERY_PROC_TABLE) == 0)
            add_table(list, key, rows, count, false);
        else if (strcmp(key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0)
            add_table(list, key, rows, count, true);
        else if (strcmp(key, PMIX_JOB_SIZE) == 0)
            infos_add_u32(list, key, (uint32_t)count);
        else
            known--;
    }
    return known;
}
