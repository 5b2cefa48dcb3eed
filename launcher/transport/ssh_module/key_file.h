/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private keys in files: OpenSSH's own format ("openssh-key-v1") by a bounded parser of ours, PEM
 * and PKCS#8 by OpenSSL. Encrypted ones are not opened: the user's ssh-agent serves them.
 */
#pragma once

#include <stdbool.h>

#include "transport/ssh_module/key.h"

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
