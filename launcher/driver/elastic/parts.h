/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an elastic job. elastic_kind.c creates and composes them. act.c and control.c borrow
 * several parts, to carry out what the core or the user wants.
 *
 *   hub        the core with its events, actions and clock
 *   source     the hosts that the job may use
 *   epoch      PREPARE, READY, START of one epoch
 *   story      the lines, events and figures about epochs
 *   rendezvous requests of workers that rejoin or join, and the answers
 *
 * A host has the same number in the core and in job->nodes.
 */
#pragma once

#include "driver/control/request.h"
#include "driver/job/job.h"
#include "driver/job/job_kind.h"
#include "model/elastic/elastic.h"

/*
 * hub.c connects the core of an elastic job (model/elastic/elastic.h) with the driver. What happens
 * becomes an event for the core, and the hub carries out the actions of the core one after the
 * other. Immediate results of an action wait in a queue, so the core is never entered twice. A
 * timer here keeps the deadlines of the core. The clock of the core stops while the job is
 * suspended.
 */

struct elastic_hub;

struct elastic_hub_ops {
    void (*act)(void *context, const struct elastic_action *action);
    /* The core may know new hosts. Called before the actions of the event. */
    void (*listed)(void *context);
};

/* `config` is used during the call only. */
struct elastic_hub *elastic_hub_create(struct job *job, const struct elastic_config *config,
                                       const struct elastic_hub_ops *ops, void *context);
void elastic_hub_destroy(struct elastic_hub *hub); /* accepts NULL */

/* Something has happened; `event` is copied. */
void elastic_hub_feed(struct elastic_hub *hub, const struct elastic_event *event);

/* The job was suspended, or goes on: the timer follows. */
void elastic_hub_clock_changed(struct elastic_hub *hub);

struct job *elastic_hub_job(const struct elastic_hub *hub);
const struct elastic *elastic_hub_core(const struct elastic_hub *hub);

/*
 * source.c: the hosts that an elastic job may use. These are the named ones (-H, a hostfile) or the
 * discovered ones (discovery.h), and those that `hvdrun add` adds while the job runs.
 */

struct elastic_source;

/* NULL: the script cannot be run. */
struct elastic_source *elastic_source_create(struct elastic_hub *hub, struct error *err);
void elastic_source_begin(struct elastic_source *source);
void elastic_source_pause(struct elastic_source *source, bool paused);
void elastic_source_stop(struct elastic_source *source);    /* no more lists */
void elastic_source_destroy(struct elastic_source *source); /* accepts NULL */

/* Hosts that nobody listed: the agents that dial in are the list. `max_np`: ranks at most, 0: all
 * slots. -1: the job has as many hosts as it may use, with its spares, or has had
 * ELASTIC_STRANGERS_MAX names in all; `why` is set to a constant. */
#define ELASTIC_STRANGERS_MAX 4096
int elastic_source_come(struct elastic_source *source, const char *name, int max_np,
                        const char **why);
void elastic_source_leave(struct elastic_source *source, const char *name);

/* A host that is already listed gets the new number of slots. */
void elastic_source_add(struct elastic_source *source, const struct host_list *hosts);

/*
 * epoch.c: the next epoch, from its plan to its start, and the newcomers that start beside the
 * running one (model/elastic/newcomers.h). Each has a launch.
 */

struct elastic_epoch;

struct elastic_epoch *elastic_epoch_create(struct elastic_hub *hub);
void elastic_epoch_destroy(struct elastic_epoch *epoch); /* accepts NULL */

void elastic_epoch_prepare(struct elastic_epoch *epoch, const struct elastic_plan *plan);
void elastic_epoch_advance(struct elastic_epoch *epoch); /* an agent has become idle or is gone */
void elastic_epoch_cancel(struct elastic_epoch *epoch, bool newcomers);
void elastic_epoch_start(struct elastic_epoch *epoch, const struct elastic_plan *plan);

void elastic_epoch_prepare_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan);
void elastic_epoch_start_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan);

/* READY of one of the two, or of an earlier one that was cancelled meanwhile, whose problem is
 * still worth knowing. -1: the node broke the protocol. */
int elastic_epoch_ready(struct elastic_epoch *epoch, struct node_link *node,
                        const struct agent_frame *frame);

/*
 * story.c tells the user about epochs: a line for each, an event with the time of every phase in
 * --events, and the totals at the end.
 */

struct elastic_story;

struct elastic_story *elastic_story_create(struct job *job);
void elastic_story_destroy(struct elastic_story *story); /* accepts NULL */

/* All ranks of the epoch run. */
void elastic_story_resumed(struct elastic_story *story, const struct elastic_facts *facts,
                           const struct elastic_plan *plan);

/* All ranks of the epoch have finished their rendezvous, at `now_ms` of the clock of the facts. */
void elastic_story_met(struct elastic_story *story, const struct elastic_facts *facts,
                       int64_t now_ms);

