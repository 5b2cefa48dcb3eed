/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of `hvdrun check`: facts of its node (CHECK, CHECKED), and whether and how fast
 * it reaches the other nodes (PROBE, PROBED).
 */
#pragma once

#include "agent/modules.h"
#include "agent/mpi_host.h"
#include "agent/post.h"
#include "node/facts.h"

struct check;

/* All are borrowed. */
struct check *check_create(struct loop *loop, const struct post *post,
                           const struct node_facts *facts, struct modules *modules,
                           struct mpi_host *mpi);
void check_destroy(struct check *check); /* accepts NULL */

/* CHECK or PROBE; a frame that cannot be read is ignored. Asking file systems can take long. */
void check_frame(struct check *check, uint8_t type, const uint8_t *body, size_t length);
