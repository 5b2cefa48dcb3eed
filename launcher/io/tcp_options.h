/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a TCP connection that carries a link, and a port for many. */
#pragma once

#include <stdint.h>

/* Sets TCP_NODELAY and keepalive probes, the first after 5 s of silence, then every 3 s. After
 * `dead_after_ms` without an answer, the kernel gives up, and so it does with a peer that does not
 * read. 0: no probes and no such limit, so the owner has to judge. A kernel that refuses an option
 * still carries the connection. */
void tcp_options_set(int fd, int64_t dead_after_ms);

/* Listens on a port of all addresses, IPv6 and IPv4, or of IPv4 alone where there is no other.
 * `port` 0: any that is free; `*bound` says which. It does not block. -1 and errno. */
int tcp_listen(int port, int backlog, int *bound);
