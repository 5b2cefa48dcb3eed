/* SPDX-License-Identifier: Apache-2.0 */
#include "features/pmix_tools/process_table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define RANKS_MAX ((size_t)1 << 22)
#define JOB_MAX 200 /* what a namespace of PMIx may have */

/* With " : " between them, it is several programs (status_command()). */
static char *program_of(const char *command)
{
    bool several = command == NULL || strstr(command, " : ") != NULL;
    return several ? mem_strdup("") : mem_printf("%.*s", (int)strcspn(command, " "), command);
}

static int number_of(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 && value <= INT_MAX ? (int)value : 0;
}

/* Has it ended, and how? */
static void read_end(const json_t *object, struct pmix_process *row)
{
    bool exited = json_is_integer(json_object_get(object, "exit_code"));
    bool killed = json_is_integer(json_object_get(object, "signal"));
    row->ended = exited || killed;
    row->exit_code = killed ? 128 + number_of(object, "signal") : number_of(object, "exit_code");
}

/* false: it has no place in the table, as one that never started. */
static bool read_row(const json_t *object, const struct process_table *table,
                     struct pmix_process *row)
{
    const json_t *rank = json_object_get(object, "rank");
    const char *host = json_string_value(json_object_get(object, "host"));
    json_int_t number = json_integer_value(rank);
    *row = (struct pmix_process){.nspace = table->job, .program = table->program};
    row->pid = number_of(object, "pid");
    if (!json_is_integer(rank) || number < 0 || (size_t)number >= RANKS_MAX || host == NULL ||
        row->pid == 0)
        return false;
    row->rank = (int)number;
    row->host = mem_strdup(host);
    read_end(object, row);
    return true;
}

int process_table_read(struct process_table *table, const json_t *status, struct error *err)
{
    const char *job = json_string_value(json_object_get(status, "job"));
    const json_t *ranks = json_object_get(status, "ranks");
    size_t size = json_array_size(ranks);
    *table = (struct process_table){0};
    if (job == NULL || job[0] == '\0' || strlen(job) > JOB_MAX || !json_is_array(ranks) ||
        size > RANKS_MAX)
        return error_set(err, "the job has not said what its ranks are");
    table->job = mem_strdup(job);
    table->program = program_of(json_string_value(json_object_get(status, "command")));
    table->driver = number_of(status, "pid");
    table->rows = mem_array(size + 1, sizeof(*table->rows));
    for (size_t i = 0; i < size; i++)
        if (read_row(json_array_get(ranks, i), table, &table->rows[table->count]))
            table->count++;
    return 0;
}

void process_table_clear(struct process_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free((char *)(uintptr_t)table->rows[i].host);
    free(table->rows);
    free(table->job);
    free(table->program);
    *table = (struct process_table){0};
}
