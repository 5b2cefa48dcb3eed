/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaches the nodes whose agents were not forked at once. It chooses a transport for each node and
 * calls all of them at the same time; the transports limit their own concurrency. It reports the
 * hosts that cannot be reached. The kind of the job decides what such a host means for the job.
 */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"
#include "model/hosts/hosts.h"

/* Call it once for each node, in the order of their index. `traits` are copied. */
void reach_add_node(struct job *job, struct node_link *node, const struct host_traits *traits);

/* The agent starts right away (way_is_here). */
bool reach_is_near(const struct job *job, const struct node_link *node);
/* The present entry of the node in the host list; borrowed until the node is added or called
 * again. */
const struct host_traits *reach_traits(const struct job *job, const struct node_link *node);

/* Calls one node of an elastic job, in state CALLING, for the first time or again. */
int reach_open(struct job *job, struct error *err); /* before the first call */
void reach_call(struct job *job, struct node_link *node, const struct host_traits *traits);

/* Calls every node that is CALLING, and returns at once. -1: none can be called. */
int reach_begin(struct job *job, struct error *err);

/* The node is gone: closes what its transport still holds. */
void reach_hang_up(const struct job *job, const struct node_link *node);

/* Why this node could not be reached; NULL: it was reached, or the call still runs. Borrowed. */
const char *reach_why(const struct job *job, const struct node_link *node);

/* Appends " c12 (auth; ranks 48-51), ...": the nodes that have not sent HELLO, or have not
 * answered PREPARE. If there are many, or the reason is known for some, each gets a line of its
 * own, and the text has their number. */
void reach_describe_missing(const struct job *job, struct buf *out);
