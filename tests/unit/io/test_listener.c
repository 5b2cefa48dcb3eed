/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/status.h"
#include "io/listener.h"
#include "loop_fixture.h"

#define MANY_TURNS 1000
#define AFTER_FULL_MS 300 /* its timer is due before this one */

static void expect(const char *text, const char *url)
{
    struct listen_address address;
    struct error err = ERROR_INIT;
    if (listen_address_parse(text, &address, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
    char *got = listen_address_url(&address);
    assert_string_equal(got, url);
    assert_true(address.length > 0);
    free(got);
}

static void refuse(const char *text)
{
    struct listen_address address;
    struct error err = ERROR_INIT;
    if (listen_address_parse(text, &address, &err) == 0)
        fail_msg("'%s' was accepted", text);
    assert_true(err.text[0] != '\0');
    assert_int_equal(err.status, STATUS_USAGE);
}

static void test_accepted(void **state)
{
    (void)state;
    expect("9400", "http://127.0.0.1:9400");
    expect("0", "http://127.0.0.1:0");
    expect("localhost:65535", "http://127.0.0.1:65535");
    expect("0.0.0.0:9400", "http://0.0.0.0:9400");
    expect("[::1]:9400", "http://[::1]:9400");
    expect("[::]:1", "http://[::]:1");
    expect("/run/x.sock", "unix:/run/x.sock");
    expect("./x:1", "unix:./x:1");
    expect("unix:x.sock", "unix:x.sock");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",        "65536",    "-1",       "x",           ":9400",
                                        "::1:9",   "[::1]",    "[::1]9",   "[1.2.3.4]:9", "a:9400",
                                        "1.2.3:9", "1.2.3.4:", "1.2.3.4",  "unix:",       "9400 ",
                                        "[]:9",    "9400x",    "1.2.3.4:x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refuse(texts[i]);
    char path[200];
    memset(path, '/', sizeof(path));
    path[108] = '\0';
    refuse(path);
    path[107] = '\0';
    struct listen_address address;
    assert_int_equal(listen_address_parse(path, &address, NULL), 0);
}

static void test_numeric_addresses(void **state)
{
    static const char *const wrong[] = {"", "localhost", "1.2.3", "::g", "1.2.3.4:9"};
    struct socket_address address;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(socket_address_set(&address, wrong[i], 1));
    assert_false(socket_address_set(&address, "1.2.3.4", 65536));
    assert_true(socket_address_set(&address, "1.2.3.4", 65535));
    assert_int_equal(address.length, sizeof(struct sockaddr_in));
    assert_int_equal(((const struct sockaddr_in *)&address.at)->sin_port, htons(65535));
    assert_int_equal(((const struct sockaddr_in *)&address.at)->sin_addr.s_addr, htonl(0x01020304));
    assert_true(socket_address_set(&address, "fd00::1", 7));
    assert_int_equal(address.at.ss_family, AF_INET6);
    assert_int_equal(address.length, sizeof(struct sockaddr_in6));
    assert_int_equal(((const struct sockaddr_in6 *)&address.at)->sin6_addr.s6_addr[15], 1);
}

struct fixture {
    struct loop *loop;
    struct listener *listener;
    int came;
};

static void come(void *context, int fd, const struct sockaddr_storage *from)
{
    struct fixture *f = context;
    (void)from;
    f->came++;
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    fd_close(&fd);
    loop_stop(f->loop);
}

static const struct listener_ops usual = {.come = come};

static int dial(const struct listener *listener)
{
    struct socket_address to;
    assert_true(socket_address_set(&to, "127.0.0.1", listener_port(listener)));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to.at, to.length), 0);
    return fd;
}

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.loop = loop_create(NULL)};
    f->listener = listener_create(f->loop, "127.0.0.1", &usual, f, NULL);
    assert_non_null(f->listener);
    assert_int_not_equal(listener_port(f->listener), 0);
}

static void close_fixture(struct fixture *f)
{
    listener_destroy(f->listener);
    loop_destroy(f->loop);
}

static void test_connections(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f);
    int one = dial(f.listener), other = dial(f.listener);
    while (f.came < 2)
        run_loop(f.loop);
    fd_close(&one);
    fd_close(&other);
    close_fixture(&f);
}

/* The lowest descriptor that is free. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO), lowest = fd;
    fd_close(&fd);
    return lowest;
}

/* Of this program. */
static int accepts;

int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
    accepts++;
    return (int)syscall(SYS_accept4, fd, from, length, flags);
}

