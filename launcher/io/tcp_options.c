/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tcp_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { KEEPALIVE_IDLE_S = 5, KEEPALIVE_INTERVAL_S = 3, KEEPALIVE_PROBES = 3 };

void tcp_options_set(int fd, int64_t dead_after_ms)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S,
              probes = KEEPALIVE_PROBES;
    unsigned dead = (unsigned)dead_after_ms;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* What is lost of a quiet stream is sent again every RTO, not after twice the last wait, so
     * that heartbeats get through a lossy network in time. */
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
}
