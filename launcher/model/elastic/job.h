/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an elastic job, which all files of the core share. Each file changes only what its
 * own header says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/elastic/hosts.h"
#include "model/elastic/types.h"

/*
 * The seats of an elastic job and the workers in them. Pure facts. Only elastic_workers_move() and
 * elastic_workers_free() change the state of a worker. They allow the steps of the table in
 * model/elastic/types.h, and keep the counts by state and by host.
 */

struct elastic_worker {
    enum elastic_worker_state state;
    int host, slot;
    int rank, local_rank; /* of its last epoch; -1: none yet */
    bool registered;
    bool rejoins;       /* it has registered or asked */
    bool placed;        /* it is in the latest plan */
    int64_t due_ms;     /* its time limit, see elastic_workers_expect(); INT64_MAX: none */
    int next, previous; /* seats of its host; -1: none */
    uint64_t *requests; /* owned: unanswered ones of an asking worker */
    int request_count, request_room;
};

struct elastic_workers {
    struct elastic_hosts *hosts; /* borrowed */
    struct elastic_worker *items;
    int count; /* seats ever taken */
    size_t room;
    int in_state[ELASTIC_WORKER_STATES];
    int taken;      /* not FREE */
    int free_below; /* no seat below it is free */
    int64_t due_ms; /* not after the next due time of any worker */
};

void elastic_workers_destroy(struct elastic_workers *workers);
struct elastic_worker *elastic_workers_at(const struct elastic_workers *workers,
                                          int seat); /* NULL: the seat is free */

/* Puts a PLANNED worker into the lowest free seat, and returns the seat. */
int elastic_workers_seat(struct elastic_workers *workers, int host, int slot);
void elastic_workers_move(struct elastic_workers *workers, int seat, enum elastic_worker_state to);

/* To FREE, from any state: the worker has finished, or its host is lost. */
void elastic_workers_free(struct elastic_workers *workers, int seat);

/* Frees the seats of the planned workers of the latest plan; newcomers are not in it. */
void elastic_workers_forget_planned(struct elastic_workers *workers);

/* Limits the time until the worker takes its next step; what is due then depends on its state. */
void elastic_workers_expect(struct elastic_workers *workers, int seat, int64_t due_ms);
void elastic_workers_find_due(struct elastic_workers *workers);

/* The seat of the worker of this host that last had this local rank and was not removed since. A
 * worker that stays goes before one that is being killed. -1: none. */
int elastic_workers_find(const struct elastic_workers *workers, int host, int local_rank);

/* It holds the job's state or will soon: STARTING, RUNNING, ASKED, HELD. */
bool elastic_worker_stays(const struct elastic_worker *worker);
bool elastic_worker_lives(const struct elastic_worker *worker); /* not EXITED */

/* It was started beside the running epoch and has not joined: JOINING, READY, DISMISSED. */
bool elastic_worker_is_newcomer(const struct elastic_worker *worker);
void elastic_workers_hold(struct elastic_workers *workers, int seat, uint64_t request);

/* Forgets the request, and returns the seat that held it; -1: none. */
int elastic_workers_drop(struct elastic_workers *workers, uint64_t request);

/* Those of enum log_level that are used; a pure room does not include the log. */
enum { ELASTIC_WARNING = 1, ELASTIC_NOTICE = 2 };

#define ELASTIC_OFF INT64_MAX

enum elastic_timer {
    ELASTIC_TIMER_WAIT,      /* enough slots must be there */
    ELASTIC_TIMER_SHORT,     /* that time is nearly over: all hosts are called */
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
    int idle;               /* as in `struct elastic`, before it was counted as a crash */
    bool progressed;        /* the same */
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
    int64_t now_ms;
    enum elastic_state state;
    int64_t timers[ELASTIC_TIMERS]; /* when they are due, or ELASTIC_OFF */
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
    bool reports, progressed;      /* the program reports progress; it has since the last restart */
    int idle;                      /* restarts in a row without progress */
    /* look again: which hosts to call, which to let go, whether the job can grow */
    bool call_again, release_again, grow_again;
    struct elastic_actions *out; /* of the present event */
    char **texts;                /* owned: what its actions borrow */
    size_t text_count, text_room;
};

/* An action with host and seat -1. Valid until the next one. */
struct elastic_action *elastic_emit(struct elastic *e, enum elastic_action_kind kind);

/* Kills a worker at once, and expects its end. It becomes KILLED or DISMISSED. */
void elastic_remove(struct elastic *e, int seat, enum elastic_worker_state state);
void elastic_say(struct elastic *e, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void elastic_host_bad(struct elastic *e, int host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void elastic_forget_texts(struct elastic *e);

const char *elastic_host_name(const struct elastic *e, int number);
/* That all hosts but this one promise; -1: all of them. */
int elastic_slots_without(const struct elastic *e, int number);
/* Puts a slot of the host on the blacklist, or (-1) the host. Says so, and why. */
void elastic_blacklist(struct elastic *e, int number, int slot, const char *why);
/* The program has crashed there too often. */
void elastic_blacklist_slot(struct elastic *e, int number, int slot);

/* Without its text and code. It is about the worker in `seat`, or (-1) about a host, or nobody
 * (-1). */
struct elastic_failure elastic_failure_of(const struct elastic *e, enum elastic_failure_kind kind,
                                          int host, int seat, int64_t since_ms);

const char *elastic_plural(int count); /* "s", or "" for one */
