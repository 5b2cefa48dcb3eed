/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses, and connections to loopback listeners. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop_fixture.h"
#include "transport/dial.h"
#include "unit.h"

struct answers {
    struct loop *loop;
    int count, wanted;
    struct resolve_result last;
};

static void answered(void *context, const struct resolve_result *result)
{
    struct answers *answers = context;
    answers->last = *result;
    if (++answers->count == answers->wanted)
        loop_stop(answers->loop);
}

struct dialled {
    struct loop *loop;
    int count;
    struct dial_result result;
};

static void dialled(void *context, const struct dial_result *result)
{
    struct dialled *dialled = context;
    dialled->count++;
    dialled->result = *result;
    loop_stop(dialled->loop);
}

static atomic_int lookups, gate_closed;

/* A thread that waits for a name server needs little, and many of them may wait. */
static bool stack_is_small(void)
{
    pthread_attr_t attributes;
    size_t bytes = SIZE_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes <= (size_t)1 << 20;
}

/* "bad" has no address, "stuck" none before the gate opens; all signals must be blocked here. */
static int fake_lookup(const char *name, int family, struct addrinfo **found)
{
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGCHLD) != 1 || sigismember(&mask, SIGTERM) != 1 || !stack_is_small())
        return EAI_FAIL;
    lookups++;
    while (strcmp(name, "stuck") == 0 && gate_closed)
        unit_pause();
    if (strcmp(name, "bad") == 0)
        return EAI_NONAME;
    return getaddrinfo("127.0.0.7", NULL, &hints, found);
}

static void test_numeric(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct resolver *resolver = resolver_create(loop, fake_lookup, NULL);
    struct answers answers = {.loop = loop, .wanted = 2};
    lookups = 0;
    resolver_ask(resolver, "127.0.0.1", AF_UNSPEC, 5000, answered, &answers);
    resolver_ask(resolver, "::1", AF_UNSPEC, 5000, answered, &answers);
    assert_int_equal(answers.count, 0); /* not from within the call */
    run_loop(loop);
    assert_int_equal(lookups, 0);
    assert_int_equal(answers.last.count, 1);
    resolver_destroy(resolver);
    loop_destroy(loop);
}

static void test_names(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct resolver *resolver = resolver_create(loop, fake_lookup, NULL);
    struct answers answers = {.loop = loop, .wanted = 3}, bad = {.loop = loop, .wanted = 1};
    lookups = 0;
    gate_closed = 1;
    for (int i = 0; i < 3; i++)
        resolver_ask(resolver, "stuck", AF_UNSPEC, 10000, answered, &answers);
    struct resolve_request *dropped =
        resolver_ask(resolver, "stuck", AF_UNSPEC, 10000, answered, NULL);
    resolver_cancel(dropped);
    gate_closed = 0;
    run_loop(loop);
    assert_int_equal(lookups, 1);
    assert_int_equal(answers.last.count, 1);
    assert_int_equal(answers.last.addresses[0].ss_family, AF_INET);
    resolver_ask(resolver, "bad", AF_UNSPEC, 10000, answered, &bad);
    run_loop(loop);
    assert_int_equal(bad.last.count, 0);
    assert_non_null(strstr(bad.last.why, "cannot resolve bad: "));
    assert_non_null(strstr(bad.last.why, "/etc/hosts"));
    resolver_destroy(resolver);
    loop_destroy(loop);
}

/* All threads hang: deadlines are kept, and the resolver can go while they still do. */
static void test_stuck(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct resolver *resolver = resolver_create(loop, fake_lookup, NULL);
    struct answers answers = {.loop = loop, .wanted = 1};
    gate_closed = 1;
    resolver_ask(resolver, "stuck", AF_UNSPEC, 30, answered, &answers);
    run_loop(loop);
    assert_int_equal(answers.last.count, 0);
    assert_non_null(strstr(answers.last.why, "no answer within"));
    resolver_ask(resolver, "stuck", AF_UNSPEC, 10000, answered, &answers);
    resolver_destroy(resolver);
    loop_destroy(loop);
    assert_int_equal(answers.count, 1);
    gate_closed = 0;
    usleep(20000); /* so that the sanitizer sees them end */
}

static void test_this_machine(void **state)
{
    (void)state;
    const struct addrinfo hints = {.ai_family = AF_INET};
    struct addrinfo *known = NULL;
    if (getaddrinfo("localhost", NULL, &hints, &known) != 0)
        skip(); /* a system without /etc/hosts */
    freeaddrinfo(known);
    struct loop *loop = loop_create(NULL);
    struct resolver *resolver = resolver_create(loop, NULL, NULL);
    struct answers answers = {.loop = loop, .wanted = 1};
    resolver_ask(resolver, "localhost", AF_INET, 10000, answered, &answers);
    run_loop(loop);
    assert_in_range(answers.last.count, 1, RESOLVE_ADDRESSES_MAX);
    resolver_destroy(resolver);
    loop_destroy(loop);
}

