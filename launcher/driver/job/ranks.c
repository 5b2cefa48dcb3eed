/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/ranks.h"

#include <stdlib.h>

#include "base/mem.h"

void rank_table_init(struct rank_table *table, int size)
{
    *table = (struct rank_table){
        .records = mem_array((size_t)size, sizeof(*table->records)), .size = size, .left_mpi = -1};
}

static void clear(struct rank_record *record)
{
    free(record->text);
    free(record->requester);
    free(record->stopped);
    tail_destroy(&record->tail);
}

void rank_table_destroy(struct rank_table *table)
{
    for (int i = 0; i < table->size; i++)
        clear(&table->records[i]);
    free(table->records);
    *table = (struct rank_table){.size = 0};
}

struct rank_record *rank_table_seat(struct rank_table *table, int seat)
{
    if (seat >= table->size) {
        size_t size = (size_t)seat + 1;
        table->records = mem_resize_array(table->records, size, sizeof(*table->records));
        for (size_t i = (size_t)table->size; i < size; i++)
            table->records[i] = (struct rank_record){.state = RANK_PLANNED};
        table->size = (int)size;
    }
    struct rank_record *record = &table->records[seat];
    table->running -= record->state == RANK_RUNNING;
    table->exited -= record->state >= RANK_EXITED;
    table->finished -= record->state == RANK_FINISHED;
    table->left_mpi = table->left_mpi == seat ? -1 : table->left_mpi;
    clear(record);
    *record = (struct rank_record){.state = RANK_PLANNED};
    return record;
}

void rank_table_keep(struct rank_table *table, int size)
{
    while (table->size > size) {
        (void)rank_table_seat(table, table->size - 1); /* it counts no more */
        table->size--;
    }
}

bool rank_world_is_over(const struct rank_table *table, int seat)
{
    const struct rank_record *records = table->records;
    int world = records[seat].world, at = seat;
    if (world == 0)
        return false;
    while (at > 0 && records[at - 1].world == world) /* its seats follow each other */
        at--;
    while (at < table->size && records[at].world == world && records[at].state == RANK_FINISHED)
        at++;
    return at == table->size || records[at].world != world;
}

void rank_stopped(struct rank_record *record, const char *why, int64_t when_ns)
{
    mem_replace(&record->stopped, why[0] != '\0' ? why : NULL);
    record->stopped_ns = when_ns;
}

void rank_requested(struct rank_record *record, int signal, const char *by)
{
    free(record->requester);
    record->requested = signal;
    record->requester = mem_strdup(by);
}

const char *rank_end_requester(const struct rank_record *record)
{
    bool by_signal = record->state >= RANK_EXITED && record->signaled;
    return by_signal && record->code == record->requested ? record->requester : NULL;
}

const char *rank_state_name(enum rank_state state)
{
    static const char *const names[] = {
#define RANK_STATE_NAME(name, text) [name] = (text),
        RANK_STATE_LIST(RANK_STATE_NAME)
#undef RANK_STATE_NAME
    };
    return names[state];
}

static struct rank_record *find(struct rank_table *table, int seat)
{
    return seat >= 0 && seat < table->size ? &table->records[seat] : NULL;
}

bool rank_started(struct rank_table *table, int seat, pid_t pid, int64_t when_ns)
{
    struct rank_record *record = find(table, seat);
    if (record == NULL || record->state != RANK_PLANNED)
        return false;
    record->state = RANK_RUNNING;
    record->pid = pid;
    record->started_ns = when_ns;
    table->running++;
    return true;
}

bool rank_exited(struct rank_table *table, int seat, int64_t when_ns)
{
    struct rank_record *record = find(table, seat);
    if (record == NULL || record->state > RANK_RUNNING)
        return false;
    if (record->state == RANK_RUNNING)
        table->running--;
    record->state = RANK_EXITED;
    record->ended_ns = when_ns;
    table->exited++;
    return true;
}

bool rank_finished(struct rank_table *table, int seat)
{
    struct rank_record *record = find(table, seat);
    if (record == NULL || record->state != RANK_EXITED)
        return false;
    record->state = RANK_FINISHED;
    table->finished++;
    return true;
}

/* A seat may have been kept for a worker that never came. */
static bool is_unstarted(const struct rank_record *record, int node)
{
    return record->state == RANK_PLANNED && record->epoch != 0 && record->node == node;
}

int rank_end_unstarted(struct rank_table *table, int node, int signal, int64_t when_ns, int **seats)
{
    int left = table->size - table->running - table->exited, count = 0;
    *seats = left > 0 ? mem_array((size_t)left, sizeof(**seats)) : NULL;
    for (int seat = 0; seat < table->size && left > 0; seat++) {
        struct rank_record *record = &table->records[seat];
        left -= record->state == RANK_PLANNED;
        if (!is_unstarted(record, node))
            continue;
        record->signaled = record->ended_by_us = true;
        record->code = signal;
        rank_exited(table, seat, when_ns);
        rank_finished(table, seat);
        (*seats)[count++] = seat;
    }
    return count;
}
