/* SPDX-License-Identifier: Apache-2.0 */
/* A server of the store in a loop, and sockets of clients. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/torch_store/torch_server.h"
#include "loop_fixture.h"
#include "unit.h"

#define VALIDATE "\x00\xce\xf7\x85\x3c"
#define COUNT(number) #number "\0\0\0\0\0\0\0"

struct hall {
    struct loop *loop;
    struct torch_server *server;
    struct log log;
    struct buf said;
    int port;
};

static void say(void *context, enum log_level level, const char *text)
{
    struct hall *hall = context;
    (void)level;
    buf_printf(&hall->said, "%s\n", text);
}

/* A port that is free, as far as anybody can know. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    int fd AUTO_FD = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    return ntohs(at.sin_port);
}

static int open_hall(void **state)
{
    struct error err = ERROR_INIT;
    struct hall *hall = mem_alloc(sizeof(*hall));
    *hall = (struct hall){.loop = loop_create(&err), .said = BUF_INIT(100000)};
    hall->log = (struct log){.level = LOG_INFO, .emit = say, .context = hall};
    for (int i = 0; i < 20 && hall->server == NULL; i++) {
        hall->port = free_port();
        hall->server =
            torch_server_create(hall->loop, hall->port, TORCH_CLIENTS_MAX, &hall->log, &err);
    }
    assert_non_null(hall->server);
    *state = hall;
    return 0;
}

static int close_hall(void **state)
{
    struct hall *hall = *state;
    torch_server_destroy(hall->server);
    loop_destroy(hall->loop);
    buf_destroy(&hall->said);
    free(hall);
    return 0;
}

static int call(const struct hall *hall)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)hall->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(fd_nonblock(fd), 0);
    return fd;
}

static void give(int fd, const void *bytes, size_t length)
{
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}
#define GIVE(fd, text) give(fd, text, sizeof(text) - 1)

/* Exactly these bytes come; NULL: the end of the connection. */
static void expect(const struct hall *hall, int fd, const void *bytes, size_t length)
{
    char got[256];
    ssize_t count = -1;
    size_t have = 0;
    for (int i = 0; i < 2000 && (have < length || bytes == NULL); i++) {
        run_turns(hall->loop, 2);
        count = recv(fd, got + have, sizeof(got) - have, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN))
            break;
        have += count > 0 ? (size_t)count : 0;
        if (count < 0)
            unit_pause();
    }
    if (bytes == NULL) {
        assert_true(count == 0 || errno == ECONNRESET);
        return;
    }
    assert_int_equal(have, length);
    assert_memory_equal(got, bytes, length);
}
#define EXPECT(fd, text) expect(hall, fd, text, sizeof(text) - 1)

static void test_clients(void **state)
{
    struct hall *hall = *state;
    int first AUTO_FD = call(hall), second AUTO_FD = call(hall);
    GIVE(first, VALIDATE "\x06" COUNT(\x1) COUNT(\x2) "/a");
    GIVE(second, VALIDATE "\x0d"
                          "nonc");
    EXPECT(second, "nonc");
    GIVE(second, "\x01" COUNT(\x2) "/a" COUNT(\x1) "x");
    EXPECT(first, "\0");
    GIVE(first, "\x03" COUNT(\x2) "/a");
    EXPECT(first, COUNT(\x1) "x");
    assert_int_equal(torch_server_clients(hall->server), 2);
    GIVE(first, "\x06" COUNT(\x1) COUNT(\x2) "/b"); /* killed while it waits */
    fd_close(&first);
    GIVE(second, "\x01" COUNT(\x2) "/b" COUNT(\x1) "x"
                                                   "\x03" COUNT(\x2) "/b");
    EXPECT(second, COUNT(\x1) "x");
    run_until(hall->loop, torch_server_clients(hall->server) == 1);
    assert_string_equal(buf_text(&hall->said), "");
}

static int refusals; /* of send() */

/* For the whole program: the kernel may lack memory. */
ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    if (refusals > 0) {
        errno = refusals-- % 2 == 0 ? ENOBUFS : ENOMEM;
        return -1;
    }
    return sendto(fd, bytes, length, flags, NULL, 0);
}