/* A rank has reported what it has done in this epoch, at `at_ms` of that clock. The user
 * hears of the first one after a change. */
void elastic_story_progressed(struct elastic_story *story, const struct elastic_facts *facts,
                              int rank, int64_t at_ms);

/* A line that was printed: an event for --events. The last lines are kept for `hvdrun status`. */
void elastic_story_note(struct elastic_story *story, const char *line);
/* Adds to the status: the last lines, the last epochs, how many epochs each cause has led to, and
 * how long the changes have taken. */
void elastic_story_status(const struct elastic_story *story, const struct elastic_facts *facts,
                          json_t *root);

/* The last line of a job that had more than one epoch. */
void elastic_story_end(const struct elastic_story *story, const struct elastic_facts *facts);

/* Adds the part of --report about epochs, "elastic". */
void elastic_story_report(const struct elastic_story *story, const struct elastic_facts *facts,
                          json_t *root);

/*
 * rendezvous.c is the elastic part of the rendezvous: what its store hears from workers that come
 * and go.
 *
 * A worker that rejoins sends `PUT worker_addresses/HOST:LOCAL_RANK`, which registers it, and `GET
 * rank_and_size/HOST:LOCAL_RANK`, which asks for its next place, and is held until the core
 * answers. The worker that has rank 0 is notified of changes (docs/elastic.md).
 *
 * The first request of a newcomer (model/elastic/newcomers.h) is kept until the epoch begins in
 * which it has its place. Its client waits without a limit.
 */

struct elastic_rendezvous;

/* The rendezvous of the job calls it from now on. */
struct elastic_rendezvous *elastic_rendezvous_create(struct elastic_hub *hub);
void elastic_rendezvous_destroy(struct elastic_rendezvous *rendezvous); /* accepts NULL */

/* The answer to a worker that rejoins. `member` NULL: it is no longer part of the job. */
void elastic_rendezvous_answer(struct elastic_rendezvous *rendezvous, uint64_t request,
                               const struct elastic_plan *plan,
                               const struct elastic_member *member);
/* The hosts changed: the agent on the worker's node notifies the worker. */
void elastic_rendezvous_notify(struct elastic_rendezvous *rendezvous, int seat);
/* The epoch of elastic_plan() has begun: the requests of the newcomers that joined go on. */
void elastic_rendezvous_admit(struct elastic_rendezvous *rendezvous);

/* What the worker of the seat, or all workers of the node, said is forgotten, and others wait for
 * their ranks no more. Call it before an event that may begin the next epoch. */
void elastic_rendezvous_exited(struct elastic_rendezvous *rendezvous, int seat);
void elastic_rendezvous_node_lost(struct elastic_rendezvous *rendezvous,
                                  const struct node_link *node);

/* All of these. */

struct elastic_parts {
    struct job *job;
    struct elastic_hub *hub;
    const struct elastic *core; /* of the hub */
    struct elastic_source *source;
    struct elastic_epoch *epoch;
    struct elastic_story *story;
    struct elastic_rendezvous *rendezvous;
};

/* Of an elastic job, whose kind_data begins with them. */
static inline const struct elastic_parts *elastic_parts_of(const struct job *job)
{
    return job->kind_data;
}

/* act.c carries out the decisions of the elastic core, one action at a time. If an action has an
 * immediate result, that comes back as an event, behind the events that already wait. */

void elastic_act(const struct elastic_parts *parts, const struct elastic_action *action);

/* Terminates one worker: at once, or with SIGTERM and a grace period. */
void elastic_act_kill(struct job *job, int seat, int64_t grace_ms);

/* The agent of a node has exited. Calls the node again if the core has asked for that meanwhile. */
void elastic_act_node_gone(const struct elastic_parts *parts, struct node_link *node);

/* control.c: what an elastic job does with requests over the control socket
 * (driver/control/request.h). */

/* Replaces the state, size and hosts of a status by those of the core. */
void elastic_control_status(const struct job *job, json_t *root);

extern const struct control_rule elastic_requests[]; /* drain, undrain and add */

/* terms.c: what the settings mean for the core, and its verdict for the job, unless something from
 * outside ended that. */

void elastic_config_from(const struct job *job, struct elastic_config *out);
/* Ranks at most, 0: all slots. */
int elastic_max_np(const struct settings *settings);

void elastic_verdict_of(const struct job *job, const struct elastic *core, struct verdict *out);

/* The role of the last worker on this seat in the verdict. */
enum exit_role elastic_role_of(const struct job *job, int seat);

/*
 * elastic_kind.c: the elastic kind of job. It survives the loss of workers and hosts, and takes in
 * new ones (docs/elastic.md). The core makes the decisions. The parts report events to it and carry
 * out what it decides.
 */
extern const struct job_kind elastic_kind;
