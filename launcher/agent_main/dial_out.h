/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of an agent that a scheduler has started, back to the driver (D2). The environment
 * has the driver's addresses, the agent's identity and the job's key. The agent tries all
 * addresses, DIAL_OUT_STAGGER_MS apart. It takes the first that speaks TLS with the job's key and
 * answers with a welcome. If there is none, it tries all again, for DIAL_OUT_LIMIT_MS.
 *
 * This happens before the keeper forks the agent, without an event loop.
 */
#pragma once

#include <stdint.h>

#include "base/strv.h"
#include "io/tls_module.h"

#define DIAL_OUT_LIMIT_MS 30000
#define DIAL_OUT_STAGGER_MS 100
#define DIAL_OUT_ADDRESSES_MAX 32

struct dial_out {
    struct strv addresses; /* "10.0.0.1:4000", "[fd00::1]:4000" */
    char *node;            /* the name of this node */
    char *identity;
    uint8_t key[TLS_KEY_SIZE];
};

/* Takes the variables from the environment and wipes them there. So /proc/PID/environ does not show
 * them, and no child inherits them. -1: they are missing or wrong. The caller clears `dial` in any
 * case. */
int dial_out_read(struct dial_out *dial, struct error *err);
void dial_out_clear(struct dial_out *dial);

/* Blocks. The caller owns the session and the descriptor in `end`. -1: `err` has one line with
 * cause and remedy. */
int dial_out_connect(const struct dial_out *dial, const struct tls_module *module, int64_t limit_ms,
                     struct tls_end *end, struct error *err);
