/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of an agent to the driver (D2). A scheduler has started the agent, and its
 * environment has the driver's addresses, the agent's identity and the job's key; or a user has
 * (dial_words.c). The agent tries all addresses, DIAL_OUT_STAGGER_MS apart. It takes the first that
 * speaks TLS with the job's key and answers with a welcome. If there is none, it tries all again
 * until its time is over.
 *
 * An agent of a user may come long before its driver. It looks the driver's name up again for each
 * round, comes again if it is refused, and says on stderr why it has to wait.
 *
 * This happens before the keeper forks the agent, without an event loop.
 */
#pragma once

#include <stdbool.h>
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

/*
 * dial_words.c: the command line of an agent that a user starts, for the transport `dial`. Each
 * option has a variable, too, which is weaker:
 *
 *   --dial HOST:PORT       HVDRUN_DIAL           where hvdrun is or will be
 *   --dial-secret FILE     HVDRUN_DIAL_SECRET
 *   --dial-id ID           HVDRUN_DIAL_ID        as the driver's; DIAL_ID_USUAL
 *   --name NAME            HVDRUN_DIAL_NAME      in the host list, or `auto`: any; the host name
 *   --start-timeout TIME   HVDRUN_START_TIMEOUT  DIAL_WORDS_LIMIT_MS
 *   --grace TIME           HVDRUN_DIAL_GRACE     from SIGTERM until the host goes; not known
 *
 * Three more are for hvdrun itself, which becomes an agent (features/torchrun/torchrun_cli.c). With
 * --no-secret, everyone who knows the id can be its driver. HELLO has --slots and --line.
 */
#define DIAL_WORDS_LIMIT_MS 600000
#define DIAL_WORDS_ANY "auto"

/* The name of a pod whose host name says nothing of its index, such as one in the network of its
 * node: that of hvdrun's own pod, at `server`, with this index. Otherwise the host name. NULL: it
 * has no index. The caller frees it. */
char *dial_words_pod_name(const char *own, const char *index, const char *server);

/* The words are those of this command line, and not of srun's agent. */
bool dial_words_are_ours(int argc, char *const *argv);

/* `words` follow the name of the program. -1: what is wrong with them, or with the secret. The
 * caller clears `dial` in any case. */
int dial_words_read(char *const *words, struct dial_out *dial, struct error *err);
