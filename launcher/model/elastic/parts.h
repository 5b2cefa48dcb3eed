/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the core of an elastic job do for each other, one section for each file.
 * Newcomers have a header of their own.
 */
#pragma once

#include "model/elastic/job.h"
#include "model/elastic/placement.h"

/* calls.c: the connections to the hosts. Which hosts to call; hosts that come, cannot be reached or
 * are lost. */

/* Calls hosts until they promise as many slots as the job can use. No call is a promise when the
 * time to find slots becomes short. */
void elastic_calls_make(struct elastic *e);
int64_t elastic_calls_promised(const struct elastic *e); /* slots */
void elastic_calls_came(struct elastic *e, int number, const char *boot_id);
void elastic_calls_unreached(struct elastic *e, int number, const char *text);

/* Its workers are gone too. `since_ms`: when the host was last heard. */
/* `explains`: the crash that is the cause of the change followed from it. */
void elastic_calls_lost(struct elastic *e, int number, const char *text, int64_t since_ms,
                        bool explains);
/* The same for a host whose agent does not do what it should. */
void elastic_calls_give_up(struct elastic *e, int number, const char *text);

/* A worker there is to blame for a hang. */
void elastic_calls_count_hang(struct elastic *e, int number);

/* A process of the job stays there for ever. The host gets onto the blacklist, unless the others do
 * not have min_np slots. */
void elastic_calls_unkilled(struct elastic *e, int number, const char *text);

void elastic_calls_prepare_failed(struct elastic *e, int number, const char *text, int code);
/* Retries, cool-downs and drain deadlines that are due. */
void elastic_calls_due(struct elastic *e);

/* change.c: from one epoch to the next. The cause, the budget that it is charged to, whether the
 * workers rejoin or restart, and when they have agreed. */

/* A member has failed, or a host with members was lost. The first failure of an epoch is the cause
 * of the change, and opens it unless it is open. Later ones change nothing. May give a verdict. */
void elastic_change_fail(struct elastic *e, const struct elastic_failure *failure);

/* The crash that is the cause of the change followed from the loss of a host, of which the news
 * came later. It does not count as a crash any more. May give a verdict. */
void elastic_change_revise(struct elastic *e, const struct elastic_failure *loss);

/* A member has ended with 0 while the job changes: that does not count as success. */
void elastic_change_suspect(struct elastic *e, const struct elastic_failure *failure);

/* A member of the running epoch asks for its next place. */
void elastic_change_asked(struct elastic *e, int seat);

/* A running epoch can become larger, or a host (or some of its slots) drains: rank 0 is notified,
 * or all workers restart. `grace_ms`: for the restart. */
void elastic_change_grow(struct elastic *e, int size);
/* The newcomers that rank 0 was notified of have gone: stop notifying it. */
void elastic_change_withdraw(struct elastic *e);
void elastic_change_leave(struct elastic *e, int64_t grace_ms);

/* A change now would let the workers rejoin. */
bool elastic_change_rejoins(const struct elastic *e);

/* Every worker of the epoch has asked or ended: WAITING, STOPPING or a verdict. */
void elastic_change_agreed(struct elastic *e);
/* There is no worker that could stay: STOPPING or a verdict. */
void elastic_change_nobody_left(struct elastic *e);

/* This survivor has to ask (again) within the limit. */
void elastic_change_expect(struct elastic *e, int seat);

/* Kills a member of the epoch at once, and expects its end. */
void elastic_change_kill(struct elastic *e, int seat);

/* This survivor is in a rendezvous that cannot succeed: kills it. */
void elastic_change_stuck(struct elastic *e, int seat);

