/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses among the ciphers that libssh2 knows. */
#pragma once

#include <libssh2.h>

/* AES with 128 bits first, as OpenSSH has it too; the others follow in libssh2's own order, which
 * begins with the longest keys. The driver deciphers the output of all hosts in one thread, and a
 * tenth of that is saved. */
void cipher_prefer(LIBSSH2_SESSION *session);
