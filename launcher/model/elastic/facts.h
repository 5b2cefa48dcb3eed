/* SPDX-License-Identifier: Apache-2.0 */
/* What others may ask about an elastic job. Pure. */
#pragma once

#include "model/elastic/types.h"

struct elastic;

/* When the next ELASTIC_TICK is due; -1: the core only waits for events of running workers. There
 * is a limit after the verdict too. After the grace and the patience the core gives up the hosts
 * that have live workers, and elastic_timeout_ms later those whose workers have not FINISHED. */
int64_t elastic_deadline(const struct elastic *elastic);

enum elastic_state elastic_state(const struct elastic *elastic);

/* Hosts are numbered from 0 in the order in which they were first listed. A name keeps its number
 * for the whole job. */
int elastic_host_count(const struct elastic *elastic);
int elastic_host_number(const struct elastic *elastic, const char *name); /* -1: never listed */

struct elastic_host_facts {   /* borrowed until the next event */
    const struct host *entry; /* name, user, port, address as last listed */
    enum elastic_host_state state;
    int slots;                    /* as listed */
    int blacklisted_slots;        /* of them */
    int workers;                  /* any state but EXITED; planned ones count */
    bool spare;                   /* up and not in the plan, on purpose */
    int64_t blacklisted_until_ms; /* 0: not; INT64_MAX: for good */
    int64_t drain_deadline_ms;    /* -1: not known or not draining */
};
struct elastic_host_facts elastic_host_facts(const struct elastic *elastic, int host);

/* NULL before the first PREPARE. After a CANCEL it means nothing until the next PREPARE. Borrowed
 * until the next event. */
const struct elastic_plan *elastic_plan(const struct elastic *elastic);

/* The plan for which newcomers are prepared or started, beside the epoch of elastic_plan(); NULL:
 * there are none. Its members without `is_new` are those of the running epoch, as they were when
 * it was made. Borrowed until the next event. */
const struct elastic_plan *elastic_newcomers(const struct elastic *elastic);

/* About a live worker. */
struct elastic_worker_facts {
    enum elastic_worker_state state; /* FREE: the seat has no worker */
    int host, slot;
    int rank, local_rank; /* of the last epoch that it was in; -1: none yet */
    bool registered;
    bool member; /* of the epoch of elastic_plan(): the others cannot meet without it */
};
struct elastic_worker_facts elastic_worker_facts(const struct elastic *elastic, int seat);
int elastic_seat_count(const struct elastic *elastic); /* highest seat ever taken + 1 */

const struct elastic_facts *elastic_facts(const struct elastic *elastic);

/* The seat of the worker whose crash is the cause of the change; -1: no crash is. */
int elastic_cause_seat(const struct elastic *elastic);

const struct elastic_verdict *
elastic_verdict(const struct elastic *elastic); /* END_NONE: none yet */