/* Adds a phrase to the text of the cause. */
void elastic_change_note(struct elastic *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void elastic_change_note_added(struct elastic *e); /* the hosts that are new in the coming epoch */
void elastic_change_close(struct elastic *e);      /* the next epoch has begun */

/* clock.c: the time limits, and what happens when one has passed. */

/* The job has too few slots, or none yet: its time to find them begins (anew). */
void elastic_clock_wait(struct elastic *e, int64_t now_ms);

int64_t elastic_clock_next(const struct elastic *e); /* INT64_MAX: nothing */
/* Carries out the earliest limit that has passed at e->now_ms. False: none has. */
bool elastic_clock_fire(struct elastic *e);

/* departures.c: hosts that leave the job: drained, unlisted, or listed with fewer slots. */

/* Lets go the draining hosts that no longer have a worker. */
void elastic_departures_finish(struct elastic *e);

void elastic_departures_drain(struct elastic *e, int number, const char *text, int64_t deadline_ms);
void elastic_departures_undrain(struct elastic *e, int number);
/* Its deadline has passed: kills the workers that are still there. Otherwise they would hold up the
 * others when the machine goes. */
void elastic_departures_expire(struct elastic *e, int number);

/* Applies the list of the hosts that the job has now: new hosts, other slots. Hosts that are no
 * longer on it drain. */
void elastic_listing_take(struct elastic *e, const struct host_list *list);

/* exits.c: what the end of a worker means, by the state that the job is in. */

/* The time of what the event reports: the event's own, but never later than now. */
int64_t elastic_exits_happened(const struct elastic *e, const struct elastic_event *event);

void elastic_exits_take(struct elastic *e, const struct elastic_event *event);

/* members.c: the plan of an epoch, and its start. */

/* How many workers that have asked can keep their slots. */
int elastic_members_survivors(const struct elastic *e);

/* Some that have asked cannot stay, and hold up the next machine of their host's name. */
bool elastic_members_hold_up(const struct elastic *e);
void elastic_members_let_leave(struct elastic *e); /* answers them: they are not needed */

/* Makes the plan of the next epoch from the choice; PREPARE. The state becomes PREPARING. */
void elastic_members_prepare(struct elastic *e, const struct elastic_choice *choice);

/* All newcomers are ready, and the survivors are just those that their plan counts on. */
bool elastic_members_can_join(const struct elastic *e);
/* As elastic_members_prepare(), by the plan of the newcomers: nobody is to be started. */
void elastic_members_join(struct elastic *e);
/* Members wait at the rendezvous for others that have ended, and new workers can take the places of
 * those. Rank 0 is not among them: the others would receive the state of a new worker. */
bool elastic_members_can_repair(const struct elastic *e);
/* As elastic_members_prepare(), by the present plan. */
void elastic_members_repair(struct elastic *e);

bool elastic_members_use(const struct elastic *e, int host); /* the plan has members there */
/* The prepared epoch does not start: CANCEL. The state becomes WAITING, for a new plan. */
void elastic_members_cancel(struct elastic *e);
void elastic_members_avoid(struct elastic *e, int host); /* the same, if it has members there */
/* START and the answers. The state becomes RUNNING. */
void elastic_members_start(struct elastic *e);
/* All of its workers run: RESUMED. */
void elastic_members_resume(struct elastic *e);

/* steps.c: after every event, takes the job as far as it can go without another event. */

void elastic_steps_settle(struct elastic *e);

/* verdict.c: the end of the job, with its text. After one of these calls the state is ENDING, and
 * the caller does nothing more. */

/* `failure`: what it is about, or NULL. */
void elastic_verdict_give(struct elastic *e, enum elastic_end end,
                          const struct elastic_failure *failure, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The crash that the verdict is about followed from the loss of a host. */
void elastic_verdict_revise(struct elastic *e, const struct elastic_failure *loss);
void elastic_verdict_success(struct elastic *e);
/* The rank exited with 0, and its host was lost before the driver had all that it wrote. A success
 * of this epoch, given or to come, becomes the loss of the host: output is missing. */
void elastic_verdict_unread(struct elastic *e, int rank, const struct elastic_failure *loss);
void elastic_verdict_driver(struct elastic *e); /* emits no action: the driver asked for it */
/* Too few slots for longer than elastic_timeout. */
void elastic_verdict_no_hosts(struct elastic *e, int wanted, int64_t found);
/* One more epoch would pass the reset limit. */
bool elastic_verdict_at_limit(const struct elastic *e);
/* True: that is so, and the verdict is given. */
bool elastic_verdict_reset_limit(struct elastic *e);
