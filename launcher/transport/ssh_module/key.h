/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's key: its public half, and what can sign with the other half. That is OpenSSL for a key
 * from a file, or else a key agent. The private key stays away from libssh2, which asks for
 * signatures. On its own, it would sign RSA with SHA-1 only, which servers refuse.
 */
#pragma once

#include <openssl/evp.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "transport/ssh_module/fields.h"

struct key_type; /* one of those we can sign with */

/* NULL: not one of ours (FIDO keys, certificates, DSA). */
const struct key_type *key_type_find(struct byte_view name);
int key_type_nid(const struct key_type *type);           /* of the curve, or of the algorithm */
const char *key_type_curve(const struct key_type *type); /* "nistp256"; NULL: no ECDSA */

struct key {
    const struct key_type *type;
    struct buf blob;      /* public, as in authorized_keys */
    struct buf auth_blob; /* the same under the name of the signature, as authentication wants it */
    EVP_PKEY *private;    /* NULL: the agent signs */
    char *origin;         /* "FILE" or "COMMENT in the agent" */
};

/* NULL and `err`: of a type that we cannot use. Takes the private key, also on failure. */
struct key *key_create_take(EVP_PKEY *private, const char *origin, struct error *err);
struct key *key_create_public(struct byte_view blob, const char *origin, struct error *err);
void key_destroy(struct key *key); /* wipes; accepts NULL */

const char *key_name(const struct key *key); /* "ed25519", "ecdsa", "rsa": for people */
bool key_is_rsa(const struct key *key);

/* The name of the signature that the server is asked to check: "rsa-sha2-512" for RSA. */
const char *key_signature_name(const struct key *key);

/* Appends the bare signature over `data`, without its name. For keys with a private half. */
int key_sign(const struct key *key, struct byte_view data, struct buf *signature,
             struct error *err);
