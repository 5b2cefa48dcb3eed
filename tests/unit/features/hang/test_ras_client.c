/* SPDX-License-Identifier: Apache-2.0 */
/* Against TCP servers in the same loop, that behave well and badly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/hang/ras_client.h"
#include "loop_fixture.h"

#define QUESTION "CLIENT PROTOCOL 2\nTIMEOUT 3\nSET FORMAT json\nSTATUS\n"
#define PEERS 4

struct bench {
    struct loop *loop;
    struct ras_client *client;
    int listener, port;
    struct loop_fd *arrivals, *questions[PEERS];
    int peers[PEERS], count;
    int silent; /* so many connections get no answer */
    bool cut;   /* reset instead of an end */
    int done;
    char *answer; /* NULL: none */
};

static void on_done(void *context, const char *text, size_t length)
{
    struct bench *bench = context;
    bench->done++;
    bench->answer = text == NULL ? NULL : mem_strndup(text, length);
    loop_stop(bench->loop);
}

static int number_of(const struct bench *bench, const struct loop_fd *watch)
{
    for (int i = 0; i < bench->count; i++) {
        if (bench->questions[i] == watch)
            return i;
    }
    return -1;
}

static void answer(struct bench *bench, int number)
{
    char bytes[256] = "";
    const struct linger reset = {.l_onoff = 1};
    ssize_t got = fd_read(bench->peers[number], bytes, sizeof(bytes) - 1);
    loop_fd_watch(bench->questions[number], 0);
    assert_int_equal(got, strlen(QUESTION));
    assert_string_equal(bytes, QUESTION);
    if (number < bench->silent)
        return;
    assert_int_equal(fd_send_all(bench->peers[number], "OK\n{}", 5), 0);
    if (bench->cut)
        setsockopt(bench->peers[number], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    fd_close(&bench->peers[number]);
}

static struct bench *only; /* of the test that runs */

static void asked(void *context, int what)
{
    (void)what;
    answer(only, number_of(only, *(struct loop_fd **)context));
}

static void arrived(void *context, int what)
{
    struct bench *bench = context;
    (void)what;
    assert_true(bench->count < PEERS);
    int number = bench->count++;
    bench->peers[number] = accept(bench->listener, NULL, NULL);
    bench->questions[number] =
        loop_fd_create(bench->loop, bench->peers[number], asked, &bench->questions[number]);
    loop_fd_watch(bench->questions[number], LOOP_READ);
}

static int open_bench(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    *bench = (struct bench){.loop = loop_create(NULL)};
    bench->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(bench->listener, PEERS), 0);
    assert_int_equal(getsockname(bench->listener, (struct sockaddr *)&address, &length), 0);
    bench->port = ntohs(address.sin_port);
    bench->arrivals = loop_fd_create(bench->loop, bench->listener, arrived, bench);
    loop_fd_watch(bench->arrivals, LOOP_READ);
    *state = only = bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    ras_client_destroy(bench->client);
    loop_fd_destroy(bench->arrivals);
    for (int i = 0; i < bench->count; i++) {
        loop_fd_destroy(bench->questions[i]);
        fd_close(&bench->peers[i]);
    }
    fd_close(&bench->listener);
    loop_destroy(bench->loop);
    free(bench->answer);
    free(bench);
    return 0;
}

static void ask(struct bench *bench, const char *host)
{
    char *address AUTO_FREE = mem_printf("%s:%d", host, bench->port);
    bench->client = ras_client_create(bench->loop, address, on_done, bench);
    assert_non_null(bench->client);
    assert_int_equal(bench->done, 0);
    run_loop(bench->loop);
    assert_int_equal(bench->done, 1);
}

static void test_an_answer(void **state)
{
    struct bench *bench = *state;
    ask(bench, "localhost");
    assert_string_equal(bench->answer, "OK\n{}");
}

/* A process that is stopped: the next connection may reach another one. */
static void test_one_is_silent(void **state)
{
    struct bench *bench = *state;
    bench->silent = 1;
    ask(bench, "127.0.0.1");
    assert_string_equal(bench->answer, "OK\n{}");
    assert_int_equal(bench->count, 2);
}

static void test_all_are_silent(void **state)
{
    struct bench *bench = *state;
    bench->silent = PEERS;
    ask(bench, "localhost");
    assert_null(bench->answer);
    assert_int_equal(bench->count, RAS_TRIES);
}

static void test_a_torn_answer(void **state)
{
    struct bench *bench = *state;
    bench->cut = true;
    ask(bench, "localhost");
    assert_null(bench->answer);
}

static void test_nobody(void **state)
{
    struct bench *bench = *state;
    loop_fd_destroy(bench->arrivals);
    bench->arrivals = NULL;
    fd_close(&bench->listener);
    ask(bench, "localhost");
    assert_null(bench->answer);
}

static void test_addresses(void **state)
{
    static const char *const wrong[] = {"",
                                        "localhost",
                                        "localhost:",
                                        "localhost:x",
                                        ":28028",
                                        "localhost:0",
                                        "[::1]",
                                        "host.example:1",
                                        "1.2.3:4",
                                        "localhost:65536",
                                        "[]:1",
                                        "[:1",
                                        "localhost:-1"};
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_null(ras_client_create(bench->loop, wrong[i], on_done, bench));
    struct ras_client *client = ras_client_create(bench->loop, "[::1]:28028", on_done, bench);
    assert_non_null(client);
    ras_client_destroy(client); /* nobody is called */
    run_turns(bench->loop, 3);
    assert_int_equal(bench->done, 0);
    ras_client_destroy(NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        CASE(test_an_answer),     CASE(test_one_is_silent), CASE(test_all_are_silent),
        CASE(test_a_torn_answer), CASE(test_nobody),        CASE(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
