/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a TCP connection that carries a link. */
#pragma once

#include <stdint.h>

/* Sets TCP_NODELAY and keepalive probes, the first after 5 s of silence, then every 3 s. After
 * `dead_after_ms` without an answer, the kernel gives up, and so it does with a peer that does not
 * read. 0: no probes and no such limit, so the owner has to judge. A kernel that refuses an option
 * still carries the connection. */
void tcp_options_set(int fd, int64_t dead_after_ms);
