/* SPDX-License-Identifier: Apache-2.0 */
#include "features/pmix_tools/process_table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define RANKS_MAX ((size_t)1 << 22)
#define ID_MAX 200 /* what a namespace of PMIx may have */

/* With " : " between them, it is several programs (status_command()). */
static char *program_of(const char *command)
{
    bool several = command == NULL || strstr(command, " : ") != NULL;
    return several ? mem_strdup("") : mem_printf("%.*s", (int)strcspn(command, " "), command);
}

/* -1: it is not there, or not one that can be. */
static int number_of(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    json_int_t value = json_integer_value(number);
    return json_is_integer(number) && value >= 0 && value <= INT_MAX ? (int)value : -1;
}

static const char *nspace_of(struct pmix_table *table, const char *id, int epoch)
{
    char *nspace AUTO_FREE = mem_printf(PMIX_NSPACE_FORMAT, id, (unsigned)epoch);
    for (size_t i = table->nspaces.count; i > 0; i--)
        if (strcmp(table->nspaces.items[i - 1], nspace) == 0)
            return table->nspaces.items[i - 1];
    strv_add(&table->nspaces, nspace);
    return table->nspaces.items[table->nspaces.count - 1];
}

static void read_row(const json_t *object, const char *id, struct pmix_table *table)
{
    const char *host = json_string_value(json_object_get(object, "host"));
    const char *state = json_string_value(json_object_get(object, "state"));
    int code = number_of(object, "exit_code"), killed = number_of(object, "signal");
    int epoch = number_of(object, "epoch"), rank = number_of(object, "world_rank");
    struct pmix_process row = {.rank = rank < 0 ? number_of(object, "rank") : rank,
                               .pid = number_of(object, "pid"),
                               .ended = code >= 0 || killed >= 0,
                               .exit_code = killed >= 0 ? 128 + killed
                                            : code >= 0 ? code
                                                        : 0};
    if (row.rank < 0 || (size_t)row.rank >= RANKS_MAX || host == NULL || epoch < 0)
        return;
    row.nspace = nspace_of(table, id, epoch);
    bool runs = state != NULL && strcmp(state, "running") == 0;
    if (row.pid <= 0 || (!row.ended && !runs))
        return;
    row.host = mem_strdup(host);
    table->rows[table->count++] = row;
}

int process_table_read(struct pmix_table *table, const json_t *status, struct error *err)
{
    const char *id = json_string_value(json_object_get(status, "id"));
    const json_t *ranks = json_object_get(status, "ranks");
    size_t size = json_array_size(ranks);
    *table = (struct pmix_table){.nspaces = STRV_INIT};
    if (id == NULL || id[0] == '\0' || strlen(id) > ID_MAX || !json_is_array(ranks) ||
        size > RANKS_MAX)
        return error_set(err, "the job has not said what its ranks are");
    table->program = program_of(json_string_value(json_object_get(status, "command")));
    table->rows = mem_array(size + 1, sizeof(*table->rows));
    for (size_t i = 0; i < size; i++)
        read_row(json_array_get(ranks, i), id, table);
    return 0;
}

void process_table_clear(struct pmix_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free((char *)(uintptr_t)table->rows[i].host);
    free(table->rows);
    free(table->program);
    strv_destroy(&table->nspaces);
    *table = (struct pmix_table){0};
}
