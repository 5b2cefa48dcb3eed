/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary of the elastic core: states, events, actions, and the records that come out of it.
 * model/elastic/elastic.h says by which rules they follow each other. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/hosts/hosts.h"

/* clang-format off */
#define ELASTIC_STATE_LIST(X)                                                                    \
    X(ELASTIC_WAITING, "waiting for hosts") X(ELASTIC_PREPARING, "preparing")                    \
    X(ELASTIC_RUNNING, "running") X(ELASTIC_AGREEING, "waiting for the survivors")               \
    X(ELASTIC_STOPPING, "stopping the workers") X(ELASTIC_ENDING, "ending") X(ELASTIC_DONE, "done")

/*   listed  call    up      lost, failed  retry due   drain        no worker    unlisted
 * ABSENT    -> KNOWN
 * KNOWN     -> CALLING                                -> DRAINED                -> ABSENT
 * CALLING           -> UP   -> AWAY                   -> DRAINED                -> ABSENT
 * UP                        -> AWAY                   -> DRAINING               -> DRAINING
 * DRAINING                  -> AWAY                                -> DRAINED
 * AWAY                                    -> CALLING  -> DRAINED                -> ABSENT
 * DRAINED   (undrained, or listed anew) -> KNOWN                                -> ABSENT
 * DRAINING -> UP when the host is undrained. It also goes there when it was unlisted only, and is
 * listed again before it is drained. "Listed anew": in between, the host was on no list. A drained
 * host that is lost is called again like others. If it is the same machine (boot id), the core lets
 * it go at once; it uses another machine. A blacklisted host is called only when it is listed anew,
 * and used if it is another machine. */
#define ELASTIC_HOST_LIST(X)                                                                     \
    X(ELASTIC_HOST_ABSENT, "not listed") X(ELASTIC_HOST_KNOWN, "not used")                       \
    X(ELASTIC_HOST_CALLING, "connecting") X(ELASTIC_HOST_UP, "up")                               \
    X(ELASTIC_HOST_DRAINING, "draining") X(ELASTIC_HOST_DRAINED, "drained")                      \
    X(ELASTIC_HOST_AWAY, "lost")

/*           START       STARTED    asks     answered              kill      exited    finished
 * PLANNED   -> STARTING, JOINING (a newcomer)
 * STARTING              -> RUNNING                                -> KILLED -> EXITED
 * RUNNING                          -> ASKED                       -> KILLED -> EXITED
 * ASKED                                     -> RUNNING (a place)  -> KILLED -> EXITED
 *                                           -> REMOVED (none)
 * REMOVED                                                         -> KILLED -> EXITED
 * KILLED                                                                    -> EXITED
 * EXITED                                                                              -> FREE
 *
 * A member that waits at the gate of the rendezvous (rendezvous/held.h) for one that has ended:
 *           stuck     repaired    kill
 * RUNNING   -> HELD
 * HELD                -> RUNNING  -> KILLED -> EXITED
 *
 * A newcomer starts beside the running epoch (model/elastic/newcomers.h):
 *           ready       joins       kill
 * JOINING   -> READY                -> DISMISSED, KILLED -> EXITED
 * READY                 -> RUNNING  -> DISMISSED, KILLED -> EXITED
 * DISMISSED                         -> KILLED            -> EXITED
 *
 * ASKED -> RUNNING also when its last request is dropped: it has to ask again. A worker of a lost
 * host becomes FREE at once, from any state, and so does a planned one that is cancelled. END_ALL
 * and KILL both lead to KILLED, but KILL of a newcomer leads to DISMISSED: nobody waits for it. */
#define ELASTIC_WORKER_LIST(X)                                                                   \
    X(ELASTIC_WORKER_FREE, "none") X(ELASTIC_WORKER_PLANNED, "planned")                          \
    X(ELASTIC_WORKER_STARTING, "starting") X(ELASTIC_WORKER_RUNNING, "running")                  \
    X(ELASTIC_WORKER_ASKED, "rejoining") X(ELASTIC_WORKER_REMOVED, "removed")                    \
    X(ELASTIC_WORKER_KILLED, "being ended") X(ELASTIC_WORKER_EXITED, "exited")                   \
    X(ELASTIC_WORKER_JOINING, "joining") X(ELASTIC_WORKER_READY, "ready to join")                \
    X(ELASTIC_WORKER_DISMISSED, "dismissed") X(ELASTIC_WORKER_HELD, "held")

