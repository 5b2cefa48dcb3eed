/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a probe, and what others do to each of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/check/door.h"
#include "loop_fixture.h"
#include "unit.h"

static uint8_t token[CHECK_TOKEN] = "0123456789abcde", other_token[CHECK_TOKEN] = "another one....";

struct bench {
    struct loop *loop;
    struct check_door *door;
    struct check_call_result result;
    int done;
};

static int open_bench(void **state)
{
    struct error err = ERROR_INIT;
    struct bench *bench = mem_alloc(sizeof(*bench));
    bench->loop = loop_create(&err);
    bench->door = check_door_create(bench->loop, "127.0.0.1", token, &err);
    assert_non_null(bench->door);
    assert_int_not_equal(check_door_port(bench->door), 0);
    *state = bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    check_door_destroy(bench->door);
    loop_destroy(bench->loop);
    free(bench);
    return 0;
}

static void done(void *context, const struct check_call_result *result)
{
    struct bench *bench = context;
    bench->result = *result;
    bench->done++;
    loop_stop(bench->loop);
}

static struct check_call *call(struct bench *bench, const char *address, uint32_t port,
                               uint8_t *shown, int64_t limit_ms, int64_t transfer_ms)
{
    Hvdrun__ProbePeer peer = HVDRUN__PROBE_PEER__INIT;
    peer.address = (char *)address;
    peer.port = port;
    peer.token = (ProtobufCBinaryData){CHECK_TOKEN, shown};
    return check_call_begin(bench->loop, &peer, limit_ms, transfer_ms, done, bench);
}

static void wait_done(struct bench *bench)
{
    assert_int_equal(bench->done, 0); /* never from within check_call_begin() */
    run_loop(bench->loop);
    run_turns(bench->loop, 3);
    assert_int_equal(bench->done, 1);
}

static void expect(struct bench *bench, const char *address, uint32_t port, uint8_t *shown,
                   int64_t limit_ms, Hvdrun__ProbeOutcome wanted)
{
    bench->done = 0;
    call(bench, address, port, shown, limit_ms, 0);
    wait_done(bench);
    assert_int_equal(bench->result.outcome, wanted);
}

/* A listening socket of somebody else; its port. */
static int stranger(uint32_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    *port = check_socket_own(fd, text);
    assert_string_equal(text, "127.0.0.1");
    return fd;
}

static int dial(uint32_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(fd_nonblock(fd), 0);
    return fd;
}

static bool interrupted; /* the next connect() is, before it begins */

int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    errno = EINTR;
    bool now = interrupted;
    interrupted = false;
    return now ? -1 : (int)syscall(SYS_connect, fd, to, length);
}

