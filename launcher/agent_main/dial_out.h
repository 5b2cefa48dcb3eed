/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of an agent to the driver (D2). A scheduler has started the agent, and its
 * environment has the driver's addresses, the agent's identity and the job's key; or a user has
 * (agent_main/dial_words.h). The agent tries all addresses, DIAL_OUT_STAGGER_MS apart. It takes the
 * first that speaks TLS with the job's key and answers with a welcome. If there is none, it tries
 * all again until its time is over.
 *
 * An agent of a user may come long before its driver. It looks the driver's name up again for each
 * round, comes again if it is refused, and says on stderr why it has to wait.
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
    char *server;          /* of a user's agent: "HOST:PORT", and no addresses; NULL */
    int64_t limit_ms;
    int64_t term_grace_ms; /* of the agent: from SIGTERM until its host goes; 0: not known */
    char *node;            /* the name of this node */
    char *identity;
    uint8_t key[TLS_KEY_SIZE];
    int slots; /* this and `line` are as in agent_config */
    char *line;
};

/* Takes the variables from the environment and wipes them there. So /proc/PID/environ does not show
 * them, and no child inherits them. -1: they are missing or wrong. The caller clears `dial` in any
 * case. */
int dial_out_read(struct dial_out *dial, struct error *err);
void dial_out_clear(struct dial_out *dial);

/* Blocks. The caller owns the session and the descriptor in `end`. -1: `err` has one line with
 * cause and remedy. */
int dial_out_connect(const struct dial_out *dial, const struct tls_module *module,
                     struct tls_end *end, struct error *err);
