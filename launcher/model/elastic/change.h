/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one epoch of an elastic job to the next: the cause, the budget that it is charged to,
 * whether the workers rejoin or restart, and when they have agreed.
 */
#pragma once

#include "model/elastic/job.h"

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

/* Kills a worker at once, and expects its end. */
void elastic_change_kill(struct elastic *e, int seat);

/* This survivor is in a rendezvous that cannot succeed: kills it. */
void elastic_change_stuck(struct elastic *e, int seat);

/* Adds a phrase to the text of the cause. */
void elastic_change_note(struct elastic *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void elastic_change_note_added(struct elastic *e); /* the hosts that are new in the coming epoch */
void elastic_change_close(struct elastic *e);      /* the next epoch has begun */