static void test_reached(void **state)
{
    struct bench *bench = *state;
    expect(bench, "127.0.0.1", check_door_port(bench->door), token, 5000,
           HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
    assert_true(bench->result.connect_ns > 0);
    assert_string_equal(bench->result.source, "127.0.0.1");
    assert_int_equal(bench->result.bytes, 0);
}

static void test_an_interrupted_call(void **state)
{
    struct bench *bench = *state;
    interrupted = true;
    expect(bench, "127.0.0.1", check_door_port(bench->door), token, 5000,
           HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
    assert_false(interrupted);
}

static void test_transfer(void **state)
{
    struct bench *bench = *state;
    call(bench, "127.0.0.1", check_door_port(bench->door), token, 20000, 30);
    wait_done(bench);
    assert_int_equal(bench->result.outcome, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
    assert_true(bench->result.bytes > 0);
    assert_true(bench->result.transfer_ns > 0);
}

static void test_over_ipv6(void **state)
{
    struct bench *bench = *state;
    struct check_door *door = check_door_create(bench->loop, "::1", token, NULL);
    if (door == NULL) { /* a machine without IPv6 refuses the caller likewise */
        expect(bench, "::1", 9, token, 5000, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
        return;
    }
    expect(bench, "::1", check_door_port(door), token, 5000, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
    assert_string_equal(bench->result.source, "::1");
    check_door_destroy(door);
}

static void test_a_door_with_another_token(void **state)
{
    struct bench *bench = *state;
    expect(bench, "127.0.0.1", check_door_port(bench->door), other_token, 5000,
           HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
}

static void test_nobody_listens(void **state)
{
    struct bench *bench = *state;
    uint32_t port;
    int fd = stranger(&port);
    close(fd);
    expect(bench, "127.0.0.1", port, token, 5000, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED);
}

static void test_no_address(void **state)
{
    struct bench *bench = *state;
    expect(bench, "not.numeric", 80, token, 5000, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
    expect(bench, "127.0.0.1", 70000, token, 5000, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
    assert_null(check_door_create(bench->loop, "not.numeric", token, NULL));
    assert_null(check_door_create(bench->loop, "192.0.2.77", token, NULL)); /* not ours */
}

/* It accepts and says nothing. */
static void test_silence(void **state)
{
    struct bench *bench = *state;
    uint32_t port;
    int fd = stranger(&port);
    expect(bench, "127.0.0.1", port, token, 50, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    close(fd);
}

static void test_a_stranger_that_speaks(void **state)
{
    struct bench *bench = *state;
    uint32_t port;
    int fd = stranger(&port);
    call(bench, "127.0.0.1", port, token, 5000, 0);
    int guest = accept(fd, NULL, NULL);
    assert_int_equal(write(guest, "SSH-2.0-OpenSSH_9.2p1 and more", 30), 30);
    wait_done(bench);
    assert_int_equal(bench->result.outcome, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    close(guest);
    close(fd);
}

static void test_a_transfer_that_nobody_counts(void **state)
{
    struct bench *bench = *state;
    uint32_t port;
    uint8_t answer[CHECK_TOKEN];
    int fd = stranger(&port);
    call(bench, "127.0.0.1", port, token, 100, 20);
    int guest = accept(fd, NULL, NULL);
    check_token_answer(token, answer);
    assert_int_equal(write(guest, answer, sizeof(answer)), sizeof(answer));
    wait_done(bench);
    assert_int_equal(bench->result.outcome, HVDRUN__PROBE_OUTCOME__PROBE_BROKEN);
    assert_string_not_equal(bench->result.text, "");
    close(guest);
    close(fd);
}

static void test_cancel(void **state)
{
    struct bench *bench = *state;
    check_call_cancel(call(bench, "127.0.0.1", check_door_port(bench->door), token, 5000, 0));
    check_call_cancel(call(bench, "not.numeric", 1, token, 5000, 0));
    check_call_cancel(NULL);
    run_turns(bench->loop, 5);
    assert_int_equal(bench->done, 0);
}

struct reading {
    int fd;
    struct buf got;
    bool ended;
};

static bool at_end(struct reading *reading)
{
    char bytes[256];
    ssize_t count = fd_read(reading->fd, bytes, sizeof(bytes));
    if (count > 0)
        buf_append(&reading->got, bytes, (size_t)count);
    reading->ended = count == 0;
    return reading->ended;
}

/* A guest with these bytes gets that back before the door hangs up. */
static void visit(struct bench *bench, const void *bytes, size_t length, bool shut,
                  struct reading *reading)
{
    *reading = (struct reading){.fd = dial(check_door_port(bench->door)), .got = BUF_INIT(1000)};
    assert_int_equal(send(reading->fd, bytes, length, MSG_NOSIGNAL), length);
    if (shut)
        shutdown(reading->fd, SHUT_WR);
    run_until(bench->loop, at_end(reading));
    close(reading->fd);
}

static void test_guests(void **state)
{
    struct bench *bench = *state;
    struct reading reading;
    uint8_t words[CHECK_TOKEN + 5], answer[CHECK_TOKEN];
    memcpy(words, token, CHECK_TOKEN);
    memcpy(words + CHECK_TOKEN, "12345", 5);
    check_token_answer(token, answer);
    visit(bench, words, sizeof(words), true, &reading);
    assert_int_equal(reading.got.length, CHECK_TOKEN + CHECK_COUNT);
    assert_memory_equal(buf_text(&reading.got), answer, CHECK_TOKEN);
    assert_int_equal(check_count_get((const uint8_t *)buf_text(&reading.got) + CHECK_TOKEN), 5);
    buf_destroy(&reading.got);

    visit(bench, "GET / HTTP/1.1\r\n\r\n", 18, false, &reading); /* shown out at once */
    assert_int_equal(reading.got.length, 0);
    buf_destroy(&reading.got);

    visit(bench, token, 7, true, &reading); /* half a token */
    assert_int_equal(reading.got.length, 0);
    buf_destroy(&reading.got);

    check_door_set_patience(bench->door, 30);
    visit(bench, token, 7, false, &reading); /* and then nothing */
    assert_int_equal(reading.got.length, 0);
    buf_destroy(&reading.got);
}

/* The door goes while somebody stands in it. */
static void test_door_closes(void **state)
{
    struct bench *bench = *state;
    int fd = dial(check_door_port(bench->door));
    run_turns(bench->loop, 3);
    call(bench, "127.0.0.1", check_door_port(bench->door), token, 5000, 10000);
    run_turns(bench->loop, 20);
    check_door_destroy(bench->door);
    bench->door = NULL;
    wait_done(bench);
    assert_int_equal(bench->result.outcome, HVDRUN__PROBE_OUTCOME__PROBE_BROKEN);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        TEST(test_reached),
        TEST(test_an_interrupted_call),
        TEST(test_transfer),
        TEST(test_over_ipv6),
        TEST(test_a_door_with_another_token),
        TEST(test_nobody_listens),
        TEST(test_no_address),
        TEST(test_silence),
        TEST(test_a_stranger_that_speaks),
        TEST(test_a_transfer_that_nobody_counts),
        TEST(test_cancel),
        TEST(test_guests),
        TEST(test_door_closes),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
