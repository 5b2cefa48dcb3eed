/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job as its driver sees it: what the parts of this room share. One part knows one thing
 * (bring-up, collecting output, stdin, the user's signals, the end); driver.c composes them.
 *
 *   state       all HELLO   all READY   first bad exit,    all ENDED   all agents   output
 *                                       signal, time-out,              closed       written
 *                                       or all FINISHED
 *   CONNECTING  PREPARING               ENDING
 *   PREPARING               RUNNING     ENDING
 *   RUNNING                             ENDING
 *   ENDING                                                 CLOSING
 *   CLOSING                                                            FLUSHING
 *   FLUSHING                                                                        DONE
 * A lost node counts as ENDED and closed.
 */
#pragma once

#include "base/log.h"
#include "base/strv.h"
#include "driver/job/node_link.h"
#include "driver/job/ranks.h"
#include "io/reaper.h"
#include "model/exit/policy.h"
#include "model/plan/app.h"
#include "model/plan/plan.h"
#include "model/settings/settings.h"
#include "output/output.h"

#define JOB_STATE_LIST(X)           \
    X(JOB_CONNECTING, "connecting") \
    X(JOB_PREPARING, "preparing")   \
    X(JOB_RUNNING, "running")       \
    X(JOB_ENDING, "ending")         \
    X(JOB_CLOSING, "closing")       \
    X(JOB_FLUSHING, "flushing")     \
    X(JOB_DONE, "done")

enum job_state {
#define JOB_STATE_ENUM(name, text) name,
    JOB_STATE_LIST(JOB_STATE_ENUM)
#undef JOB_STATE_ENUM
};

struct allocation;
struct check_part;
struct check_request;
struct collect;
struct events;
struct stdin_feed;
struct rendezvous_part;
struct mpi_part;
struct helpers;
struct reach;
struct elastic_part;
struct progress;
struct user_signals;
struct warning;
struct terminal;

enum job_requeue { REQUEUE_NO, REQUEUE_WRITING, REQUEUE_ASKING }; /* what requeue.c waits for */

/* What main hands down; all of it outlives the run. */
struct job_request {
    const struct settings *settings;
    const struct app_list *apps;
    const struct check_request *check; /* no job, but a look at `hosts` (check.h); NULL */
    const struct plan *plan;           /* NULL: an elastic job, whose hosts are found out */
    const struct plan_request *late;   /* the plan is made again with the facts of the hosts
                                          (late_plan.h); NULL: all slots are known */
    const struct host_list
        *hosts; /* of an elastic job, as -H or a hostfile names them; may be empty */
    const struct strv *base_env; /* scrubbed: what workers of this machine inherit */
    const struct strv *away_env; /* what workers of other machines inherit */
    const struct strv *knobs;    /* HOROVOD_* from flags */
    const struct strv *warnings; /* of the command line, to be printed first */
    const char *job_id;
    char *const *argv; /* of the launcher, for the report */
    /* One for each node of the plan: that of an agent which was forked already, taken over; or
     * without a descriptor (-1): the node is to be reached through a transport. Not in an elastic
     * job. */
    struct transport_stream *streams;
    const struct allocation *allocation; /* of a scheduler; NULL: none, or it is ignored */
    const char *agent_path, *ssh_module,
        *tls_module;  /* hvdrun-agent, hvdrun-ssh.so, hvdrun-tls.so */
    const char *wdir; /* where the launcher was started */
    int64_t begun_ns; /* monotonic: when the launcher started */
};

struct job {
    const struct job_request *request;
    const struct settings *settings;
    const struct plan *plan; /* of the present epoch; without ranks before there is one */
    struct log log;

    enum job_state state;
    uint32_t epoch;
    uint64_t open_files; /* the user's soft limit: the driver has raised its own */
    struct loop *loop;
    struct output *output;
    struct reaper *reaper;
    struct node_link *
        *nodes; /* every node that was ever called, in a static job those of the plan */
    int node_count;
    int node_behind, node_reaped; /* where job_all_nodes() and the look for who ended go on */
    struct node_link **places;    /* by the plan's number of a node; borrowed */
    struct rank_table ranks;
    struct exit_policy *policy;
    struct verdict verdict; /* once all is over */
    struct credit_budget budget;

    int nodes_up, nodes_ready; /* of a static job */
    int states_wanted; /* nodes whose STATE_REPORT is awaited after --timeout; -1: not asked */
    int address_count;
    char **addresses; /* of each place, for the workers' own traffic; since PREPARE */
    char *master_addr;
    uint32_t master_port, jax_port;
    int64_t opened_ns;  /* the agents were started and we listen to them */
    int64_t started_ns; /* all workers were told to start; 0: not yet */
    int64_t wall_begun_ns;
    int64_t paused_ms, stood_still_ms; /* monotonic: suspended since (0: not); in all */
    bool gone;                         /* the reader of our output has gone: print no more */
    bool lost_here; /* an agent on this machine was lost, and with it who removes its folders */

    struct loop_timer *start_limit, *time_limit, *state_limit, *close_limit, *greeting_limit,
        *orphan_sweep;
    struct collect *collect;
    struct events *events;
    struct stdin_feed *stdin_feed;
    struct rendezvous_part *rendezvous;
    struct mpi_part *mpi;
    struct helpers *helpers; /* programs that the driver has started */
    struct reach *reach;
    struct progress *progress;
    struct user_signals *signals;
    struct warning *warning;
    enum job_requeue requeue;
    int64_t ending_ms;            /* monotonic: when the end began; 0: not yet */
    struct elastic_part *elastic; /* NULL: a static job */
    struct check_part *check;     /* NULL: a job, no check */
    struct plan *late_plan;    /* made from the facts of the hosts; owned; NULL: none was needed */
    struct terminal *terminal; /* in raw mode for --pty; NULL */
    bool suspending;           /* SUSPEND was sent; we stop when all have answered */
    int suspended_nodes;
    int interrupted; /* the user's signal that wants the end; 0 */
};

const char *job_state_name(enum job_state state);
/* In a static job a seat is a rank. */
const char *job_seat_host(const struct job *job, int seat);
int job_seat_rank(const struct job *job, int seat);

/* A node without a link yet, CALLING. `host` is copied. */
struct node_link *job_add_node(struct job *job, const char *host);

/* The nodes and ranks of a static job, once. */
void job_take_plan(struct job *job);

/* Takes the nodes' order in the present plan; -1: they have none. */
void job_set_places(struct job *job, struct node_link *const *places);

/* Milliseconds of silence after which a node is lost. */
int64_t job_node_timeout(const struct job *job);

/* The scheduler has put the job back and started it anew: logs go on where they were. */
bool job_is_restarted(const struct job *job);

/* The rank that reads the job's stdin, SET_RANK_ALL or SET_RANK_NONE: --stdin, or who has the
 * --pty. */
int64_t job_stdin_rank(const struct job *job);

/* The limits of time stand still while the job is suspended. */
void job_pause_limits(struct job *job);
void job_resume_limits(struct job *job);

/* Is it so with all nodes? As long as it is not so with the one that was found last, no other is
 * looked at: a frame of each of thousands of nodes must not cost a look at all of them. */
bool job_all_nodes(struct job *job, bool (*is_so)(const struct node_link *node));

/* To all nodes that can still be sent to. */
void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message);

/* Looks whether the state has been left behind by what has happened, and goes on. Every part calls
 * it after it has changed a count; driver.c has it. */
void job_advance(struct job *job);

/* The link of a new or renewed node gets its limits and its way up; driver.c has it. */
void driver_open_node(struct job *job, struct node_link *node);