static void add_address(struct resolve_result *result, const char *text)
{
    struct sockaddr_storage *address = &result->addresses[result->count++];
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        return;
    }
    assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    six->sin6_family = AF_INET6;
}

static void test_order(void **state)
{
    (void)state;
    struct resolve_result result = {.count = 0};
    size_t order[RESOLVE_ADDRESSES_MAX];
    static const char *const texts[] = {"::1", "::2", "::3", "127.0.0.1", "127.0.0.2"};
    static const size_t expected[] = {0, 3, 1, 4, 2};
    for (size_t i = 0; i < 5; i++)
        add_address(&result, texts[i]);
    dial_order(&result, order);
    assert_memory_equal(order, expected, sizeof(expected));
}

static int listener(const char *address, int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    inet_pton(AF_INET, address, &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void test_connects(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct dialled got = {.loop = loop};
    int port;
    int server = listener("127.0.0.2", &port);
    struct resolve_result result = {.count = 0};
    add_address(&result, "127.0.0.1"); /* refuses: the next is tried at once */
    add_address(&result, "127.0.0.2");
    dial_start(loop, &result, port, 10000, 7000, dialled, &got);
    assert_int_equal(got.count, 0);
    run_loop(loop);
    assert_true(got.result.fd >= 0);
    assert_string_equal(got.result.peer, "127.0.0.2");
    int value = 0;
    socklen_t length = sizeof(value);
    getsockopt(got.result.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length);
    assert_int_equal(value, 7000);
    getsockopt(got.result.fd, IPPROTO_TCP, TCP_NODELAY, &value, &length);
    assert_true(value != 0);
    getsockopt(got.result.fd, SOL_SOCKET, SO_KEEPALIVE, &value, &length);
    assert_true(value != 0);
    close(got.result.fd);
    close(server);
    loop_destroy(loop);
}

static bool interrupted; /* the next connect() is, before it begins */

int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    errno = EINTR;
    bool now = interrupted;
    interrupted = false;
    return now ? -1 : (int)syscall(SYS_connect, fd, to, length);
}

static void test_interrupted(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct dialled got = {.loop = loop};
    int port;
    int server = listener("127.0.0.2", &port);
    struct resolve_result result = {.count = 0};
    add_address(&result, "127.0.0.2");
    interrupted = true;
    dial_start(loop, &result, port, 10000, 7000, dialled, &got);
    run_loop(loop);
    assert_false(interrupted);
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);
    assert_int_equal(getpeername(got.result.fd, (struct sockaddr *)&peer, &length), 0);
    close(got.result.fd);
    close(server);
    loop_destroy(loop);
}

static void test_refused(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct dialled got = {.loop = loop};
    int port;
    close(listener("127.0.0.1", &port));
    struct resolve_result result = {.count = 0};
    add_address(&result, "127.0.0.1");
    dial_start(loop, &result, port, 10000, 7000, dialled, &got);
    run_loop(loop);
    assert_int_equal(got.result.fd, -1);
    assert_non_null(
        strstr(got.result.why, "connection refused by 127.0.0.1: is sshd running on port "));
    loop_destroy(loop);
}

/* A listener whose queue is full does not answer: the deadline is kept and says so. */
static void test_silent(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    struct dialled got = {.loop = loop};
    int port, fillers[16];
    int server = listener("127.0.0.3", &port);
    assert_int_equal(listen(server, 0), 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.3", &at.sin_addr);
    for (int i = 0; i < 16; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&at, sizeof(at));
    }
    struct resolve_result result = {.count = 0};
    add_address(&result, "127.0.0.3");
    dial_start(loop, &result, port, 300, 7000, dialled, &got);
    run_loop(loop);
    assert_int_equal(got.result.fd, -1);
    assert_non_null(strstr(got.result.why, "no answer from 127.0.0.3 within 0.3 s: host down, or "
                                           "a firewall drops port"));
    struct dial *dropped = dial_start(loop, &result, port, 300, 7000, dialled, &got);
    run_turns(loop, 5);
    dial_cancel(dropped);
    for (int i = 0; i < 16; i++)
        close(fillers[i]);
    close(server);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numeric),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_stuck),       cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_order),       cmocka_unit_test(test_connects),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_silent),
        cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
