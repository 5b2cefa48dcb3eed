/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an "openssh-key-v1" file (PROTOCOL.key of OpenSSH), pure. */
#pragma once

#include "transport/ssh_module/key.h"

enum openssh_key_kind {
    OPENSSH_KEY_USABLE,
    OPENSSH_KEY_ENCRYPTED,
    OPENSSH_KEY_FOREIGN, /* of a type that only OpenSSH's own programs can use: FIDO */
    OPENSSH_KEY_BAD,     /* damaged */
    OPENSSH_KEY_NONE,    /* not such a file */
};

/* Fills `key` (the caller's) for a usable one, and `reason` for a foreign or bad one. Appends the
 * public blob to `public` if it could be read. */
enum openssh_key_kind openssh_key_parse(const char *path, const char *text, size_t length,
                                        struct key **key, struct buf *public, struct error *reason);
