/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an epoch: its plan, and its start.
 */
#pragma once

#include "model/elastic/choice.h"
#include "model/elastic/job.h"

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
/* START and the answers. The state becomes RUNNING. */
void elastic_members_start(struct elastic *e);
/* All of its workers run: RESUMED. */
void elastic_members_resume(struct elastic *e);