#define ELASTIC_MODE_LIST(X)                                                                     \
    X(ELASTIC_AUTO, "auto") X(ELASTIC_REJOIN, "rejoin") X(ELASTIC_RESTART, "restart")            \
    X(ELASTIC_STOP, "stop")

#define ELASTIC_EVENT_LIST(X)                                                                    \
    X(ELASTIC_TICK, "tick")                    /* time has passed */                             \
    X(ELASTIC_HOSTS, "hosts")                  /* `hosts`: all that are available now */         \
    X(ELASTIC_DISCOVERY_FAILED, "discovery failed") /* `text`, `first` */                        \
    X(ELASTIC_HOST_CAME, "host came")          /* `host`, `text` = boot id: its agent is up */   \
    X(ELASTIC_HOST_UNREACHED, "host unreached") /* `host`, `text`: the call has failed */        \
    X(ELASTIC_HOST_LOST, "host lost")          /* `host`, `text`, `since_ms`, `first`: the crash \
                                                  of elastic_cause_seat() followed from it */    \
    X(ELASTIC_HOST_DRAIN, "drain")             /* `host`, `text`, `deadline_ms` or -1: at the    \
                                                  deadline its workers are killed */             \
    X(ELASTIC_HOST_UNDRAIN, "undrain")         /* `host` */                                      \
    X(ELASTIC_PREPARED, "prepared")            /* `epoch`: every agent concerned is ready */     \
    X(ELASTIC_PREPARE_FAILED, "prepare failed") /* `epoch`, `host`, `text`, `code` = status; counts\
                                                  also when the epoch was cancelled meanwhile */ \
    X(ELASTIC_REGISTERED, "registered")        /* `host`, `local_rank`: of a live worker */      \
    X(ELASTIC_ASKED, "asked")                  /* `host`, `local_rank`, `request` */             \
    X(ELASTIC_ASK_DROPPED, "ask dropped")      /* `request`: its asker has hung up */            \
    X(ELASTIC_STARTED, "started")              /* `seat` */                                      \
    X(ELASTIC_CAN_JOIN, "can join")            /* `seat`: a newcomer waits at the rendezvous */  \
    X(ELASTIC_STUCK, "stuck")                  /* `seat`: a member that waits at the rendezvous   \
                                                  for one that has ended; `first`: at its gate */ \
    X(ELASTIC_EXITED, "exited")                /* `seat`, `code`, `signaled`, `since_ms` */      \
    X(ELASTIC_FINISHED, "finished")            /* `seat`: nothing more comes from it */          \
    X(ELASTIC_UNKILLED, "unkilled")            /* `host`, `text`: SIGKILL does not end a process */ \
    X(ELASTIC_PROGRESSED, "progressed")        /* the job has come further than ever before */    \
    X(ELASTIC_HUNG, "hung")                    /* `seat`: of the culprit, or -1 */             \
    X(ELASTIC_END, "end")                      /* the driver ends the job for a reason of its own */

