/* SPDX-License-Identifier: Apache-2.0 */
/* What a TCP connection needs that carries a link. */
#pragma once

#include <stdint.h>

/* No delay, keepalive probes (the first after 5 s of silence, then every 3 s), and the kernel gives
 * up after `dead_after_ms` without an answer, or of a peer that does not read; 0: neither, so that
 * the owner has to judge. For comfort: a kernel that refuses one of them still
 * carries the connection. */
void tcp_options_set(int fd, int64_t dead_after_ms);
