/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is going to happen in the simulated world, in order of time; tasks of one time in the order
 * in which they were added.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/elastic/elastic.h"

#define AGENDA_ROOM 2048

enum task_kind {
    TASK_FAULT,   /* value: index into the schedule */
    TASK_TELL,    /* an event reaches the core */
    TASK_CALLED,  /* the call to a host comes to its end */
    TASK_READY,   /* a host has prepared (value 0) or could not (1) */
    TASK_SILENCE, /* a host was silent for too long */
    TASK_VANISH,  /* a host goes away: its drain deadline */
    TASK_BENIGN,  /* from now on nothing goes wrong any more */
    /* of a worker; `uid` */
    TASK_SPAWN,
    TASK_REGISTER,
    TASK_CAN_JOIN,    /* a newcomer has done its imports, and waits at the rendezvous */
    TASK_PEER_FAILED, /* epoch */
    TASK_SETUP_LIMIT, /* epoch */
    TASK_JOIN,        /* an answer has reached it; epoch, or -1 in value: removed */
    TASK_NOTIFIED,
    TASK_COMMIT, /* epoch: it has reached its next commit and rejoins */
    TASK_ASK,
    TASK_TERM,      /* value: the grace */
    TASK_END,       /* value: exit code, or -signal */
    TASK_WORK_DONE, /* epoch, of all workers */
    TASK_HANG       /* epoch: the watch looks whether a worker hangs */
};

struct task {
    int64_t at_ms;
    uint32_t order;
    enum task_kind kind;
    int host;      /* -1: none */
    uint32_t link; /* of the host; it is dropped when that one is closed. 0: not by a link */
    int uid;       /* of the worker */
    uint32_t epoch;
    int64_t value;
    struct elastic_event event;
};

struct agenda {
    int count;
    uint32_t order;
    struct task tasks[AGENDA_ROOM]; /* a heap */
};

void agenda_clear(struct agenda *agenda);
bool agenda_add(struct agenda *agenda, const struct task *task); /* false: full */
const struct task *agenda_first(const struct agenda *agenda);    /* NULL: empty */
struct task agenda_take(struct agenda *agenda);
