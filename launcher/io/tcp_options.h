/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a TCP connection that carries a link. */
#pragma once

#include <stdint.h>

/* TCP_NODELAY, keepalive probes (the first after 5 s of silence, then every 3 s), and the kernel
 * gives up after `dead_after_ms` without an answer, or of a peer that does not read; 0: neither, so
 * that the owner has to judge. A kernel that refuses an option still carries the connection. */
void tcp_options_set(int fd, int64_t dead_after_ms);