/* It does not try at each turn of the loop. */
static void test_without_descriptors(void **state)
{
    struct fixture f;
    struct rlimit before, none;
    (void)state;
    open_fixture(&f);
    int one = dial(f.listener);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next_descriptor();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    accepts = 0;
    run_turns(f.loop, MANY_TURNS);
    assert_int_equal(f.came, 0);
    assert_in_range(accepts, 1, MANY_TURNS / 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (f.came == 0)
        run_loop(f.loop);
    fd_close(&one);
    close_fixture(&f);
}

/* Without descriptors at a port of all addresses. */
struct crowd {
    int last, came; /* the newest connection, and how many there were */
    int fulls;
    bool for_long;
};

static void come_in(void *context, int fd, const struct sockaddr_storage *from)
{
    struct crowd *crowd = context;
    (void)from;
    crowd->last = fd;
    crowd->came++;
}

/* The newest one leaves its descriptor to the next one. */
static void full(void *context, const char *cause, bool for_long)
{
    struct crowd *crowd = context;
    (void)cause;
    crowd->fulls++;
    crowd->for_long |= for_long;
    close(crowd->last);
}

/* While others wait, those that come in have time to show who they are. */
static void test_one_gives_way_to_the_next(void **state)
{
    static const struct listener_ops ops = {.come = come_in, .full = full};
    struct crowd crowd = {.last = -1};
    struct loop *loop = loop_create(NULL);
    struct listener *listener = listener_create_at(loop, 0, &ops, &crowd);
    struct rlimit old, less;
    int fds[3];
    (void)state;
    assert_non_null(listener);
    for (int i = 0; i < 3; i++)
        fds[i] = dial(listener);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    less = old;
    less.rlim_cur = (rlim_t)next_descriptor() + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    run_until(loop, crowd.for_long || crowd.came == 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(crowd.for_long);
    assert_int_equal(crowd.came, 2);
    assert_int_equal(crowd.fulls, 2); /* once at the beginning */
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    listener_destroy(listener);
    loop_destroy(loop);
}

static void stop_loop(void *context)
{
    loop_stop(context);
}

struct gate {
    struct listener *listener;
    int came;
};

static void come_and_pause(void *context, int fd, const struct sockaddr_storage *from)
{
    struct gate *gate = context;
    (void)from;
    close(fd);
    gate->came++;
    listener_pause(gate->listener, true);
}

static void test_others_wait_while_it_pauses(void **state)
{
    static const struct listener_ops ops = {.come = come_and_pause};
    struct gate gate = {.came = 0};
    struct loop *loop = loop_create(NULL);
    int fds[2];
    (void)state;
    gate.listener = listener_create_at(loop, 0, &ops, &gate);
    assert_non_null(gate.listener);
    for (int i = 0; i < 2; i++)
        fds[i] = dial(gate.listener);
    run_until(loop, gate.came == 1);
    run_turns(loop, MANY_TURNS);
    assert_int_equal(gate.came, 1);
    listener_pause(gate.listener, false);
    run_until(loop, gate.came == 2);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    listener_destroy(gate.listener);
    loop_destroy(loop);
}

static void pause_when_full(void *context, const char *cause, bool for_long)
{
    const struct gate *gate = context;
    (void)cause, (void)for_long;
    listener_pause(gate->listener, true);
}

/* It tries again after a while without descriptors, but not while it pauses. */
static void test_it_stays_paused_when_it_was_full(void **state)
{
    static const struct listener_ops ops = {.come = come_and_pause, .full = pause_when_full};
    struct gate gate = {.came = 0};
    struct loop *loop = loop_create(NULL);
    struct loop_timer *later = loop_timer_create(loop, stop_loop, loop);
    struct rlimit before, none;
    (void)state;
    gate.listener = listener_create_at(loop, 0, &ops, &gate);
    assert_non_null(gate.listener);
    int one = dial(gate.listener);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next_descriptor();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    accepts = 0;
    run_until(loop, accepts > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    loop_timer_set(later, AFTER_FULL_MS);
    loop_run(loop);
    assert_int_equal(accepts, 1);
    assert_int_equal(gate.came, 0);
    listener_pause(gate.listener, false);
    run_until(loop, gate.came == 1);
    fd_close(&one);
    loop_timer_destroy(later);
    listener_destroy(gate.listener);
    loop_destroy(loop);
}

static void test_what_cannot_be_listened_on(void **state)
{
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(NULL);
    (void)state;
    assert_null(listener_create(loop, "here", &usual, NULL, &err));
    assert_string_equal(err.text, "'here' is not a numeric address");
    err = (struct error)ERROR_INIT;
    assert_null(listener_create(loop, "192.0.2.1", &usual, NULL, &err));
    assert_non_null(strstr(err.text, "cannot listen on 192.0.2.1: "));
    listener_destroy(NULL);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numeric_addresses),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_without_descriptors),
        cmocka_unit_test(test_one_gives_way_to_the_next),
        cmocka_unit_test(test_others_wait_while_it_pauses),
        cmocka_unit_test(test_it_stays_paused_when_it_was_full),
        cmocka_unit_test(test_what_cannot_be_listened_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
