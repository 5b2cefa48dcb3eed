/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a line as text: "@" and an abstract name of a Unix socket. Such a name has no
 * file, so nothing of it remains when the agent has ended.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"

int line_address_get(const char *text, struct sockaddr_un *name, socklen_t *length,
                     struct error *err);

/* Of a socket that bind(2) has given an abstract name. The caller frees it. NULL: it has none. */
char *line_address_text(const struct sockaddr_un *name, socklen_t length);
