/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "node/ports.h"

/* Binds (and listens) like another program; the descriptor or -1. */
static int other(int family, int port, bool reuse, bool listens)
{
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (reuse)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* as torch: both families */
    const struct sockaddr *address =
        family == AF_INET ? (const struct sockaddr *)&four : (const struct sockaddr *)&six;
    socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
    if (bind(fd, address, size) < 0 || (listens && listen(fd, 8) < 0))
        fd_close(&fd);
    return fd;
}

static void test_held_port(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int port = 0, again = 0;
    int held = port_hold(port_range_read(), 0, &port, &err);
    assert_true(held >= 0);
    assert_true(fcntl(held, F_GETFD) & FD_CLOEXEC);
    struct buf range AUTO_BUF = BUF_INIT(256);
    assert_int_equal(fd_read_file("/proc/sys/net/ipv4/ip_local_port_range", &range, &err), 0);
    char *end = NULL;
    long first = strtol(buf_text(&range), &end, 10), last = strtol(end, NULL, 10);
    assert_true(port >= 1024 && port <= 65535 && (port < first || port > last));

    assert_int_equal(other(AF_INET, port, false, true), -1); /* a program without the option */
    assert_int_equal(port_hold(port_range_read(), port, &again, &err), -1); /* another launcher */
    assert_non_null(strstr(err.text, "cannot reserve port"));
    assert_int_equal(err.errnum, EADDRINUSE);

    int listener = other(AF_INET, port, true, true); /* the worker that the port is for */
    assert_true(listener >= 0);
    close(listener);
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    if (probe >= 0) {
        close(probe);
        listener = other(AF_INET6, port, true, true); /* torch's store */
        assert_true(listener >= 0);
        close(listener);
    }
    close(held);
    held = port_hold(port_range_read(), port, &again, &err); /* free again */
    assert_true(held >= 0);
    assert_int_equal(again, port);
    close(held);
}

static void test_taken_ports(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int port = 0, again = 0;
    int held = port_hold(port_range_read(), 0, &port, &err);
    close(held);
    int listener = other(AF_INET, port, true, true);
    assert_true(listener >= 0);
    assert_int_equal(port_hold(port_range_read(), port, &again, &err), -1);
    close(listener);
    listener = other(AF_INET6, port, true, true);
    if (listener >= 0) {
        assert_int_equal(port_hold(port_range_read(), port, &again, &err), -1);
        close(listener);
    }
}

static void test_many(void **state)
{
    (void)state;
    int fds[40], ports[40];
    for (int i = 0; i < 40; i++) {
        fds[i] = port_hold(port_range_read(), 0, &ports[i], NULL);
        assert_true(fds[i] >= 0);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(ports[i], ports[j]);
    }
    for (int i = 0; i < 40; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_port),
        cmocka_unit_test(test_taken_ports),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
