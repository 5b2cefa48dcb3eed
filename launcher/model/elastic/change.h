/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one epoch of an elastic job to the next: what counts as the cause, what it costs, whether
 * the workers rejoin or restart, and when they have agreed.
 */
#pragma once

#include "model/elastic/job.h"

/* A member has failed, or a host with members was lost. The first failure of an epoch is the cause
 * of the change, which it opens where nothing else has; later ones change nothing. May end in a
 * verdict. */
void elastic_change_fail(struct elastic *e, const struct elastic_failure *failure);

/* A member has ended with 0 while the job changes: it is not believed. */
void elastic_change_suspect(struct elastic *e, const struct elastic_failure *failure);

/* A member of the running epoch asks for its next place. */
void elastic_change_asked(struct elastic *e, int seat);

/* A running epoch is to become larger, or a host (or some of its slots) is to be left: rank 0 is
 * told, or all restart. `grace_ms`: for a restart. */
void elastic_change_grow(struct elastic *e, int size);
void elastic_change_leave(struct elastic *e, int64_t grace_ms);

/* Everybody of the epoch has asked or ended: WAITING, STOPPING or a verdict. */
void elastic_change_agreed(struct elastic *e);
/* No worker that could stay is left: STOPPING or a verdict. */
void elastic_change_nobody_left(struct elastic *e);

/* This survivor has to ask (again) within the limit. */
void elastic_change_expect(struct elastic *e, int seat);

/* A piece of the cause in words. */
void elastic_change_note(struct elastic *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void elastic_change_note_added(struct elastic *e); /* what the coming epoch has more */
void elastic_change_close(struct elastic *e);      /* the next epoch has begun */
