/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of dialling back (D2) have to agree on: the driver waits
 * (transport/dial_back.h), the agent comes (agent_main/dial_out.h).
 *
 * An agent below srun finds its orders in its environment and wipes them before anything else can
 * read them. Its name is SLURMD_NODENAME. One that a user starts has them from its command line
 * (agent_main/dial_out.h). The driver sends the first line after the handshake.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "io/tls_module.h"

#define DIAL_BACK_ENV_DIAL "HVDRUN_AGENT_DIAL" /* "10.0.0.1:4000,[fd00::1]:4000", best first */
#define DIAL_BACK_ENV_KEY "HVDRUN_AGENT_KEY"   /* TLS_KEY_SIZE bytes, hexadecimal */
#define DIAL_BACK_ENV_JOB "HVDRUN_AGENT_JOB"

#define DIAL_BACK_IDENTITY "hvdrun"  /* "hvdrun:JOB:NODE" */
#define DIAL_BACK_ANY "*"            /* as NODE: any that is free; not a name of a host */
#define DIAL_BACK_WELCOME "welcome " /* and the version of hvdrun */
#define DIAL_BACK_WAIT "wait "       /* and why: the agent may come in later in this job */
#define DIAL_BACK_REFUSED "refused " /* and why */
#define DIAL_BACK_LINE_MAX 160

/* How an agent that cannot come in begins the line on its stderr; then "NODE: why". */
#define DIAL_BACK_CANNOT "hvdrun-agent: cannot dial back from "

/*
 * The key of agents that a user starts (transport/dial_in/): both ends derive it from a secret that
 * they share, and from the id of the run, with HKDF-SHA256 (RFC 5869). So agents of another run do
 * not come in, and nothing that was sent reveals the secret itself.
 *
 * Copies of a line of torchrun have only the id if the user has no secret. Then everyone who knows
 * the id has the key.
 */

#define DIAL_SECRET_MIN 16 /* bytes: a shorter one can be guessed from what is sent */
#define DIAL_SECRET_MAX 4096
#define DIAL_ID_MAX 128
#define DIAL_ID_USUAL "hvdrun"

/* Reads the secret from a file, without white space at its end, and derives the key. `path` NULL:
 * no secret, the id alone. -1: the file cannot be read, the secret is too short or too long, or the
 * id is not one printable word: the user can correct all of them (STATUS_USAGE). */
int dial_secret_key(const char *path, const char *id, uint8_t key[TLS_KEY_SIZE], struct error *err);

/* Everyone can write to the file, which DIAL_SECRET_OPEN warns of, with its path. */
bool dial_secret_is_open(const char *path);
#define DIAL_SECRET_OPEN "every user can change the secret in %s; chmod go-w it"

/* The derivation alone. */
void dial_secret_derive(const void *secret, size_t length, const char *id,
                        uint8_t key[TLS_KEY_SIZE]);

/* The addresses of a "HOST:PORT". A child process looks the name up, so that a resolver that does
 * not answer cannot keep the agent beyond its time limit. */

#define DIAL_LOOKUP_MAX 32 /* addresses */

/* "name:4000", "10.0.0.1:4000" or "[fd00::1]:4000". */
bool dial_lookup_is_server(const char *server);

/* Fills `out` with numeric addresses such as "10.0.0.1:4000" and "[fd00::1]:4000". Blocks for
 * `limit_ms` at most. -1: the name has none, or no resolver answers. */
int dial_lookup(const char *server, int64_t limit_ms, struct strv *out, struct error *err);