#define ELASTIC_ACTION_LIST(X)                                                                   \
    X(ELASTIC_CALL, "call")             /* `host`: get an agent up there; CAME or UNREACHED */   \
    X(ELASTIC_LET_GO, "let go")         /* `host`: end its agent, or the call; it has no worker */ \
    X(ELASTIC_GIVE_UP, "give up")       /* `host`: treat it as lost, since its agent does not do \
                                           what it should; no event about its workers follows */ \
    X(ELASTIC_PREPARE, "prepare")       /* elastic_plan() */                                     \
    X(ELASTIC_CANCEL, "cancel")         /* what was prepared and not started, `epoch` */         \
    X(ELASTIC_START, "start")           /* the new workers of elastic_plan() */                  \
    X(ELASTIC_PREPARE_NEWCOMERS, "prepare newcomers") /* the new ones of                         \
                                           elastic_newcomers(); PREPARED with its epoch */       \
    X(ELASTIC_CANCEL_NEWCOMERS, "cancel newcomers") /* `epoch`: prepared and not started */      \
    X(ELASTIC_START_NEWCOMERS, "start newcomers")   /* those that were prepared */               \
    X(ELASTIC_ANSWER, "answer")         /* `request` with the place of `seat`; -1: removed */    \
    X(ELASTIC_KILL, "kill")             /* `seat`, `grace_ms`; 0: at once */                     \
    X(ELASTIC_END_ALL, "end all")       /* every worker, `grace_ms` */                           \
    X(ELASTIC_NOTIFY, "notify")         /* `seat`: hosts have changed (both added and removed) */ \
    X(ELASTIC_DEADLINE, "deadline")     /* `host`, `deadline_ms` (-1: no longer one), `text`     \
                                           (why; or NULL): inform its workers */                 \
    X(ELASTIC_HOST_BAD, "host bad")     /* `host`, `text`: on the blacklist, since it was lost */ \
    X(ELASTIC_SAY, "say")               /* `level`, `text`: a line for the user */               \
    X(ELASTIC_RESUMED, "resumed")       /* elastic_facts(): the epoch goes on with all its ranks */\
    X(ELASTIC_VERDICT, "verdict")       /* elastic_verdict(): end what still runs */             \
    X(ELASTIC_OVER, "over")             /* after the verdict: every worker has ended */

/* Why the job has ended. */
#define ELASTIC_END_LIST(X)                                                                      \
    X(ELASTIC_END_NONE, "none") X(ELASTIC_END_SUCCESS, "success")                                \
    X(ELASTIC_END_CRASH, "crash")           /* on-failure stop, or no more restarts */           \
    X(ELASTIC_END_FAULT, "program fault")   /* it crashes everywhere */                          \
    X(ELASTIC_END_HUNG, "hung")             /* the same after a hang */                          \
    X(ELASTIC_END_HOST_LOST, "host lost")   /* on-failure stop, or no more preemptions */        \
    X(ELASTIC_END_NO_HOSTS, "no hosts")     /* too few for longer than elastic_timeout */        \
    X(ELASTIC_END_RESET_LIMIT, "reset limit") X(ELASTIC_END_DISCOVERY, "discovery")              \
    X(ELASTIC_END_PREPARE, "prepare")       /* it cannot be started anywhere */                  \
    X(ELASTIC_END_DRIVER, "driver")         /* ELASTIC_END */
/* clang-format on */

#define ELASTIC_ENUM(name, text) name,
enum elastic_state { ELASTIC_STATE_LIST(ELASTIC_ENUM) ELASTIC_STATES };
enum elastic_host_state { ELASTIC_HOST_LIST(ELASTIC_ENUM) ELASTIC_HOST_STATES };
enum elastic_worker_state { ELASTIC_WORKER_LIST(ELASTIC_ENUM) ELASTIC_WORKER_STATES };
enum elastic_mode { ELASTIC_MODE_LIST(ELASTIC_ENUM) };
enum elastic_event_kind { ELASTIC_EVENT_LIST(ELASTIC_ENUM) ELASTIC_EVENTS };
enum elastic_action_kind { ELASTIC_ACTION_LIST(ELASTIC_ENUM) ELASTIC_ACTIONS };
enum elastic_end { ELASTIC_END_LIST(ELASTIC_ENUM) ELASTIC_ENDS };
#undef ELASTIC_ENUM

const char *elastic_state_name(enum elastic_state state);
const char *elastic_host_state_name(enum elastic_host_state state);
const char *elastic_worker_state_name(enum elastic_worker_state state);
const char *elastic_mode_name(enum elastic_mode mode);
const char *elastic_event_name(enum elastic_event_kind kind);
const char *elastic_action_name(enum elastic_action_kind kind);
const char *elastic_end_name(enum elastic_end end);

