/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world around the elastic core: hosts, their agents and links, workers, discovery,
 * and a driver that does what the core's actions say. It runs one schedule from the first list of
 * hosts to the end of the job, and checks the invariants after every event.
 *
 * Time: `now_ms` is the world's; the core's clock is core_now(), which jumps with FAULT_JUMP. What
 * a host sends keeps its order, as on a link; hosts do not wait for each other. When a link is
 * closed what is still on its way is dropped.
 *
 * The world keeps two records: the truth (a process lives), and what the core knows from its events
 * (`told_`). Invariants about what the core may know use the second.
 */
#pragma once

#include "sim/agenda.h"
#include "sim/core.h"
#include "sim/invariant.h"
#include "sim/rng.h"
#include "sim/schedule.h"

struct statistics;

#define WORLD_WORKERS 600 /* ever started in one job */
#define WORLD_SEATS 128
#define WORLD_REQUESTS 2000
#define WORLD_STEPS 20000 /* events of one job */
#define WORLD_SLOTS 8     /* of a host */
#define WORLD_FAILURES 8
#define WORLD_START_MS 5000000
#define WORLD_NODE_TIMEOUT_MS 5000

struct sim_host {
    char name[16];
    int number; /* in the core; -1: never listed */
    struct rng rng;
    /* the truth */
    bool listed, powered;
    int slots, boot;
    int64_t stuck_until_ms, silent_until_ms, silent_since_ms;
    int prepare_failures, traps[4], trap_count;
    int64_t from_ms, to_ms; /* when the last thing on its link arrives, either way */
    bool agent;             /* the agent of its link lives */
    bool slow;              /* it has not always done what it should since its link is up */
    /* the driver's view */
    bool calling, up;
    uint32_t link; /* number of the link or call; 0: none */
    /* what the core has been told */
    bool told_listed, told_draining;
    int told_slots, told_boot;
    int64_t told_deadline_ms; /* of its drain, core's clock; -1: none */
    int64_t told_away_ms;     /* when it was lost or unreached; -1: not, or forgotten */
    int64_t usable_since_ms;  /* it could be used all the time since then; -1: it cannot */
    int usable_slots;
    /* failures that count beyond doubt, by the core's clock */
    int64_t failures[WORLD_SLOTS + 1][WORLD_FAILURES]; /* the last row: of the host itself */
    int failure_count[WORLD_SLOTS + 1];
    int64_t blacklisted_until_ms[WORLD_SLOTS + 1]; /* at least; 0: not */
    int seen_blacklisted;
    int64_t seen_blacklisted_ms;
    bool stays; /* it has not been away since it was in the running epoch */
};

struct sim_worker {
    int seat, host, slot;
    struct rng rng;
    uint32_t link;
    /* the truth */
    bool spawned, alive, ended, registered;
    int code;
    bool signaled;
    /* as the program is */
    bool registers, hung, stubborn, setup_abort;
    enum reaction reaction;
    int64_t finish_delay_ms;
    uint32_t comm;  /* epoch of the communicator that it is in; 0: none */
    int request;    /* index + 1 of the one that it waits for */
    bool told_held; /* the core was told that it waits at the gate for one that has ended */
    bool newcomer;  /* it has not joined yet */
    bool can_join;  /* it waits at the rendezvous */
    bool leaving;   /* it has reached its commit, or saw a failure, and is about to ask */
    /* the driver's and the core's view */
    bool gone; /* its host was lost */
    bool told_started, told_registered, told_exited, told_finished, told_ask, told_can_join;
    bool told_hung;
    bool ever_asked, kill_sent, removed, ended_before; /* our signal was sent */
    /* its place, as last told to it */
    uint32_t epoch;
    int rank, local_rank;
};

struct sim_request {
    int uid; /* -1: of a stray */
    int host;
    uint32_t epoch; /* of the place that its asker had */
    bool told, answered, dropped, told_dropped;
    int64_t told_ms;
    uint32_t told_epoch; /* that which ran then */
};

/* A plan, as it was when it was prepared. */
struct sim_plan {
    uint32_t epoch;
    int restart_count, size, host_count;
    bool fresh, repairs;
    struct elastic_member members[CORE_MEMBERS];
    int uids[CORE_MEMBERS];   /* of survivors and newcomers; -1: new */
    bool joins[CORE_MEMBERS]; /* a newcomer, which runs already */
    int hosts[CORE_MEMBERS];
};

struct sim_prepare {
    bool active, told_prepared;
    uint32_t epoch;
    uint32_t waiting; /* bits: hosts that are not ready */
    int64_t since_ms;
};

/* The communicator of the running epoch. */
struct sim_comm {
    uint32_t epoch;
    int joined, size;
    bool steady, broken, done, notified;
    bool gate_broken; /* a member has ended before it was steady, and the driver knows */
    int64_t steady_since_ms;
};

