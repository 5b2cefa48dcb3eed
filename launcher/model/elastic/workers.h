/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of an elastic job and the workers in them. Pure facts: elastic_workers_move() is the
 * only way to another state and knows the table of model/elastic/types.h; it keeps the counts per
 * state and per host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/elastic/hosts.h"

struct elastic_worker {
    enum elastic_worker_state state;
    int host, slot;
    int rank, local_rank; /* as last told; -1: none */
    bool registered;
    bool rejoins;       /* it has registered or asked */
    bool placed;        /* it is in the latest plan */
    int64_t due_ms;     /* until when it has to do what is expected of it; INT64_MAX: no limit */
    int next, previous; /* seats of its host; -1: none */
    uint64_t *requests; /* owned: held ones of an asking worker */
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
                                          int seat); /* NULL: nobody there */
/* A PLANNED worker in the lowest free seat, which is returned. */
int elastic_workers_seat(struct elastic_workers *workers, int host, int slot);
void elastic_workers_move(struct elastic_workers *workers, int seat, enum elastic_worker_state to);
/* To FREE, from any state: it has finished, or is gone with its host. */
void elastic_workers_free(struct elastic_workers *workers, int seat);
void elastic_workers_forget_planned(struct elastic_workers *workers); /* frees their seats */
void elastic_workers_expect(struct elastic_workers *workers, int seat, int64_t due_ms);
void elastic_workers_find_due(struct elastic_workers *workers);

/* The worker of this host that was told this local rank last, and that has not been removed since:
 * one that stays, else one that is being ended, else -1. */
int elastic_workers_find(const struct elastic_workers *workers, int host, int local_rank);
/* Workers that hold the job's state or will soon: STARTING, RUNNING, ASKED. */
bool elastic_worker_stays(const struct elastic_worker *worker);
bool elastic_worker_lives(const struct elastic_worker *worker); /* not EXITED */

void elastic_workers_hold(struct elastic_workers *workers, int seat, uint64_t request);
/* The seat that holds the request, which is forgotten; -1: none. */
int elastic_workers_drop(struct elastic_workers *workers, uint64_t request);