struct elastic_config {
    enum elastic_mode mode; /* ELASTIC_AUTO: by what the workers support */
    int np, min_np, max_np; /* to start; to go on; at most, 0: all slots. np, min_np >= 1 */
    int spares;             /* hosts that are kept up without workers while np is reached */
    int reset_limit;     /* changes; -1: no limit. To replace a lost worker belongs to its loss */
    int max_restarts;    /* after crashes; -1: no limit */
    int idle_restarts;   /* in a row, after crashes, that may end without progress; -1: no limit */
    int max_preemptions; /* restarts after lost hosts and drains; -1: no limit */
    int64_t elastic_timeout_ms, rejoin_timeout_ms, prepare_timeout_ms, grow_delay_ms;
    int64_t hold_ms;          /* so much longer may it take to prepare a restart of all workers */
    int64_t gather_ms;        /* the first epoch waits so long for hosts that are called */
    int64_t grace_ms;         /* between TERM and KILL, after a failure */
    int64_t orderly_grace_ms; /* the same in a restart without a failure: a host goes, or comes */
    int64_t cooldown_min_ms, cooldown_max_ms;   /* 0: the blacklist is for good */
    int64_t reconnect_min_ms, reconnect_max_ms; /* doubling, from a loss to the next call */
    int64_t failure_decay_ms, suspect_ms;
    int64_t patience_ms; /* after the grace, until a host whose worker has not ended is given up */
    /* at most so long between two notices of a change to rank 0, until a worker asks; it begins
     * with a tenth, and doubles */
    int64_t renotify_ms;
    int failure_limit;  /* failures until the blacklist; 0: nothing is blacklisted */
    bool hosts_dial_in; /* a call costs nothing, and waits for whoever has the name by then */
    bool early;         /* survivors go on without newcomers, which join when they are ready */
};
void elastic_config_init(struct elastic_config *config); /* the defaults; np and min_np are 1 */

struct elastic_event {
    enum elastic_event_kind kind;
    int host; /* number, as elastic_host_number() gives it */
    int seat, local_rank;
    int code; /* exit code or signal number */
    bool signaled, first;
    uint32_t epoch;
    uint64_t request;              /* of the rendezvous, opaque */
    int64_t since_ms, deadline_ms; /* same clock as `now_ms` */
    const char *text;              /* borrowed; NULL: none */
    const struct host_list *hosts; /* borrowed */
};

struct elastic_action {
    enum elastic_action_kind kind;
    int host, seat;
    uint32_t epoch;
    uint64_t request;
    int64_t grace_ms, deadline_ms;
    int level;        /* enum log_level */
    const char *text; /* borrowed until the next event */
};

struct elastic_actions {
    struct elastic_action *items;
    size_t count, room;
};
void elastic_actions_destroy(struct elastic_actions *actions);

struct elastic_member {
    int seat, host, slot;
    int rank, local_rank, local_size, cross_rank, cross_size;
    bool is_new; /* to be started; else a survivor */
};

/* The members of the epoch that is prepared or runs. */
struct elastic_plan {
    uint32_t epoch;
    int restart_count; /* how often all workers have started anew */
    bool repairs;      /* the same members as before, but new workers for those that have ended: the
                          others wait at the rendezvous, and keep their places */
    bool fresh;        /* every member is new, seat == rank; no worker of earlier epochs runs */
    int size;
    struct elastic_member *members; /* in rank order */
    int host_count;
    int *hosts; /* numbers of those with members, in rank order of their first member */
};

/* About the epoch that has just resumed, and about the whole job. Times are on the caller's clock;
 * 0: the phase did not happen. */
struct elastic_facts {
    uint32_t epoch;
    int size, host_count;
    enum elastic_mode mode; /* that led to it; ELASTIC_AUTO for the first */
    char cause[512];        /* "lost c: no heartbeat for 5.0 s; added d"; "" for the first */
    int64_t happened_ms;    /* the change, as far as it is known (last heard, exit) */
    int64_t detected_ms, agreed_ms, planned_ms, started_ms, resumed_ms;
    int epochs, crashes, hosts_lost, preemptions, grown; /* so far in the job */
    int64_t lost_ms; /* from happened to resumed, summed over all epochs */
};

struct elastic_verdict {
    enum elastic_end end;
    /* CRASH, FAULT, RESET_LIMIT after a crash: exit code or signal number of `seat`. It is never 0:
     * it is 1 when that worker ended with 0 too early, or when there is no seat. PREPARE: the
     * status. */
    int code;
    bool signaled;
    int seat, rank, host; /* that the verdict is about; -1: none */
    char text[1024];      /* one line; "" with SUCCESS */
};