struct world {
    const struct schedule *schedule;
    struct core core;
    struct rng rng;
    int64_t now_ms, offset_ms;
    int64_t core_last_ms; /* the highest time that the core was given */
    int steps;
    struct sim_host hosts[SCHEDULE_HOSTS];
    int by_number[SCHEDULE_HOSTS]; /* the core's host number -> index */
    int number_count;
    uint32_t last_link;
    int worker_count, request_count;
    struct sim_worker workers[WORLD_WORKERS];
    int seats[WORLD_SEATS]; /* uid + 1 of who sits there; 0: nobody */
    struct sim_request requests[WORLD_REQUESTS];
    struct sim_plan planned, started; /* the last one prepared, the last one started */
    struct sim_plan batch;            /* of the newcomers */
    struct sim_prepare batch_prepare;
    bool batch_started, leave_told; /* a host leaves, since the epoch was started */
    uint32_t last_epoch;            /* highest that was prepared */
    struct sim_prepare prepare;
    struct sim_comm comm;
    bool resumed; /* the started epoch has */
    int started_count;
    int refill_count; /* of them, those that may have been started only to replace lost workers */
    bool may_refill;  /* workers were lost, and no newcomers have joined since */
    int64_t lost_ms;
    /* what the core has been told, and has said */
    bool discovery_told, discovery_failed_first, end_told;
    bool verdict, over;
    bool hosts_changed; /* since the first epoch was planned */
    bool failure_told;  /* in the epoch that runs: what follows is a consequence */
    bool ask_told, crash_told, loss_told, drain_told, prepare_failure_told, prepare_expired;
    bool hung_told;
    bool succeeded_told; /* a member of the epoch that runs has ended with 0, after it registered */
    enum elastic_state state_before; /* the last event */
    int64_t waiting_since_ms;        /* core's clock */
    bool newcomers_awaited;          /* their end is all that the next plan lacks */
    int64_t state_since_ms, grow_since_ms;
    /* the mood of the world */
    bool benign, jumped;
    int64_t benign_at_ms, crashy_until_ms, late_ms, work_left_ms;
    /* the first thing that was wrong */
    enum invariant broken;
    char problem[512];
    /* from here on kept from run to run */
    bool verbose;
    struct statistics *statistics; /* NULL: not counted */
    struct agenda agenda;
};

/* `world` is large: reuse one. Returns the invariant that did not hold, INV_NONE if all did. */
enum invariant world_run(struct world *world, const struct schedule *schedule,
                         enum mutation mutation);

int64_t core_now(const struct world *world);

/* Records the first thing that is wrong. */
void world_problem(struct world *world, enum invariant invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void world_story(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Gives an event to the core now, and does what it says. */
void world_tell(struct world *world, const struct elastic_event *event);

void world_add(struct world *world, const struct task *task);

/* Puts a task on the agenda that travels over the link of `host`: after all that is on it. The
 * event is told to the core when it arrives. `delay_ms` is what happens before it is sent. */
void host_send(struct world *world, int host, int64_t delay_ms, const struct elastic_event *event);
/* Towards the host: `task` runs there when it arrives. */
void host_receive(struct world *world, int host, struct task task);

/* hosts.c */
void hosts_reset(struct world *world);
void hosts_fault(struct world *world, const struct fault *fault);
void hosts_task(struct world *world, const struct task *task);
void hosts_benign(struct world *world);
void host_called(struct world *world, int host); /* CALL */
void host_close(struct world *world, int host);  /* its link; its workers are gone for us */
void hosts_discover(struct world *world, bool shuffled);
void hosts_watch(struct world *world); /* who could be used, and since when */

/* workers.c */
int worker_create(struct world *world, const struct elastic_member *member, uint32_t epoch);
void worker_newcomer(struct world *world, int uid); /* the one that was just created */
void worker_joins(struct world *world, int uid, const struct elastic_member *member,
                  uint32_t epoch);
void workers_fault(struct world *world, const struct fault *fault);
void workers_task(struct world *world, const struct task *task);
void worker_end(struct world *world, int uid, int64_t code);  /* exit code, or -signal */
void worker_answered(struct world *world, int uid, int seat); /* an answer is on its way to it */
void workers_benign(struct world *world);
void comm_start(struct world *world, uint32_t epoch, int size);
void comm_gate_breaks(struct world *world); /* the driver learns that a member has ended */
void comm_wait_on(struct world *world, int uid, uint32_t epoch); /* at the gate, for another one */
bool worker_may_ask(struct world *world, uint64_t number);       /* false: it has ended instead */
struct sim_worker *world_worker(struct world *world, int seat);  /* NULL: nobody sits there */
bool worker_is_live(const struct sim_worker *worker);            /* as far as the core was told */

/* hangs.c */
void hangs_look_later(struct world *world); /* a worker hangs, or an epoch goes on */
void hangs_task(struct world *world, const struct task *task);

/* driver.c */
bool sim_plan_joins(const struct sim_plan *plan); /* newcomers take part in it */
void driver_do(struct world *world, const struct elastic_action *action);
void driver_ready(struct world *world, const struct task *task); /* a host has prepared, or not */
void driver_end(struct world *world); /* it ends the job, after a verdict or for its own reasons */
void driver_told(struct world *world, const struct elastic_event *event);

/* strays.c */
void stray_fault(struct world *world, const struct fault *fault);

/* check_*.c: called by the driver before an action is done, and after each event. */
void check_plan(struct world *world, const struct sim_plan *plan);
void check_newcomers(struct world *world, const struct sim_plan *batch);
void check_start(struct world *world);
void check_action(struct world *world, const struct elastic_action *action);
void check_answer(struct world *world, const struct elastic_action *action);
void check_places(struct world *world);
void check_verdict(struct world *world);
bool check_all_placed(const struct world *world); /* all members know their place */
void check_resumed(struct world *world);
void check_before(struct world *world);
void check_after(struct world *world, const struct elastic_event *event);
void check_end(struct world *world);
