/* SPDX-License-Identifier: Apache-2.0 */
/* What the schedules have reached: which event in which state, which ways of hosts and workers. */
#pragma once

#include "sim/world.h"

struct statistics {
    int64_t runs, steps;
    int64_t events[ELASTIC_STATES][ELASTIC_EVENTS];
    int64_t moves[ELASTIC_STATES][ELASTIC_STATES];
    int64_t hosts[ELASTIC_HOST_STATES][ELASTIC_HOST_STATES];
    int64_t workers[ELASTIC_WORKER_STATES][ELASTIC_WORKER_STATES];
    int64_t actions[ELASTIC_ACTIONS], ends[ELASTIC_ENDS], modes[ELASTIC_STOP + 1];
    int64_t epochs[16], blacklisted, blacklisted_slots, spares;
    /* of the run that goes on */
    enum elastic_host_state host[SCHEDULE_HOSTS];
    enum elastic_worker_state worker[WORLD_SEATS];
};

/* All accept a world without statistics. */
void statistics_event(struct world *world, const struct elastic_event *event);
void statistics_verdict(struct world *world);
void statistics_end(struct world *world);
void statistics_print(const struct statistics *statistics);
