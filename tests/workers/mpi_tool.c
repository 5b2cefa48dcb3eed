/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx tool: mpi_tool HOW WHERE [hang]. HOW is "pid" (of the launcher, looked for below $TMPDIR)
 * or "file". Prints lines for the processes of the job, or what went wrong, and exits 0 or 1.
 * "hang": it stays connected until it is ended.
 */
#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_status_t connect_to(const char *how, const char *where)
{
    pmix_proc_t me;
    pmix_info_t info;
    pid_t pid = (pid_t)strtol(where, NULL, 10);
    if (strcmp(how, "pid") == 0)
        PMIX_INFO_LOAD(&info, PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    else
        PMIX_INFO_LOAD(&info, PMIX_TOOL_ATTACHMENT_FILE, where, PMIX_STRING);
    return PMIx_tool_init(&me, &info, 1);
}

/* Twice, for one answer. `nspace`: about this one; NULL: without such a qualifier. */
static pmix_status_t ask(char *key, const char *nspace, pmix_info_t **results, size_t *count)
{
    char *keys[] = {key, key, NULL};
    pmix_query_t query;
    pmix_info_t qualifier;
    PMIX_QUERY_CONSTRUCT(&query);
    query.keys = keys;
    if (nspace != NULL) {
        PMIX_INFO_LOAD(&qualifier, PMIX_NSPACE, nspace, PMIX_STRING);
        query.qualifiers = &qualifier;
        query.nqual = 1;
    }
    return PMIx_Query_info(&query, 1, results, count);
}

static int print_table(const char *title, const char *nspace)
{
    pmix_info_t *results = NULL;
    size_t count = 0;
    pmix_status_t status = ask((char *)PMIX_QUERY_PROC_TABLE, nspace, &results, &count);
    if (status != PMIX_SUCCESS || count != 1 || results[0].value.type != PMIX_DATA_ARRAY) {
        printf("no %s: %s\n", title, PMIx_Error_string(status));
        return 1;
    }
    const pmix_data_array_t *array = results[0].value.data.darray;
    const pmix_proc_info_t *table = array->array;
    printf("%s %zu\n", title, array->size);
    for (size_t i = 0; i < array->size; i++)
        printf("%s %u %s %d %s\n", title, table[i].proc.rank, table[i].hostname, (int)table[i].pid,
               table[i].proc.nspace);
    return 0;
}

static int print_all(void)
{
    pmix_info_t *results = NULL;
    size_t count = 0;
    if (ask((char *)PMIX_QUERY_NAMESPACES, NULL, &results, &count) != PMIX_SUCCESS || count != 1)
        return 1;
    char *nspaces = strdup(results[0].value.data.string);
    printf("namespaces %s\n", nspaces);
    if (print_table("table", NULL) != 0)
        return 1;
    nspaces[strcspn(nspaces, ",")] = '\0';
    print_table("first", nspaces);
    print_table("other", "other");
    if (ask((char *)PMIX_QUERY_QUEUE_LIST, NULL, &results, &count) == PMIX_SUCCESS)
        printf("an answer about queues\n");
    pmix_info_t kill;
    pmix_proc_t all;
    bool yes = true;
    PMIX_LOAD_PROCID(&all, "any", PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&kill, PMIX_JOB_CTRL_KILL, &yes, PMIX_BOOL);
    if (PMIx_Job_control(NULL, 0, &kill, 1, NULL, NULL) == PMIX_SUCCESS)
        printf("it may kill\n");
    printf("ready\n");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3)
        return 2;
    pmix_status_t status = connect_to(argv[1], argv[2]);
    if (status != PMIX_SUCCESS) {
        printf("no server: %s\n", PMIx_Error_string(status));
        return 1;
    }
    int result = print_all();
    while (argc > 3)
        pause();
    PMIx_tool_finalize();
    return result;
}
