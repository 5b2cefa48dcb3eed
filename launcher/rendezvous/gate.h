/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a rendezvous: it holds the first request of every rank until all ranks have sent
 * theirs. Behind it each rank connects to all others, and gives up when one takes longer than
 * HOROVOD_GLOO_TIMEOUT_SECONDS. Before it, a client waits for its answer without a limit. So no
 * rank fails because another one is still busy with its imports. Pure.
 *
 * The gate closes again when it has opened: a program may shut down and begin anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "rendezvous/held.h"

/* The gate opens at this time after the first rank has come, whichever ranks are missing. So a rank
 * that never comes does not hold the others for ever. */
enum { RENDEZVOUS_GATE_MS = 600 * 1000 };

struct rendezvous_gate;

struct rendezvous_gate *rendezvous_gate_create(void);
void rendezvous_gate_destroy(struct rendezvous_gate *gate);

/* Forgets whom it holds, and waits for ranks 0 to `ranks` - 1; 0: it holds nobody. */
void rendezvous_gate_reset(struct rendezvous_gate *gate, int ranks);

/* A rank below `ranks`, which the gate does not hold, has come. True: all are there. Then, or
 * whenever the gate is to open, take all that it holds. */
bool rendezvous_gate_come(struct rendezvous_gate *gate, int rank, struct rendezvous_source source,
                          int64_t now_ms);
/* Each call removes one that is held; false: there is none. `rank` may be NULL. */
bool rendezvous_gate_take(struct rendezvous_gate *gate, struct rendezvous_source *source,
                          int *rank);

/* The gate forgets the rank: it has ended, or comes again. False: it was not held. `source` may be
 * NULL. */
bool rendezvous_gate_leave(struct rendezvous_gate *gate, int rank,
                           struct rendezvous_source *source);
bool rendezvous_gate_holds(const struct rendezvous_gate *gate, int rank);
int rendezvous_gate_held(const struct rendezvous_gate *gate);
int64_t rendezvous_gate_deadline(const struct rendezvous_gate *gate); /* -1: it holds nobody */
/* "3, 5 and 12 more": the ranks that have not come. */
void rendezvous_gate_missing(const struct rendezvous_gate *gate, struct buf *out);
