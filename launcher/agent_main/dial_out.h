/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's way back to the driver that had it started by a scheduler (D2): which addresses, as
 * whom and with which key stands in the environment. All addresses are tried, DIAL_OUT_STAGGER_MS
 * apart; the first that speaks TLS with the job's key, and bids us welcome, is it. When none does,
 * all are tried again, until DIAL_OUT_LIMIT_MS are over.
 *
 * This happens before the keeper forks the agent, without a loop.
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
    char *node;            /* our name */
    char *identity;
    uint8_t key[TLS_KEY_SIZE];
};

/* Takes what the environment says, and wipes it there: /proc/PID/environ does not show it either,
 * and nothing that is started inherits it. -1: it is not there, or makes no sense. The caller
 * clears `dial` in either case. */
int dial_out_read(struct dial_out *dial, struct error *err);
void dial_out_clear(struct dial_out *dial);

/* Blocks. -1: `err` has one line, cause and remedy. Session and descriptor in `end` are the
 * caller's. */
int dial_out_connect(const struct dial_out *dial, const struct tls_module *module, int64_t limit_ms,
                     struct tls_end *end, struct error *err);
