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

#include "model/elastic/facts.h"
#include "model/elastic/types.h"

struct elastic;

struct elastic *elastic_create(const struct elastic_config *config, int64_t now_ms);
void elastic_destroy(struct elastic *elastic);

/* The only input. It appends to `actions`. A `now_ms` below the last one counts as no time passed.
 * An event that does not fit (an unknown seat, a stale epoch, a repeated one) changes nothing. */
void elastic_event(struct elastic *elastic, const struct elastic_event *event, int64_t now_ms,
                   struct elastic_actions *actions);
