/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job as its driver sees it: what the parts of this room share. Each part has one task
 * (bring-up, output, stdin, the user's signals, the end); driver.c composes them.
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
#include "model/exit/outside.h"
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
struct asks;
struct check_request;
struct collect;
struct events;
struct evidence;
struct hang_waits;
struct hang_watch;
struct helpers;
struct job_control;
struct job_history;
struct job_kind;
struct job_lines;
struct job_mpi;
struct line_log;
struct orphans;
struct call_progress;
struct progress_list;
struct rank_tails;
struct reach;
struct recent;
struct job_rendezvous;
struct stack_tree;
struct stall_list;
struct straggler_watch;
struct stdin_feed;
struct suspension;
struct teardown;
struct terminal;
struct time_limit;
struct user_signals;
struct warning;

enum job_requeue { REQUEUE_NO, REQUEUE_WRITING, REQUEUE_ASKING }; /* stage of end/requeue.c */

/* The request of main; everything in it outlives the run. */
struct job_request {
    const struct settings *settings;
    const struct app_list *apps;
    const struct check_request *check; /* check `hosts` (check/check.h), run no job; NULL */
    const struct plan *plan;           /* NULL: an elastic job, which discovers its hosts */
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
    /* One for each node of the plan, or host of a check: the stream of an agent that was forked
     * already, taken over; or none (descriptor -1): a transport reaches the node. NULL: transports
     * reach all of them. Not for an elastic job. */
    struct transport_stream *streams;
    const struct allocation *allocation; /* of a scheduler; NULL: none, or it is ignored */
    const char *agent_path, *ssh_module,
        *tls_module;  /* hvdrun-agent, hvdrun-ssh.so, hvdrun-tls.so */
    const char *wdir; /* where the launcher was started */
    int64_t begun_ns; /* monotonic: when the launcher started */
    int started_fd;   /* --detach: gets the job's id as soon as all ranks run, and is closed; -1 */
};

struct job;

/* What the parts of this room need from driver.c, which alone knows all parts. */
struct job_hooks {
    void (*advance)(struct job *job); /* something changed that may end the state */
    void (*ending)(struct job *job);  /* the end has begun, once */
    const struct node_link_ops *node; /* of every link; their context is the job */
};

struct job {
    const struct job_request *request;
    const struct settings *settings;
    const struct job_kind *kind; /* job_kind.h */
    void *kind_data;             /* of the kind alone */
    const struct job_hooks *hooks;
    const struct plan *plan; /* of the present epoch; without ranks before there is one */
    struct log log;

    enum job_state state;
    bool advance_asked;
    uint32_t epoch;
    uint64_t open_files; /* the user's soft limit: the driver has raised its own */
    struct loop *loop;
    struct output *output;
    struct reaper *reaper;
    struct helpers *helpers; /* programs that the driver has started */
    struct node_link *
        *nodes; /* every node that was ever called, in a static job those of the plan */
    int node_count;
    int node_behind, node_reaped; /* where job_all_nodes() and agent_reaped() continue */
    struct node_link **places;    /* by the plan's number of a node; borrowed */
    struct rank_table ranks;
    struct credit_budget budget;
    int nodes_up, nodes_ready; /* of a job that waits for all of them */

    char *master_addr;
    uint32_t master_port, jax_port;

    int64_t opened_ns;  /* the agents were started, and the driver listens to them */
    int64_t started_ns; /* all workers got START; 0: not yet */
    int64_t ended_ns;   /* nothing more could happen; 0: not yet */
    int64_t wall_begun_ns;
    int64_t paused_ms, stood_still_ms; /* monotonic: suspended since (0: not); in all */

    /* Why the job ends; end/verdict.h makes the verdict from it. */
    struct exit_outside outside;
    enum job_requeue requeue;
    char *requeue_refused;  /* why Slurm did not requeue the job; NULL */
    bool gone;              /* the reader of our output is gone: print nothing more */
    bool left_terminal;     /* or the reader of our output (run/hangup.h) */
    bool output_failed;     /* standard output could not be written */
    bool lost_here;         /* an agent on this machine was lost and could not remove its folders */
    struct verdict verdict; /* at the very end */

    struct asks *asks; /* questions to agents (job/ask.h) */
    struct collect *collect;
    struct job_control *control; /* of a job with workers; or NULL */
    struct events *events;
    struct evidence *evidence;     /* of failures (run/evidence_folder.h) */
    struct hang_watch *hang_watch; /* NULL: nobody wants to know */
    struct job_history *history;   /* for the status page; NULL: it has none */
    struct metrics_out *metrics;   /* NULL: nobody wants them */
    struct line_log *line_log;     /* NULL: the job keeps no log, or not yet */
    struct job_lines *lines;
    struct job_mpi *mpi;
    struct orphans *orphans;
    struct call_progress *call_progress;
    struct progress_list *progress_list; /* what ranks say about their progress */
    struct reach *reach;
    struct rank_tails *rank_tails; /* the last output of each rank; NULL: nobody wants it */
    struct recent *recent;         /* the last output */
    struct job_rendezvous *rendezvous;
    struct sampler *sampler; /* what ranks and hosts use */
    struct user_signals *signals;
    struct stdin_feed *stdin_feed; /* NULL: no worker reads it yet */
    struct stack_tree *stacks;     /* of the last look that was shown (run/look.h); NULL */
    struct stall_list *stalls;     /* of libhvd in the workers; the lines create it */
    struct hang_waits *waits;      /* what libhvd says of the present hang, if anything */
    struct straggler_watch *straggler_watch; /* NULL: nobody wants to know */
    struct suspension *suspension;
    struct teardown *teardown;
    struct terminal *terminal; /* in raw mode for --pty; NULL */
    struct time_limit *time_limit;
    struct warning *warning;
};

const char *job_state_name(enum job_state state);
/* In a static job a seat is a rank. */
const char *job_seat_host(const struct job *job, int seat);
int job_seat_rank(const struct job *job, int seat);
/* The seat of a rank that was started in the present epoch, as all ranks of an MPI program are; -1:
 * none. */
int job_rank_seat(const struct job *job, int rank);

/* The scheduler has requeued and restarted the job: logs are appended. */
bool job_is_restarted(const struct job *job);

/* The rank that reads the stdin of the job, SET_RANK_ALL or SET_RANK_NONE: --stdin, or the rank
 * with the --pty. */
int64_t job_stdin_rank(const struct job *job);

/* When the job ended, for all that say so; now, if it has not. */
int64_t job_end_ns(const struct job *job);

/* Monotonic milliseconds without the time in which the job was suspended. */
int64_t job_running_ms(const struct job *job);

/* Call it when something may end the present state. hooks->advance runs once, after the callbacks
 * of this turn of the loop, however often you call this. */
void job_advance(struct job *job);

/* Does it now if job_advance() has asked for it: a time limit looks whether it was kept after all.
 * Only for callbacks of timers, never from within another part. */
void job_advance_now(struct job *job);
