/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an elastic job, which all files of the core share. Each file changes only what its
 * own header says.
 */
#pragma once

#include "base/buf.h"
#include "model/elastic/blacklist.h"
#include "model/elastic/hosts.h"
#include "model/elastic/types.h"
#include "model/elastic/workers.h"

/* Those of enum log_level that are used; a pure room does not include the log. */
enum { ELASTIC_WARNING = 1, ELASTIC_NOTICE = 2 };

enum elastic_timer {
    ELASTIC_TIMER_WAIT,      /* enough slots must be there */
    ELASTIC_TIMER_GATHER,    /* the first epoch stops waiting for more hosts than it needs */
    ELASTIC_TIMER_GROW,      /* hosts that have come become a change */
    ELASTIC_TIMER_NOTIFY,    /* notify rank 0 again */
    ELASTIC_TIMER_PREPARE,   /* PREPARED must have come */
    ELASTIC_TIMER_START,     /* every new worker must have STARTED */
    ELASTIC_TIMER_NEWCOMERS, /* PREPARED must have come for the newcomers */
    ELASTIC_TIMER_STOP,      /* every worker must have FINISHED */
    ELASTIC_TIMER_END,       /* the same after the verdict */
    ELASTIC_TIMERS
};

enum elastic_failure_kind {
    ELASTIC_FAILURE_NONE,
    ELASTIC_FAILURE_CRASH,
    ELASTIC_FAILURE_LOST,
    ELASTIC_FAILURE_PREEMPTED,
    ELASTIC_FAILURE_HUNG /* host, slot, seat and rank are -1 if nobody is to blame */
};

struct elastic_failure {
    enum elastic_failure_kind kind;
    int host, slot, seat, rank; /* of a lost host: slot, seat and rank are -1 */
    int code;
    bool signaled;
    int64_t since_ms;
    char text[400]; /* "rank 3 on b ended with code 1" */
};

/* What leads from one epoch to the next. It is all zero at each START. While the job runs it
 * gathers drains and new hosts. It is open from the first failure, the first worker that asks, or
 * the first restart on. */
struct elastic_change {
    bool open;
    enum elastic_mode mode; /* REJOIN or RESTART, once it is open */
    bool fresh;             /* there is no survivor: the rejoin has become a restart */
    bool charged;           /* it was counted as a restart, or as a preemption */
    bool noticed;           /* a host is draining */
    bool grows;             /* it was opened, or is announced, for new hosts */
    bool notify;            /* rank 0 must be notified, as soon as it has registered */
    bool stuck_said;        /* why workers in a rendezvous are killed */
    int announced;          /* the size of which rank 0 was notified */
    int64_t pause_ms;       /* until it is notified again; 0: it was not notified yet */
    int killed, lost;       /* workers that we killed and hosts lost since it was opened */
    int aborted;            /* members that ended by SIGABRT after the cause */
    int also;               /* members of a rejoin that failed after the cause */
    struct elastic_failure also_first;
    struct elastic_failure cause;   /* the first failure */
    struct elastic_failure suspect; /* the first early exit with 0 */
    struct elastic_failure asker;   /* the worker that opened it by asking; kind NONE, no seat */
    int64_t happened_ms, detected_ms, stopped_ms, agreed_ms, planned_ms;
    struct buf text;
};

enum elastic_newcomer_stage {
    ELASTIC_NEWCOMERS_NONE,
    ELASTIC_NEWCOMERS_PREPARING,
    ELASTIC_NEWCOMERS_STARTED
};

/* model/elastic/newcomers.h */
struct elastic_newcomers {
    enum elastic_newcomer_stage stage;
    struct elastic_plan plan; /* the members that it counts on, and the newcomers (is_new) */
};

struct elastic {
    struct elastic_config config;
    struct elastic_blacklist_rule blacklist_rule;
    int64_t now_ms;
    enum elastic_state state;
    int64_t timers[ELASTIC_TIMERS]; /* INT64_MAX: off */
    struct elastic_hosts hosts;
    struct elastic_workers workers;
    struct elastic_plan plan;
    uint32_t last_epoch; /* the highest number that a plan has got */
    struct elastic_newcomers newcomers;
    struct elastic_change change;
    struct elastic_facts facts;  /* of the last epoch that resumed; the sums are kept up to date */
    struct elastic_facts coming; /* of the epoch that was started and has not resumed */
    struct elastic_verdict verdict;
    bool waiting_said;
    bool end_prolonged;      /* after the verdict: all have exited, some have output left */
    int64_t gather_until_ms; /* see ELASTIC_TIMER_GATHER; -1: not begun */
    int64_t grow_due_ms;     /* see ELASTIC_TIMER_GROW; -1: nothing has come */
    unsigned listing;        /* serial of the last HOSTS */
    char *discovery_problem; /* owned; NULL: the last one was fine */
    int started;             /* epochs */
    int refills;             /* of them, those in which newcomers took places of lost workers */
    int fresh_started;       /* of them, those in which all workers were new */
    bool resumed;            /* the running epoch has */
    bool shrunk;             /* it has fewer members than the one before: grow without a delay */
    bool refill;             /* the next newcomers take the places of those that were lost */
    int done;                /* its members that ended with 0 */
    int succeeded;           /* of them and of those that ended later, those that can rejoin */
    struct elastic_failure first_done;
    struct elastic_failure unread; /* the loss that took output of a member that ended with 0 */
    int restarts, preemptions;     /* budgets used */
    /* look again: which hosts to call, which to let go, whether the job can grow */
    bool call_again, release_again, grow_again;
    struct elastic_actions *out; /* of the present event */
    char **texts;                /* owned: what its actions borrow */
    size_t text_count, text_room;
};

/* An action with host and seat -1. Valid until the next one. */
struct elastic_action *elastic_emit(struct elastic *e, enum elastic_action_kind kind);
void elastic_say(struct elastic *e, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void elastic_forget_texts(struct elastic *e);
void elastic_say_slot_blacklisted(struct elastic *e, int host, int slot);

void elastic_timer_set(struct elastic *e, enum elastic_timer timer, int64_t due_ms);
void elastic_timer_off(struct elastic *e, enum elastic_timer timer);

const char *elastic_plural(int count); /* "s", or "" for one */
