/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#define LOWEST 10000 /* below it are well-known services */
#define HIGHEST 65535
#define TRIES 512

struct port_range port_range_read(void)
{
    struct port_range range = {32768, 60999};
    struct buf text AUTO_BUF = BUF_INIT(128);
    if (fd_read_file("/proc/sys/net/ipv4/ip_local_port_range", &text, NULL) < 0)
        return range;
    char *end = NULL;
    long first = strtol(buf_text(&text), &end, 10), last = strtol(end, NULL, 10);
    if (first > 0 && first <= last && last <= HIGHEST)
        range = (struct port_range){(int)first, (int)last};
    return range;
}

static int bind_to(int fd, int family, int port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (family == AF_INET)
        return bind(fd, (const struct sockaddr *)&four, sizeof(four));
    return bind(fd, (const struct sockaddr *)&six, sizeof(six));
}

/* torch listens on [::]; a machine without IPv6 is free there. */
static bool ipv6_is_free(int port)
{
    int on = 1;
    int fd AUTO_FD = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
        return true;
    return bind_to(fd, AF_INET6, port) == 0 || errno != EADDRINUSE;
}

/* -1 and errno. */
static int hold(int port)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* first alone, so that a port held by another launcher is refused; shared afterwards */
    bool held = bind_to(fd, AF_INET, port) == 0 && ipv6_is_free(port);
    if (held && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0)
        return fd;
    int reason = held || errno == 0 ? EADDRINUSE : errno;
    fd_close(&fd);
    errno = reason;
    return -1;
}

static unsigned random_number(void)
{
    unsigned number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = (unsigned)clock_mono_ns();
    return number;
}

/* The n-th number from LOWEST up that is outside of `skip`; there are `count_outside()` of them. */
static int nth_outside(struct port_range skip, int n)
{
    int port = LOWEST + n;
    return port < skip.first || skip.last < LOWEST
               ? port
               : port + skip.last - (skip.first > LOWEST ? skip.first : LOWEST) + 1;
}

static int count_outside(struct port_range skip)
{
    int first = skip.first > LOWEST ? skip.first : LOWEST;
    int inside = skip.last >= first ? skip.last - first + 1 : 0;
    return HIGHEST - LOWEST + 1 - inside;
}

int port_hold(struct port_range clients, int wanted, int *port, struct error *err)
{
    if (wanted != 0) {
        int fd = hold(wanted);
        if (fd < 0)
            return error_errno(err, errno, "cannot reserve port %d (choose another one)", wanted);
        *port = wanted;
        return fd;
    }
    struct port_range skip = clients;
    if (count_outside(skip) < 64)
        skip = (struct port_range){0, 0}; /* the whole range is the kernel's: any port has to do */
    unsigned start = random_number(), count = (unsigned)count_outside(skip);
    for (unsigned i = 0; i < TRIES; i++) {
        int candidate = nth_outside(skip, (int)((start % count + i) % count));
        int fd = hold(candidate);
        if (fd >= 0) {
            *port = candidate;
            return fd;
        }
        if (errno != EADDRINUSE && errno != EACCES)
            return error_errno(err, errno, "cannot reserve a port for the job");
    }
    return error_set(err,
                     "no port is free for the job: hvdrun tried %d ports from %d on (name one with "
                     "--master-port)",
                     TRIES, nth_outside(skip, (int)(start % count)));
}
