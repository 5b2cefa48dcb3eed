/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic core: all decisions of a job whose hosts come and go. Pure: (state, event, now) in,
 * actions out; no descriptor, no clock, no loop. The driver does what the actions say
 * (driver/elastic_part), tests/sim drives it through random schedules.
 *
 * Job            enough slots   prepared   a change   all agreed   all ended   verdict   none left
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
 * From WAITING and PREPARING back to AGREEING: a survivor has hung up and must ask again. To
 * STOPPING from any of the three: no survivor is left, or none whose slot can be used, so all start
 * anew. So a fresh epoch, but for the first, always comes behind END_ALL and the FINISHED of every
 * worker, and its seats are its ranks.
 *
 * rejoin: the survivors keep their processes and their memory. Each asks for its next place; when
 * every worker of the epoch has asked or has ended, the next epoch is prepared, the new workers are
 * started, and only then is everybody answered. A worker that does not ask within the limit after a
 * failure is killed and replaced. restart: all workers are ended, then all start anew. Chosen when
 * a change comes: rejoin if some live worker of the epoch has registered, else restart.
 *
 * Ranks (rejoin): survivors keep their order; a new worker comes behind the last survivor of its
 * host, or at the end; so rank 0, whose state the others receive, is a survivor whenever there is
 * one. A slot never changes its host, and local ranks follow the slots. Ranks (restart and first
 * epoch): by host and slot; a host that stays keeps its place, one that comes takes the place that
 * it had or the first that was left, else the end. What was prepared and cancelled leaves no trace
 * in this; behind a rejoined epoch the places are those of its hosts by rank.
 *
 * Causes are told apart: a crash of the program strikes its slot, a lost host strikes the host, a
 * preemption strikes nobody. What ends after the first failure of an epoch, until the next one
 * begins, is a consequence and strikes nobody, but for a host that came after that failure and one
 * that is given up. A failure of a worker on a host that is being left counts as that host's
 * preemption. Strikes are forgotten after strike_decay_ms; the
 * third one puts the slot or host aside for the cool-down (doubling; without a range, for the rest
 * of the job). A host that comes back with another boot id is another machine: nothing is held
 * against it. When the program has crashed on every host, it is the program's fault, and the job
 * ends saying so; in a restart when the restarts that are counted are used up, and nothing is put
 * aside until then. Nor is a slot there without which fewer than min_np would be left.
 *
 * The job has succeeded when every worker of the current epoch has ended with 0. A 0 within
 * suspect_ms of a peer's failure is not believed: libraries end a process so whose peer is gone
 * (Horovod issue 1994).
 */
#pragma once

#include <stdint.h>

#include "model/elastic/facts.h"
#include "model/elastic/types.h"

struct elastic;

struct elastic *elastic_create(const struct elastic_config *config, int64_t now_ms);
void elastic_destroy(struct elastic *elastic);

/* The one way in. `now_ms` never goes back by itself; one that does counts as no time passed.
 * Events that do not fit (an unknown seat, a stale epoch, a repeated one) change nothing. Appends.
 */
void elastic_event(struct elastic *elastic, const struct elastic_event *event, int64_t now_ms,
                   struct elastic_actions *actions);
