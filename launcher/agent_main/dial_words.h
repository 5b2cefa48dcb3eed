/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of an agent that a user starts, for the transport `dial`. Each option has a
 * variable, too, which is weaker:
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
#pragma once

#include <stdbool.h>

#include "agent_main/dial_out.h"

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
