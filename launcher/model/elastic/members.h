/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoch of an elastic job: its possible members, its plan, its start.
 */
#pragma once

#include "model/elastic/job.h"
#include "model/elastic/placement.h"

/* The hosts that the next epoch would use, and how many workers it would have. */
struct elastic_choice {
    int *hosts; /* owned; in the order in which they get new workers */
    int count;
    int size;
    int64_t usable; /* slots of all usable hosts, spare ones too */
};

void elastic_members_choose(const struct elastic *e, struct elastic_choice *choice);
void elastic_members_choice_clear(struct elastic_choice *choice);

/* How many workers that have asked can keep their slots. */
int elastic_members_survivors(const struct elastic *e);

/* Some that have asked cannot stay, and hold up the next machine of their host's name. */
bool elastic_members_hold_up(const struct elastic *e);
void elastic_members_let_leave(struct elastic *e); /* answers them: they are not needed */

/* Gives the survivors, and new workers up to the size of the choice, their ranks. */
void elastic_members_place(const struct elastic *e, const struct elastic_choice *choice,
                           const struct elastic_survivor *survivors, int count,
                           struct elastic_placement *out);

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
/* START and the answers. The state becomes RUNNING. */
void elastic_members_start(struct elastic *e);
/* All of its workers run: RESUMED. */
void elastic_members_resume(struct elastic *e);
