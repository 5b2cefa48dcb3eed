/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server listens, as the user writes it: a port of the loopback interface, an address with
 * a port, or the path of a Unix socket. Pure. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/un.h>

#include "base/error.h"

struct listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t length;
    bool is_path;
};

/* "9400", "127.0.0.1:9400", "[::1]:9400", "localhost:9400" (127.0.0.1), "/run/job.sock",
 * "unix:job.sock". Port 0 lets the kernel choose. Names other than localhost are refused: to look
 * one up takes time. -1 and `err` (STATUS_USAGE). */
int listen_address_parse(const char *text, struct listen_address *out, struct error *err);

/* "http://127.0.0.1:9400", or "unix:PATH". The caller frees it. */
char *listen_address_url(const struct listen_address *address);
