/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of an elastic job and the workers in them. Pure facts. Only elastic_workers_move() and
 * elastic_workers_free() change the state of a worker. They allow the steps of the table in
 * model/elastic/types.h, and keep the counts by state and by host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/elastic/hosts.h"

struct elastic_worker {
    enum elastic_worker_state state;
    int host, slot;
    int rank, local_rank; /* of its last epoch; -1: none yet */
    bool registered;
    bool rejoins;       /* it has registered or asked */
    bool placed;        /* it is in the latest plan */
    int64_t due_ms;     /* its time limit, see elastic_workers_expect(); INT64_MAX: none */
    int next, previous; /* seats of its host; -1: none */
    uint64_t *requests; /* owned: unanswered ones of an asking worker */
    int request_count, request_room;
};

struct elastic_workers {
    struct elastic_hosts *hosts; /* borrowed */
    struct elastic_worker *items;
    int count, room; /* seats ever taken */
    int in_state[ELASTIC_WORKER_STATES];
    int taken;      /* not FREE */
    int free_below; /* no seat below it is free */
    int64_t due_ms; /* not after the next due time of any worker */
};

void elastic_workers_destroy(struct elastic_workers *workers);

struct elastic_worker *elastic_workers_at(const struct elastic_workers *workers,
                                          int seat); /* NULL: the seat is free */
/* Puts a PLANNED worker into the lowest free seat, and returns the seat. */
int elastic_workers_seat(struct elastic_workers *workers, int host, int slot);
void elastic_workers_move(struct elastic_workers *workers, int seat, enum elastic_worker_state to);
/* To FREE, from any state: the worker has finished, or its host is lost. */
void elastic_workers_free(struct elastic_workers *workers, int seat);
/* Frees the seats of the planned workers of the latest plan; newcomers are not in it. */
void elastic_workers_forget_planned(struct elastic_workers *workers);
/* Limits the time until the worker takes its next step; what is due then depends on its state. */
void elastic_workers_expect(struct elastic_workers *workers, int seat, int64_t due_ms);
void elastic_workers_find_due(struct elastic_workers *workers);

/* The seat of the worker of this host that last had this local rank and was not removed since. A
 * worker that stays goes before one that is being killed. -1: none. */
int elastic_workers_find(const struct elastic_workers *workers, int host, int local_rank);
/* It holds the job's state or will soon: STARTING, RUNNING, ASKED, HELD. */
bool elastic_worker_stays(const struct elastic_worker *worker);
bool elastic_worker_lives(const struct elastic_worker *worker); /* not EXITED */
/* It was started beside the running epoch and has not joined: JOINING, READY, DISMISSED. */
bool elastic_worker_is_newcomer(const struct elastic_worker *worker);

void elastic_workers_hold(struct elastic_workers *workers, int seat, uint64_t request);
/* Forgets the request, and returns the seat that held it; -1: none. */
int elastic_workers_drop(struct elastic_workers *workers, uint64_t request);
