/* SPDX-License-Identifier: Apache-2.0 */
/* How often hvdrun asks the kernel to acknowledge at once. libssh2 begins a handshake with a server
 * that sends its banner in pieces, and the test counts the calls of setsockopt(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "transport/ssh_module/parts.h"

static struct {
    int calls, fd;
} quickack;

/* In place of libc's. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    if (level == IPPROTO_TCP && name == TCP_QUICKACK) {
        quickack.calls++;
        quickack.fd = fd;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

struct dialogue {
    struct ssh_socket socket;
    LIBSSH2_SESSION *session;
    int server;
};

static void connect_both(struct dialogue *one)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(door, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_return_code(listen(door, 1), 0);
    assert_return_code(getsockname(door, (struct sockaddr *)&at, &length), 0);
    one->socket.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(one->socket.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    one->server = accept(door, NULL, NULL);
    assert_true(one->server >= 0);
    fd_close(&door);
    fd_nonblock(one->socket.fd);
}

static int setup(void **state)
{
    static struct dialogue one;
    one = (struct dialogue){.server = -1};
    connect_both(&one);
    one.session = libssh2_session_init_ex(NULL, NULL, NULL, &one.socket);
    assert_non_null(one.session);
    libssh2_session_set_blocking(one.session, 0);
    socket_attach(one.session);
    quickack.calls = 0;
    *state = &one;
    return 0;
}

static int teardown(void **state)
{
    struct dialogue *one = *state;
    one->socket.mute = true;
    (void)libssh2_session_handshake(one->session, one->socket.fd);
    libssh2_session_free(one->session);
    fd_close(&one->socket.fd);
    fd_close(&one->server);
    return 0;
}

static void go_on(struct dialogue *one)
{
    assert_int_equal(libssh2_session_handshake(one->session, one->socket.fd), LIBSSH2_ERROR_EAGAIN);
}

static void say(struct dialogue *one, const char *bytes, size_t length)
{
    struct pollfd came = {.fd = one->socket.fd, .events = POLLIN};
    assert_int_equal(write(one->server, bytes, length), length);
    assert_int_equal(poll(&came, 1, 10000), 1);
    go_on(one);
}

static void test_what_came_is_acknowledged(void **state)
{
    struct dialogue *one = *state;
    for (int piece = 1; piece <= 3; piece++) {
        say(one, "S", 1);
        assert_int_equal(quickack.calls, piece);
        assert_int_equal(quickack.fd, one->socket.fd);
    }
}

static void test_nothing_is_asked_while_nothing_comes(void **state)
{
    struct dialogue *one = *state;
    for (int i = 0; i < 5; i++)
        go_on(one);
    assert_int_equal(quickack.calls, 0);
    say(one, "SSH-", 4);
    for (int i = 0; i < 5; i++)
        go_on(one);
    assert_int_equal(quickack.calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_came_is_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_asked_while_nothing_comes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