static void test_a_kernel_without_memory(void **state)
{
    struct hall *hall = *state;
    int fd AUTO_FD = call(hall);
    GIVE(fd, VALIDATE "\x01" COUNT(\x2) "/a" COUNT(\x1) "x"
                                                        "\x03" COUNT(\x2) "/a");
    refusals = 100;
    run_until(hall->loop, refusals < 100);
    for (int i = 0; i < 150; i++) /* the socket is writable all the time */
        run_turns(hall->loop, 1);
    assert_int_not_equal(refusals, 0);
    refusals = 2;
    EXPECT(fd, COUNT(\x1) "x");
    assert_int_equal(refusals, 0);
}

/* More than any socket takes at once. */
static void test_large_values(void **state)
{
    struct hall *hall = *state;
    const size_t length = (size_t)64 << 20;
    uint8_t *value AUTO_FREE = mem_alloc(length), *got AUTO_FREE = mem_alloc(length + 8);
    int fd AUTO_FD = call(hall);
    uint64_t count = length;
    memset(value, 'v', length);
    GIVE(fd, VALIDATE "\x01" COUNT(\x2) "/a");
    give(fd, &count, sizeof(count));
    for (size_t sent = 0; sent < length; run_turns(hall->loop, 1)) {
        ssize_t now = send(fd, value + sent, length - sent, MSG_NOSIGNAL);
        sent += now > 0 ? (size_t)now : 0;
    }
    GIVE(fd, "\x03" COUNT(\x2) "/a");
    for (size_t have = 0; have < length + 8; run_turns(hall->loop, 1)) {
        ssize_t now = recv(fd, got + have, length + 8 - have, 0);
        assert_int_not_equal(now, 0);
        have += now > 0 ? (size_t)now : 0;
    }
    assert_memory_equal(got, &count, sizeof(count));
    assert_memory_equal(got + 8, value, length);
}

/* One that asks for more than it reads does not keep others from being served, and gets all in the
 * end. */
static void test_much_at_once(void **state)
{
    struct hall *hall = *state;
    enum { QUERIES = 60000 };
    const size_t wanted = (size_t)QUERIES * (8 + 8 + 6);
    uint8_t *queries AUTO_FREE = mem_alloc(QUERIES), *got AUTO_FREE = mem_alloc(wanted + 1);
    int greedy AUTO_FD = call(hall), other AUTO_FD = call(hall);
    memset(queries, 17, QUERIES); /* LIST_KEYS */
    GIVE(greedy, VALIDATE "\x01" COUNT(\x6) "/other" COUNT(\x1) "x");
    GIVE(other, VALIDATE "\x03" COUNT(\x6) "/other");
    EXPECT(other, COUNT(\x1) "x");
    give(greedy, queries, QUERIES);
    for (int i = 0; i < 100; i++)
        run_turns(hall->loop, 1);
    GIVE(other, "\x03" COUNT(\x6) "/other");
    EXPECT(other, COUNT(\x1) "x");
    size_t have = 0;
    for (; have < wanted; run_turns(hall->loop, 1)) {
        ssize_t now = recv(greedy, got + have, wanted + 1 - have, 0);
        assert_int_not_equal(now, 0);
        have += now > 0 ? (size_t)now : 0;
    }
    assert_int_equal(have, wanted);
    for (size_t i = 0; i < wanted; i += 22)
        assert_memory_equal(got + i, COUNT(\x1) COUNT(\x6) "/other", 22);
}

/* A client that is wrong is dropped, and the first one with each reason is named. */
static void test_rubbish(void **state)
{
    struct hall *hall = *state;
    int good AUTO_FD = call(hall), http AUTO_FD = call(hall), large AUTO_FD = call(hall);
    int again AUTO_FD = call(hall);
    GIVE(http, "GET / HTTP/1.1\r\n\r\n");
    expect(hall, http, NULL, 0);
    GIVE(again, "GET / HTTP/1.1\r\n\r\n");
    expect(hall, again, NULL, 0);
    GIVE(large, VALIDATE "\x03\0\0\0\0\0\0\0\x80");
    expect(hall, large, NULL, 0);
    GIVE(good, VALIDATE "\x0d"
                        "nonc");
    EXPECT(good, "nonc");
    assert_string_equal(
        buf_text(&hall->said),
        "the store of torch.distributed dropped a client at 127.0.0.1: it sent a "
        "query that torch's store does not have\n"
        "the store of torch.distributed dropped a client at 127.0.0.1: it sent a key "
        "longer than 8 KiB\n");
    torch_server_destroy(hall->server);
    hall->server = NULL;
    assert_non_null(strstr(buf_text(&hall->said), "dropped 3 clients"));
    expect(hall, good, NULL, 0); /* its connection is cut */
}

