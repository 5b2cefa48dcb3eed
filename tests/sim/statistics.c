/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/statistics.h"

#include <stdio.h>
#include <string.h>

static void count_hosts(struct statistics *statistics, const struct elastic *elastic)
{
    for (int h = 0; h < elastic_host_count(elastic) && h < SCHEDULE_HOSTS; h++) {
        const struct elastic_host_facts facts = elastic_host_facts(elastic, h);
        if (facts.state != statistics->host[h])
            statistics->hosts[statistics->host[h]][facts.state]++;
        statistics->host[h] = facts.state;
        statistics->blacklisted += facts.blacklisted_until_ms != 0;
        statistics->blacklisted_slots += facts.blacklisted_slots != 0;
        statistics->spares += facts.spare;
    }
}

static void count_workers(struct statistics *statistics, const struct elastic *elastic)
{
    for (int seat = 0; seat < elastic_seat_count(elastic) && seat < WORLD_SEATS; seat++) {
        const enum elastic_worker_state state = elastic_worker_facts(elastic, seat).state;
        if (state != statistics->worker[seat])
            statistics->workers[statistics->worker[seat]][state]++;
        statistics->worker[seat] = state;
    }
}

void statistics_event(struct world *world, const struct elastic_event *event)
{
    struct statistics *statistics = world->statistics;
    if (statistics == NULL)
        return;
    const enum elastic_state state = core_state(&world->core);
    statistics->events[world->state_before][event->kind]++;
    if (state != world->state_before)
        statistics->moves[world->state_before][state]++;
    for (size_t i = 0; i < world->core.actions.count; i++) {
        statistics->actions[world->core.actions.items[i].kind]++;
        if (world->core.actions.items[i].kind == ELASTIC_RESUMED)
            statistics->modes[core_facts(&world->core)->mode]++;
    }
    count_hosts(statistics, world->core.elastic);
    count_workers(statistics, world->core.elastic);
}

void statistics_verdict(struct world *world)
{
    if (world->statistics != NULL)
        world->statistics->ends[core_verdict(&world->core)->end]++;
}

void statistics_end(struct world *world)
{
    struct statistics *statistics = world->statistics;
    if (statistics == NULL)
        return;
    statistics->runs++;
    statistics->steps += world->steps;
    statistics->epochs[world->started_count < 15 ? world->started_count : 15]++;
    memset(statistics->host, 0, sizeof(statistics->host));
    memset(statistics->worker, 0, sizeof(statistics->worker));
}

#define NAMER(function, type)                   \
    static const char *function##_of(int value) \
    {                                           \
        return function((enum type)value);      \
    }
NAMER(elastic_state_name, elastic_state)
NAMER(elastic_host_state_name, elastic_host_state)
NAMER(elastic_worker_state_name, elastic_worker_state)
NAMER(elastic_event_name, elastic_event_kind)
NAMER(elastic_action_name, elastic_action_kind)
NAMER(elastic_end_name, elastic_end)
NAMER(elastic_mode_name, elastic_mode)

typedef const char *namer(int value);

static void print_table(const char *title, const int64_t *counts, int rows, int columns, namer *row,
                        namer *column)
{
    printf("%s\n", title);
    for (int r = 0; r < rows; r++) {
        printf("  %-26s", row(r));
        for (int c = 0; c < columns; c++) {
            const int64_t count = counts[r * columns + c];
            if (count > 0)
                printf(" %s=%lld", column(c), (long long)count);
        }
        printf("\n    never:");
        for (int c = 0; c < columns; c++) {
            if (counts[r * columns + c] == 0)
                printf(" %s,", column(c));
        }
        printf("\n");
    }
}

static void print_list(const char *title, const int64_t *counts, int count, namer *name)
{
    printf("%s\n", title);
    for (int i = 0; i < count; i++)
        printf("  %-26s %lld%s\n", name(i), (long long)counts[i], counts[i] == 0 ? "  NEVER" : "");
}

void statistics_print(const struct statistics *statistics)
{
    print_table("events in each state", &statistics->events[0][0], ELASTIC_STATES, ELASTIC_EVENTS,
                elastic_state_name_of, elastic_event_name_of);
    print_table("ways of the job", &statistics->moves[0][0], ELASTIC_STATES, ELASTIC_STATES,
                elastic_state_name_of, elastic_state_name_of);
    print_table("ways of a host", &statistics->hosts[0][0], ELASTIC_HOST_STATES,
                ELASTIC_HOST_STATES, elastic_host_state_name_of, elastic_host_state_name_of);
    print_table("ways of a worker", &statistics->workers[0][0], ELASTIC_WORKER_STATES,
                ELASTIC_WORKER_STATES, elastic_worker_state_name_of, elastic_worker_state_name_of);
    print_list("actions", statistics->actions, ELASTIC_ACTIONS, elastic_action_name_of);
    print_list("ends", statistics->ends, ELASTIC_ENDS, elastic_end_name_of);
    print_list("epochs resumed, by their mode", statistics->modes, ELASTIC_STOP + 1,
               elastic_mode_name_of);
    printf("jobs by their number of epochs\n ");
    for (int i = 0; i < 16; i++)
        printf(" %d:%lld", i, (long long)statistics->epochs[i]);
    printf(
        "\nevents with a host blacklisted %lld, with slots blacklisted %lld, with a spare %lld\n",
        (long long)statistics->blacklisted, (long long)statistics->blacklisted_slots,
        (long long)statistics->spares);
    printf("%lld jobs, %lld events\n", (long long)statistics->runs, (long long)statistics->steps);
}
