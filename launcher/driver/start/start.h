/* SPDX-License-Identifier: Apache-2.0 */
/* How jobs of every kind start their workers, and the static kind. */
#pragma once

#include "driver/job/job.h"
#include "driver/job/job_kind.h"
#include "model/elastic/elastic.h"
#include "model/net/machine.h"
#include "model/settings/words.h"

/*
 * handshake.c: the messages between driver and agent before workers run, the same in every kind of
 * job. These are HELLO and WELCOME, the facts in READY, START.
 */

/* The agent is of another version, or complains in its HELLO: one line, which the caller frees.
 * NULL: neither. */
char *handshake_version_problem(const struct node_link *node);
char *handshake_problem(const struct node_link *node); /* either */

/* Answers HELLO with WELCOME, which includes the part of the kind of job, and with the first
 * output credit. */
void handshake_welcome(struct job *job, struct node_link *node);

void handshake_forget_ports(struct job *job); /* that agents have chosen */

/* Takes the addresses and the ports that nodes have chosen for all, for torch's store too. Prints
 * what the user asked for. */
void handshake_take_ready(struct job *job, const struct node_link *node,
                          const Hvdrun__Ready *ready);

/* Sends START to the workers of this epoch; the node is RUNNING. */
void handshake_send_start(const struct job *job, struct node_link *node, uint32_t epoch);

/* START was sent to all nodes for the first time: the job is RUNNING, and its time limit begins. */
void handshake_running(struct job *job);

/* prepare.c: PREPARE, all that agents need before they can start the workers of an epoch. */

/* What a rank has spawned (start/worlds.h). */
struct world {
    const struct app_list *apps;
    enum mpi_kind mpi;
    uint32_t parent_epoch;
    int parent_rank; /* in that world */
    int first_seat;
    const struct strv *preput; /* for PMI-1: a key, its value, ... */
};

/* The workers of a plan that an epoch starts. */
struct prepare_epoch {
    uint32_t number;
    const struct plan *plan;
    struct node_link *const *places;      /* by the plan's number of a node */
    const struct elastic_member *members; /* by rank; NULL: a static job */
    int restart_count;
    const struct world *world; /* NULL: the workers are not a world that a rank has spawned */
    bool beside_others; /* workers of earlier epochs continue; they keep MPI and the master port */
};

/* Whether a worker starts at this place of the plan. */
bool prepare_concerns(const struct prepare_epoch *epoch, int place);

/* Sends PREPARE to every place of the plan that is concerned. Returns false when the hosts do not
 * share a network that the user allows. Then the job ends. */
bool prepare_send(struct job *job, const struct prepare_epoch *epoch);

/* machines.c: which places of a plan are one machine (model/net/machine.h). All of them have said
 * HELLO. */

/* Borrows from `hello`. NULL: a node that is like no other. */
struct machine machine_of(const Hvdrun__AgentHello *hello);

/* By place: how many ranks use the CPUs of the node in this epoch, and beside a world that a rank
 * has spawned. The caller frees it. */
int *machines_count_ranks(const struct job *job, const struct prepare_epoch *epoch);

/* Warns of names that are the same machine as another name, once in the job for each of them. Not
 * with --transport local, where all hosts are this machine. */
void machines_warn(const struct job *job, const struct prepare_epoch *epoch);

/*
 * static_kind.c: the static kind of job. Its hosts and ranks are planned before anything starts,
 * and its first bad exit ends it (model/exit/policy.h). A seat is a rank.
 */
extern const struct job_kind static_kind;

/*
 * bringup.c: the bring-up of a static job: HELLO from every agent, PREPARE to all, READY from all,
 * START to all. All steps together may take at most --start-timeout; after that a message names the
 * hosts that have not answered.
 *
 * A host that cannot be reached does not end the job at once. The other hosts get a few more
 * seconds to come up or to fail too. So the user learns about all bad hosts at once.
 */

/* Four functions of the kind. */
void bringup_begin(struct job *job);
void bringup_hello(struct job *job, struct node_link *node);
void bringup_came(struct job *job, struct node_link *node);
void bringup_unreached(struct job *job, struct node_link *node, const char *why);
/* READY. */
int bringup_ready(struct job *job, struct node_link *node, const struct agent_frame *frame);

void bringup_prepare(struct job *job); /* all agents are up: sends PREPARE */
void bringup_start(struct job *job);   /* all agents are ready: sends START */
