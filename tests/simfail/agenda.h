/* SPDX-License-Identifier: Apache-2.0 */
/* What is still to happen, by time. What was added first comes first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
    EVENT_REASON, /* who: 0 or 1, the first or the second reason */
    EVENT_NOTICE, /* who: a rank; its peer has gone */
    EVENT_ERROR,  /* who: a rank; it writes an error, and goes on */
    EVENT_END,    /* who: a rank; how it was meant to end is in the rank */
    EVENT_KILL,   /* who: a rank; from outside */
    EVENT_TERM,   /* who: a rank; by its agent */
    EVENT_READ,   /* who: a rank; its agent reads what it wrote */
    EVENT_REAP,   /* who: a rank; its agent sees its end */
    EVENT_FALL,   /* who: a host; its agent dies */
    EVENT_BEAT,   /* who: a host */
    EVENT_NEWS,   /* who: number of the news */
    EVENT_ORDER,  /* who: a host; its agent is told to end the ranks */
    EVENT_WAITED, /* who: number of the wait */
    EVENT_LIMIT,  /* the driver gives up the agents that have not ended their ranks */
};

struct event {
    int64_t at_ns;
    enum event_kind kind;
    int who;
};

#define AGENDA_MAX 4096

struct agenda {
    struct event items[AGENDA_MAX]; /* the next one is the last */
    int count;
};

void agenda_add(struct agenda *agenda, int64_t at_ns, enum event_kind kind, int who);
bool agenda_next(struct agenda *agenda, struct event *event);
