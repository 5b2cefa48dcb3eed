/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of `hvdrun check`, the topics "facts" and "probe": what its node is like, and
 * whether and how fast it reaches the other nodes.
 */
#pragma once

#include "agent/ask.h"
#include "agent/modules.h"
#include "agent/mpi_host.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

struct check;

/* All are borrowed. */
struct check *check_create(struct loop *loop, const struct node_facts *facts,
                           struct modules *modules, struct mpi_host *mpi);
void check_destroy(struct check *check); /* accepts NULL */

/* At once, but asking file systems can take long. */
void check_facts(struct check *check, const struct asked *asked);
/* Later. Another step takes the place of this one. */
void check_probe(struct check *check, const struct asked *asked, const Hvdrun__Probe *request);