/* Those behind the limit are served when others have gone. */
static void test_too_many(void **state)
{
    struct hall *hall = *state;
    struct error err = ERROR_INIT;
    int fds[3];
    torch_server_destroy(hall->server);
    hall->server = torch_server_create(hall->loop, hall->port, 2, &hall->log, &err);
    assert_non_null(hall->server);
    for (int i = 0; i < 3; i++) {
        fds[i] = call(hall);
        GIVE(fds[i], VALIDATE "\x0d"
                              "nonc");
    }
    EXPECT(fds[0], "nonc");
    EXPECT(fds[1], "nonc");
    run_turns(hall->loop, 20);
    assert_int_equal(recv(fds[2], (char[4]){0}, 4, 0), -1);
    fd_close(&fds[0]);
    EXPECT(fds[2], "nonc");
    fd_close(&fds[1]);
    fd_close(&fds[2]);
}

static void test_no_descriptor(void **state)
{
    struct hall *hall = *state;
    struct rlimit limit, small;
    int fd AUTO_FD = call(hall), lowest = dup(fd);
    GIVE(fd, VALIDATE "\x0d"
                      "nonc");
    fd_close(&lowest);
    lowest = dup(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = (struct rlimit){(rlim_t)lowest, limit.rlim_max};
    fd_close(&lowest);
    int filler AUTO_FD = dup(fd); /* the last one */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    run_turns(hall->loop, 50); /* and does not spin */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_non_null(strstr(buf_text(&hall->said), "can accept no more: Too many open files"));
    EXPECT(fd, "nonc");
}

/* Two attempts with the same names: nothing of the first is left in the second. */
static void test_two_attempts(void **state)
{
    struct hall *hall = *state;
    struct error err = ERROR_INIT;
    int old AUTO_FD = call(hall);
    GIVE(old, VALIDATE "\x01" COUNT(\x2) "/a" COUNT(\x1) "x"
                                                         "\x0d"
                                                         "nonc");
    EXPECT(old, "nonc");
    torch_server_destroy(hall->server);
    hall->server = torch_server_create(hall->loop, hall->port, TORCH_CLIENTS_MAX, &hall->log, &err);
    assert_non_null(hall->server); /* although the old port has connections in TIME_WAIT */
    expect(hall, old, NULL, 0);
    int new AUTO_FD = call(hall);
    GIVE(new, VALIDATE "\x05" COUNT(\x1) COUNT(\x2) "/a");
    EXPECT(new, "\x01");
}

static void note_waiting(void *context, const struct torch_waiting *waiting)
{
    const struct torch_peer *peer = torch_server_peer(waiting);
    struct buf *out = context;
    assert_true(waiting->waited_ms >= 0);
    buf_printf(out, "%s:%d %s; ", peer->address, peer->port, waiting->key);
}

static void test_waiting(void **state)
{
    struct hall *hall = *state;
    struct buf out AUTO_BUF = BUF_INIT(1000);
    struct sockaddr_in at;
    socklen_t length = sizeof(at);
    int fd AUTO_FD = call(hall);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    GIVE(fd, VALIDATE "\x0d"
                      "nonc"
                      "\x06" COUNT(\x1) COUNT(\x2) "/a");
    EXPECT(fd, "nonc");
    run_turns(hall->loop, 5);
    torch_server_each_waiting(hall->server, note_waiting, &out);
    char *wanted AUTO_FREE = mem_printf("127.0.0.1:%d /a; ", ntohs(at.sin_port));
    assert_string_equal(buf_text(&out), wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clients, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_a_kernel_without_memory, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_large_values, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_much_at_once, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_rubbish, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_too_many, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_no_descriptor, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_two_attempts, open_hall, close_hall),
        cmocka_unit_test_setup_teardown(test_waiting, open_hall, close_hall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
