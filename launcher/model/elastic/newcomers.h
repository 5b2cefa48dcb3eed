/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Newcomers: workers that start beside the running epoch, so that nobody waits for their imports.
 *
 * A process learns its rank and the size of its world when it starts. So all newcomers of one batch
 * are started for one plan: the present members in their order, and the newcomers. They join
 * together, when each of them waits at the rendezvous. There is one batch at a time.
 *
 * A batch is dismissed when that plan can no longer come true: a newcomer has ended, its slot
 * cannot be used any more, or an epoch with other members has begun. The job then starts another
 * batch. Until they join, newcomers cost the members nothing. A newcomer that fails counts against
 * its own slot alone. Nobody waits for the end of a dismissed one.
 */
#pragma once

#include "model/elastic/job.h"
#include "model/elastic/placement.h"

/* Their plan, and PREPARE_NEWCOMERS. Takes the members out of `placement`; its survivors are the
 * members of the running epoch in the order of their ranks. */
void elastic_newcomers_begin(struct elastic *e, struct elastic_placement *placement);
/* PREPARED has come: START_NEWCOMERS. */
void elastic_newcomers_start(struct elastic *e);
/* It has ended, or was too slow: counts against its slot. `seat` keeps its state. */
void elastic_newcomers_failed(struct elastic *e, const struct elastic_failure *failure);

/* They cannot be prepared on this host, where members go on: their slots are blacklisted. */
void elastic_newcomers_prepare_failed(struct elastic *e, int host, const char *why);

bool elastic_newcomers_any(const struct elastic *e);
bool elastic_newcomers_complete(const struct elastic *e); /* there are some, and all can join */
/* Their plan counts on just these members. */
bool elastic_newcomers_expect(const struct elastic *e, const struct elastic_survivor *survivors,
                              int count);

/* Kills those that were started, and cancels those that were not. */
void elastic_newcomers_dismiss(struct elastic *e);
/* The same, but the caller ends those that were started, or they have joined. */
void elastic_newcomers_forget(struct elastic *e);
/* Dismisses them if their plan cannot come true. */
void elastic_newcomers_check(struct elastic *e);
