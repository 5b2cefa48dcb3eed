/* SPDX-License-Identifier: Apache-2.0 */
/* A process without free descriptors; test_dial_back.c has the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop_fixture.h"
#include "transport/dial_listener.h"

struct fixture {
    int last, accepted; /* the newest connection, and how many there were */
    int fulls;
    bool for_long;
};

static void accepted(void *context, int fd, const struct sockaddr_storage *address)
{
    struct fixture *f = context;
    (void)address;
    f->last = fd;
    f->accepted++;
}

/* The newest one leaves its descriptor to the next one. */
static void full(void *context, const char *cause, bool for_long)
{
    struct fixture *f = context;
    (void)cause;
    f->fulls++;
    f->for_long |= for_long;
    close(f->last);
}

static int dial(const struct dial_listener *listener)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)dial_listener_port(listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* While others wait, those that come in have time to show who they are. */
static void test_one_gives_way_to_the_next(void **state)
{
    static const struct dial_listener_ops ops = {.accepted = accepted, .full = full};
    struct fixture f = {.last = -1};
    struct loop *loop = loop_create(NULL);
    struct dial_listener *listener = dial_listener_create(loop, 0, &ops, &f, NULL);
    struct rlimit old, less;
    int fds[3];
    (void)state;
    assert_non_null(listener);
    for (int i = 0; i < 3; i++)
        fds[i] = dial(listener);
    int lowest = dup(fds[0]);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    less = old;
    less.rlim_cur = (rlim_t)lowest + 1;
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    run_until(loop, f.for_long || f.accepted == 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(f.for_long);
    assert_int_equal(f.accepted, 2);
    assert_int_equal(f.fulls, 2); /* once at the beginning */
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    dial_listener_destroy(listener);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_gives_way_to_the_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
