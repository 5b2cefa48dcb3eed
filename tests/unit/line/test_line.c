/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "line/line_fixture.h"

/* An agent that does what a test says. */
struct fixture {
    struct line_agent agent;
    struct line *line;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    line_agent_listen(&f->agent);
    f->line = line_open(f->agent.address, NULL);
    assert_non_null(f->line);
    line_agent_accept(&f->agent);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    line_close(f->line);
    line_agent_close(&f->agent);
    free(f);
    return 0;
}

static void say(const struct fixture *f, const struct line_packet *packet)
{
    line_agent_say(&f->agent, packet);
}

static void test_both_ways(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_EPOCH, .epoch = 4}, got;
    struct pollfd wait = {.fd = line_fd(f->line), .events = POLLIN};
    assert_int_equal(line_receive(f->line, &got, NULL), 0);
    say(f, &packet);
    assert_int_equal(poll(&wait, 1, 10000), 1);
    assert_int_equal(line_receive(f->line, &got, NULL), 1);
    assert_int_equal(got.type, LINE_EPOCH);
    assert_int_equal(got.epoch, 4);
    assert_int_equal(line_receive(f->line, &got, NULL), 0);

    uint8_t bytes[LINE_PACKET_MAX];
    packet = (struct line_packet){.type = LINE_PROGRESS, .operations = 12};
    assert_int_equal(line_send(f->line, &packet), 1);
    ssize_t length = recv(f->agent.peer, bytes, sizeof(bytes), 0);
    assert_true(length > 0);
    assert_int_equal(line_packet_get(bytes, (size_t)length, &got, NULL), 0);
    assert_int_equal(got.operations, 12);
}

static void test_the_agent_ends(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_PROGRESS}, got;
    struct error err = ERROR_INIT;
    close(f->agent.peer);
    f->agent.peer = -1;
    assert_int_equal(line_receive(f->line, &got, &err), -1);
    assert_string_not_equal(err.text, "");
    assert_int_equal(line_send(f->line, &packet), -1); /* and no SIGPIPE */
}

/* The caller is never held up: what does not fit is dropped. */
static void test_an_agent_that_does_not_read(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_PROGRESS};
    int sent = 1;
    for (int i = 0; i < 100000 && sent == 1; i++)
        sent = line_send(f->line, &packet);
    assert_int_equal(sent, 0);
}

static void test_rubbish(void **state)
{
    struct fixture *f = *state;
    struct line_packet got;
    struct error err = ERROR_INIT;
    static const uint8_t later[] = {LINE_VERSION, 77, 0, 0, 1, 2, 3};
    assert_int_equal(send(f->agent.peer, later, sizeof(later), 0), sizeof(later));
    say(f, &(struct line_packet){.type = LINE_EPOCH, .epoch = 2});
    assert_int_equal(line_receive(f->line, &got, NULL), 1); /* the first one is skipped */
    assert_int_equal(got.epoch, 2);
    assert_int_equal(send(f->agent.peer, "x", 1, 0), 1);
    assert_int_equal(line_receive(f->line, &got, &err), -1);
    assert_non_null(strstr(err.text, "cannot be read"));
}

static void test_a_packet_that_is_too_long(void **state)
{
    struct fixture *f = *state;
    struct line_packet got;
    uint8_t bytes[LINE_PACKET_MAX + 100] = {LINE_VERSION, LINE_EPOCH};
    assert_int_equal(send(f->agent.peer, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(line_receive(f->line, &got, NULL), -1);
}

static void test_children_do_not_get_it(void **state)
{
    struct fixture *f = *state;
    assert_true((fcntl(line_fd(f->line), F_GETFD) & FD_CLOEXEC) != 0);
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "@", "x", "/tmp/socket", "@a/b", "@a b", "@-x", "\n@x"};
    struct error err = ERROR_INIT;
    char longer[200] = "@";
    memset(longer + 1, 'x', sizeof(longer) - 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(line_open(bad[i], &err));
        assert_non_null(strstr(err.text, "not the address"));
    }
    assert_null(line_open(longer, &err));
    assert_null(line_open("@hvdrun-nobody-listens-here", &err));
    assert_non_null(strstr(err.text, "cannot connect"));
    line_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_agent_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_agent_that_does_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rubbish, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_packet_that_is_too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_children_do_not_get_it, setup, teardown),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
