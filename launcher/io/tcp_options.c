/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tcp_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/fd.h"

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

static int listen_on(int family, int port, int backlog, int *bound)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t length =
        family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    const int off = 0, on = 1;
    /* The port is at the same place in both families. */
    in_port_t *number = &((struct sockaddr_in *)&address)->sin_port;
    *number = htons((uint16_t)port);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd >= 0 && port != 0) /* connections of the job before may be on it for a while */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, backlog) < 0 ||
                    getsockname(fd, (struct sockaddr *)&address, &length) < 0))
        fd_close(&fd);
    *bound = ntohs(*number);
    return fd;
}

/* If somebody else has the port in one family, the other one alone is no use: clients of a name
 * with addresses of both families would come to either of two servers. */
int tcp_listen(int port, int backlog, int *bound)
{
    int fd = listen_on(AF_INET6, port, backlog, bound);
    return fd < 0 && errno != EADDRINUSE ? listen_on(AF_INET, port, backlog, bound) : fd;
}
