/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of agents that a user starts (transport/dial_in/): both ends derive it from a secret that
 * they share, and from the id of the run, with HKDF-SHA256 (RFC 5869). So agents of another run do
 * not come in, and nothing that was sent reveals the secret itself.
 *
 * Copies of a line of torchrun have only the id if the user has no secret. Then everyone who knows
 * the id has the key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/tls_module.h"

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
