/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching the nodes whose agents were not forked at once: which transport each of them takes, all
 * of them called at the same time (the transports keep their own windows), and what is said when
 * some cannot be reached.
 * What it means for the job that a host cannot be reached is up to the kind of job.
 */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"
#include "model/hosts/hosts.h"

struct reach;

struct reach *reach_create(struct job *job);

/* An agent there can be started right away: without a question to a resolver it is this machine, or
 * it is to be taken for it. `allocation` may be NULL. */
bool reach_is_here(const struct settings *settings, const struct allocation *allocation,
                   const char *host, const struct host_traits *traits);

/* For each node once, in the order of their index. `traits` are copied. */
void reach_add_node(struct reach *reach, struct node_link *node, const struct host_traits *traits);

bool reach_is_near(const struct reach *reach, const struct node_link *node); /* as above */
/* What its entry in the host list says now; borrowed until it is added or called again. */
const struct host_traits *reach_traits(const struct reach *reach, const struct node_link *node);

/* One node of an elastic job, CALLING: for the first time or once more. */
int reach_open(struct reach *reach, struct error *err); /* before the first call */
void reach_call(struct reach *reach, struct node_link *node, const struct host_traits *traits);

/* Calls every node that is CALLING. Returns without having waited for anything. -1: none can be
 * called. */
int reach_begin(struct reach *reach, struct error *err);

/* The job ends: nodes that have not come up never will. An agent that has been started gets a short
 * time for its HELLO, so that it can be told to quit. */
void reach_stop(struct reach *reach);

/* The node is gone: what its transport still holds is closed. */
void reach_hang_up(struct reach *reach, const struct node_link *node);

/* All agents have gone: hangs up every call. False while a program has to end that had started some
 * of them (srun); job_advance() is called when it has. */
bool reach_end(struct reach *reach);

/* All is over: every call is hung up, every helper ended. */
void reach_close(struct reach *reach);
void reach_destroy(struct reach *reach); /* accepts NULL */

/* Why this node could not be reached; NULL: it could, or it is not known yet. Borrowed. */
const char *reach_why(const struct reach *reach, const struct node_link *node);

/* " c12 (auth; ranks 48-51), ..." of the nodes that have not answered PREPARE or not even called
 * HELLO. When they are many, or of some it is known why, each is told in a line of its own, and the
 * text says how many they are. */
void reach_describe_missing(const struct job *job, struct buf *out);
