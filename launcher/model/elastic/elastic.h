/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic core: all decisions of a job whose hosts come and go. It is pure: an event and the
 * time go in, actions come out; there is no descriptor, no clock and no loop. The driver carries
 * out the actions (driver/elastic). tests/sim drives the core through random schedules.
 *
 * An epoch is a span of the job in which its members do not change. A worker has a seat: a number
 * that it keeps while its rank changes from epoch to epoch.
 *
 * Job            enough slots   prepared   a change   all agreed   all ended   verdict   no worker
 *   WAITING      PREPARING                 AGREEING,                           ENDING
 *                                          STOPPING
 *   PREPARING                   RUNNING    PREPARING, WAITING,                 ENDING
 *                                          AGREEING, STOPPING
 *   RUNNING                                AGREEING (rejoin),                  ENDING
 *                                          STOPPING (restart)
 *   AGREEING                                          PREPARING,               ENDING
 *                                                     WAITING, STOPPING
 *   STOPPING                                                       PREPARING,  ENDING
 *                                                                  WAITING
 *   ENDING                                                                               DONE
 *
 * WAITING and PREPARING go back to AGREEING when a survivor has hung up and must ask again. Each of
 * the three goes to STOPPING when there is no survivor, or none whose slot can be used: all workers
 * start anew. So every fresh epoch but the first follows END_ALL and the FINISHED of every worker,
 * and its seats are its ranks.
 *
 * Rejoin: the survivors keep their processes and their memory. Each asks for its next place. When
 * every worker of the epoch has asked or has ended, the next epoch begins. If the survivors suffice
 * (`early`), it is theirs alone, and the core answers them at once. New workers start beside it and
 * join later (model/elastic/newcomers.h). Else the driver prepares it and starts the new workers
 * before the core answers the survivors. A worker that does not ask within rejoin_timeout_ms after
 * a failure is killed and replaced.
 *
 * A member that ends during a rendezvous leaves others stuck. At the gate (rendezvous/held.h) they
 * can wait for another worker. So the epoch is repaired: it keeps its plan, and a new worker
 * replaces each one that has ended. Behind the gate, or if rank 0 is the one that has ended, they
 * are killed.
 *
 * Restart: all workers are ended, then all start anew.
 *
 * The core chooses between the two when a change comes. It is a rejoin if a live worker of the
 * epoch has registered, and a restart otherwise.
 *
 * Ranks after a rejoin: survivors keep their order. A new worker comes behind the last survivor of
 * its host, or at the end. So rank 0, whose state the others receive, is a survivor whenever there
 * is one. A slot never changes its host, and local ranks follow the slots.
 *
 * Ranks in the first epoch and after a restart: by host and slot. A host that stays keeps its
 * place. A host that comes takes the place that it had, else the first free one, else the end. An
 * epoch that was prepared and cancelled changes no place. After a rejoin the places are those of
 * the hosts by rank.
 *
 * Failures count by cause. A crash of the program counts against its slot, a lost host against the
 * host, a preemption against nobody. An end between the first failure of an epoch and the next
 * epoch is a consequence, and counts against nobody. Two exceptions count: a host that came after
 * that failure, and a host that the core has given up. A failure of a worker on a draining host
 * counts as a preemption of that host.
 *
 * A failure is forgotten after failure_decay_ms. The third one puts the slot or the host on the
 * blacklist for the cooldown. The cooldown doubles each time; without a range it lasts for the rest
 * of the job. A host that comes back with another boot id is another machine with a clean record.
 * When the program has crashed on every host, the program is at fault and the job ends. In a
 * restart, the job ends when the counted restarts are used up, and no slot is blacklisted before.
 * The core also does not blacklist a slot if fewer than min_np would remain.
 *
 * The job has succeeded when every worker of the current epoch has ended with 0. When a worker that
 * can rejoin ends with 0, the training is over. A failure after that ends the job, and the workers
 * do not start anew. A 0 within suspect_ms of a peer's failure does not count as success while
 * others rejoin. Some libraries end a process with 0 when its peer has gone (Horovod issue 1994).
 */
#pragma once

#include <stdint.h>

#include "model/elastic/types.h"

struct elastic;

struct elastic *elastic_create(const struct elastic_config *config, int64_t now_ms);
void elastic_destroy(struct elastic *elastic);

/* The only input. It appends to `actions`. A `now_ms` below the last one counts as no time passed.
 * An event that does not fit (an unknown seat, a stale epoch, a repeated one) changes nothing. */
void elastic_event(struct elastic *elastic, const struct elastic_event *event, int64_t now_ms,
                   struct elastic_actions *actions);

/* What others may ask. */

/* When the next ELASTIC_TICK is due; -1: the core only waits for events of running workers. There
 * is a limit after the verdict too. After the grace and the patience the core gives up the hosts
 * that have live workers, and elastic_timeout_ms later those whose workers have not FINISHED. */
int64_t elastic_deadline(const struct elastic *elastic);

/* If the core waits for slots, the limit begins anew: a host that has come is delayed, or was. */
void elastic_wait_anew(struct elastic *elastic, int64_t now_ms);
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

/* The slots, without blacklisted ones, of hosts that are up, or called and likely to come. */
int64_t elastic_promised_slots(const struct elastic *elastic);

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
