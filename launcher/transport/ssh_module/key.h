/* SPDX-License-Identifier: Apache-2.0 */
/* One key of the user, keys in files, and all those that log in. */
#pragma once

#include <openssl/evp.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/ssh_module.h"

/*
 * key.c: a user's key: its public half, and what can sign with the other half. That is OpenSSL for
 * a key from a file, or else a key agent. The private key stays away from libssh2, which asks for
 * signatures. On its own, it would sign RSA with SHA-1 only, which servers refuse.
 */

struct key_type {                  /* one of those we can sign with */
    const char *name, *signature;  /* the server is asked to check "rsa-sha2-512" for RSA */
    const char *shown;             /* "ed25519", "ecdsa", "rsa": for people */
    const char *curve;             /* "nistp256", as key blobs name it; NULL: no ECDSA */
    int nid;                       /* of the curve, or of the algorithm */
    const EVP_MD *(*digest)(void); /* NULL: the algorithm has its own */
};

/* NULL: not one of ours (FIDO keys, certificates, DSA). */
const struct key_type *key_type_find(struct byte_view name);

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

bool key_is_rsa(const struct key *key);

/* Appends the bare signature over `data`, without its name. For keys with a private half. */
int key_sign(const struct key *key, struct byte_view data, struct buf *signature,
             struct error *err);

/*
 * key_file.c: private keys in files: OpenSSH's own format ("openssh-key-v1") by a bounded parser of
 * ours, PEM and PKCS#8 by OpenSSL. Encrypted ones are not opened: the user's ssh-agent serves them.
 */

enum key_file_kind {
    KEY_FILE_USABLE,
    KEY_FILE_MISSING,
    KEY_FILE_LOCKED,    /* encrypted, or a public key: an agent may have the private one */
    KEY_FILE_NEEDS_SSH, /* only OpenSSH's own programs can use it: FIDO */
    KEY_FILE_BAD,
};

struct key_file {
    enum key_file_kind kind;
    struct key *key;     /* KEY_FILE_USABLE: the caller's */
    struct buf public;   /* its public blob, when that could be read, from it or from FILE.pub */
    bool certificate;    /* FILE-cert.pub lies beside it */
    struct error reason; /* for the last three kinds: what it is, and what to do */
};

void key_file_read(struct key_file *file, const char *path);
void key_file_destroy(struct key_file *file); /* what remains in it */

/* The same from bytes, without the checks of the file and its neighbours; pure. `file` is all zero
 * but for its kind afterwards, public and key. */
void key_file_parse(struct key_file *file, const char *path, const char *text, size_t length);

/*
 * keys.c: the keys to log in with, in OpenSSH's order: first those that the agent has and a file
 * names, then the agent's others (unless only named ones may be used), then those of the files.
 * They are loaded once and serve all sessions.
 */

/* As ssh_module's keys_create and keys_destroy. */
struct ssh_keys *keys_create(const struct ssh_keys_config *config, struct strv *notes,
                             struct error *err);
void keys_destroy(struct ssh_keys *keys);

size_t keys_count(const struct ssh_keys *keys);
const struct key *keys_get(const struct ssh_keys *keys, size_t index);

/* Appends the bare signature by that key. */
int keys_sign(struct ssh_keys *keys, const struct key *key, struct byte_view data,
              struct buf *signature, struct error *err);

/* What only the ssh program could still log in with ("a certificate, FILE-cert.pub"); NULL:
 * nothing. Borrowed. */
const char *keys_left_to_ssh(const struct ssh_keys *keys);
