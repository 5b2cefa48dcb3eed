/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job as its driver sees it: what the parts of this room share. part.h says what a part is.
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
#include "model/exit/verdict.h"
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

#define PART(name) struct name;
#include "driver/job/part_list.def"

enum part_id {
#define PART(name) PART_##name,
#include "driver/job/part_list.def"
    PART_COUNT
};

/* The data of a part, such as job_part(job, events); NULL: this job does not need it. */
#define job_part(job, name) ((struct name *)(job)->own[PART_##name])

struct allocation;
struct driver_part;
struct frame_rule;
struct job_kind;

struct check_request {  /* of `hvdrun check` (launcher/features/check) */
    bool net;           /* measure how fast the hosts send to each other */
    bool json;          /* print JSON */
    bool gpu;           /* also check the GPUs */
    const char *python; /* that tests them */
};

/* The request of main; everything in it outlives the run. */
struct job_request {
    const struct settings *settings;
    const struct app_list *apps;
    const struct check_request *check; /* check `hosts`, run no job; NULL */
    const struct plan *plan;           /* NULL: an elastic job, which discovers its hosts */
    const struct plan_request *late;   /* the plan is made again with the facts of the hosts
                                          (start/static_kind.c); NULL: all slots are known */
    const struct host_list
        *hosts;            /* of an elastic job, as -H or a hostfile names them; may be empty */
    const char *copy;      /* what the agents that are copies of this line should say of it, in
                              HELLO; NULL: there are none */
    const char *bad_hosts; /* the text of --bad-hosts when the job began; NULL: none */
    int64_t gather_ms;     /* an elastic job waits so long for more hosts; 0: --grow-delay */
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

struct job_times {                     /* monotonic */
    int64_t opened_ns;                 /* the agents were started, and the driver listens to them */
    int64_t started_ns;                /* all workers got START; 0: not yet */
    int64_t ended_ns;                  /* nothing more could happen; 0: not yet */
    int64_t wall_begun_ns;             /* since 1970 */
    bool suspended, debugged;          /* the two reasons to stand still (run/suspension.c) */
    int64_t paused_ms, stood_still_ms; /* its clock stands still since (0: not); in all */
};

struct job_ports { /* that agents have chosen for the workers of all nodes */
    char *master_addr;
    uint32_t master_port, jax_port;
};

struct job {
    const struct job_request *request;
    const struct settings *settings;
    const struct job_kind *kind;      /* job_kind.h */
    void *kind_data;                  /* of the kind alone */
    void (*advance)(struct job *job); /* something has changed that may end the state */
    const struct plan *plan;          /* of the present epoch; without ranks before there is one */
    struct log log;

    enum job_state state;
    bool advance_asked;
    uint32_t epoch;
    uint64_t open_files; /* the user's soft limit: the driver has raised its own */
    struct loop *loop;
    struct output *output;
    struct reaper *reaper;
    struct node_link *
        *nodes; /* every node that was ever called, in a static job those of the plan */
    int node_count;
    int node_behind, node_reaped; /* where job_all_nodes() and agent_reaped() continue */
    struct node_link **places;    /* by the plan's number of a node; borrowed */
    struct rank_table ranks;
    struct credit_budget budget;
    int nodes_up, nodes_ready; /* of a job that waits for all of them */

    struct job_ports ports;
    struct job_times times;

    /* Why the job ends; end/finish.c makes the verdict from it. */
    struct exit_outside outside;
    bool gone;              /* the reader of our output is gone: print nothing more */
    bool left_terminal;     /* or the reader of our output (run/user_signals.c) */
    bool output_failed;     /* standard output could not be written */
    bool lost_here;         /* an agent on this machine was lost and could not remove its folders */
    struct verdict verdict; /* at the very end */

    const struct driver_part *const *parts;       /* PART_COUNT of them; NULL: none is open */
    uint64_t output_parts;                        /* bits: those that want all output */
    void *own[PART_COUNT];                        /* the data of the parts: job_part() */
    const struct frame_rule *frames[FRAME_TYPES]; /* that the parts take; NULL: none does */
};

/* A frame from an agent, and the rule for its type: its handler, and when it may come. */

struct agent_frame {
    uint8_t type;
    uint32_t epoch; /* 0: the frame does not belong to an epoch */
    const uint8_t *body;
    size_t length;
    void *message; /* the body, if its rule names a message; freed after the call */
};

/* The epochs from which a frame is taken. Frames of other epochs are late, which is not an
 * error: they are dropped. */
enum frame_epochs {
    EPOCHS_ALL,
    EPOCHS_PRESENT,
    /* In a job of many epochs, survivors use the epoch in which they started. An agent may
     * finish an epoch after the next one has been planned. */
    EPOCHS_OF_WORKERS,
};

struct frame_rule {
    /* -1: the agent broke the protocol. NULL: frames of that type are not allowed. */
    int (*take)(struct job *job, struct node_link *node, const struct agent_frame *frame);
    const ProtobufCMessageDescriptor *message; /* of the body; NULL: `take` reads it */
    enum frame_epochs epochs;
    /* The earliest state of a node that has only one epoch. A node that sends the frame before
     * breaks the protocol. In a job of many epochs an agent is up again while workers of earlier
     * epochs run.
     */
    enum node_state least;
    bool placed; /* dropped if the node is not in the present plan: it has no workers */
};

/* It is the present epoch, or that of a world beside it. */
bool job_epoch_runs(const struct job *job, uint32_t epoch);

const char *job_state_name(enum job_state state);
/* In a static job a seat is a rank. */
const char *job_seat_host(const struct job *job, int seat);
int job_seat_rank(const struct job *job, int seat);
/* The worker on this seat, which an agent has named, runs or ran on this node. */
bool job_seat_is_on(const struct job *job, const struct node_link *node, uint32_t seat);
/* The seat of a rank that was started in the present epoch, as all ranks of an MPI program are; -1:
 * none. */
int job_rank_seat(const struct job *job, int rank);

/* Nobody has listed hosts of this elastic job, so those that dial in are the list. */
bool job_is_open(const struct job *job);

/* The scheduler has requeued and restarted the job: logs are appended. */
bool job_is_restarted(const struct job *job);

/* The rank that reads the stdin of the job, SET_RANK_ALL or SET_RANK_NONE: --stdin, or the rank
 * with the --pty. */
int64_t job_stdin_rank(const struct job *job);

/* When the job ended, for all that say so; now, if it has not. */
int64_t job_end_ns(const struct job *job);

/* Monotonic milliseconds without the time in which the job was suspended, or debugged. */
int64_t job_running_ms(const struct job *job);

/* Call it when something may end the present state. job->advance runs once, after the callbacks
 * of this turn of the loop, however often you call this. */
void job_advance(struct job *job);

/* Does it now if job_advance() has asked for it: a time limit looks whether it was kept after all.
 * Only for callbacks of timers, never from within another part. */
void job_advance_now(struct job *job);
