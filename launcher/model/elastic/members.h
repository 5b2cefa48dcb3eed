/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoch of an elastic job: who could be in it, its plan, its start.
 */
#pragma once

#include "model/elastic/job.h"

/* The hosts that the next epoch would use, and how many workers it would have. */
struct elastic_choice {
    int *hosts; /* owned; in the order in which they are given new workers */
    int count;
    int size;
    int64_t usable; /* slots of all usable hosts, spare ones too */
};

void elastic_members_choose(const struct elastic *e, struct elastic_choice *choice);
void elastic_members_choice_clear(struct elastic_choice *choice);

/* How many asking workers can stay in their slots. */
int elastic_members_survivors(const struct elastic *e);

/* Makes the plan of the next epoch from the choice and says PREPARE; PREPARING. */
void elastic_members_prepare(struct elastic *e, const struct elastic_choice *choice);
bool elastic_members_use(const struct elastic *e, int host); /* the plan has members there */
/* What is prepared does not start: CANCEL; WAITING, where a new plan is made. */
void elastic_members_cancel(struct elastic *e);
/* START and the answers; RUNNING. */
void elastic_members_start(struct elastic *e);
/* All of its workers run: RESUMED. */
void elastic_members_resume(struct elastic *e);
