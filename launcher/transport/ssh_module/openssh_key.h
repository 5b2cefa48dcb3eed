/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an "openssh-key-v1" file (PROTOCOL.key of OpenSSH), pure. */
#pragma once

#include "transport/ssh_module/key_file.h"

/* True when the text is one; then the parts of `file` are filled: kind, key, public, reason. */
bool openssh_key_parse(struct key_file *file, const char *path, const char *text, size_t length);
