/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_fixture.h"
#include "agent/input.h"

struct fixture {
    struct bench bench;
    struct input *input;
    int fd; /* where the worker reads, non-blocking */
};

static int setup(void **state)
{
    static struct fixture f;
    int ends[2];
    bench_open(&f.bench);
    if (fd_pipe(ends) < 0)
        return -1;
    f.fd = ends[0];
    fd_nonblock(f.fd);
    f.input = input_create(f.bench.loop, &f.bench.post, ends[1], HEARD_RANK, false);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    input_destroy(f->input);
    fd_close(&f->fd);
    bench_close(&f->bench);
    return 0;
}

static void give(struct fixture *f, const char *text)
{
    input_bytes(f->input, (const uint8_t *)text, strlen(text));
}

static void test_bytes_and_end(void **state)
{
    struct fixture *f = *state;
    char chunk[64];
    run_turns(f->bench.loop, 3);
    assert_int_equal(f->bench.heard.stdin_credit, INPUT_WINDOW);
    give(f, "hello ");
    give(f, "worker");
    assert_int_equal(fd_read(f->fd, chunk, sizeof(chunk)), 12);
    assert_memory_equal(chunk, "hello worker", 12);
    assert_int_equal(fd_read(f->fd, chunk, sizeof(chunk)), -1); /* open still */
    input_bytes(f->input, NULL, 0);
    assert_int_equal(fd_read(f->fd, chunk, sizeof(chunk)), 0);
    give(f, "after the end"); /* goes nowhere */
    input_bytes(f->input, NULL, 0);
    run_turns(f->bench.loop, 3);
    assert_int_equal(f->bench.heard.credit_count, 1);
    assert_false(f->bench.heard.stdin_closed);
}

/* A worker that does not read is given what the pipe and one window take; the end of file comes
 * behind all of it. */
static void test_a_worker_that_does_not_read(void **state)
{
    struct fixture *f = *state;
    struct heard *heard = &f->bench.heard;
    uint64_t sent = 0, got = 0;
    run_turns(f->bench.loop, 3);
    while (sent < heard->stdin_credit) { /* as a driver does */
        uint8_t bytes[1000];
        size_t length = heard->stdin_credit - sent < 1000 ? heard->stdin_credit - sent : 1000;
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)((sent + i) % 251);
        input_bytes(f->input, bytes, length);
        sent += length;
        run_turns(f->bench.loop, 3);
        assert_true(sent < 8 * INPUT_WINDOW); /* it stops */
    }
    input_bytes(f->input, NULL, 0);
    run_turns(f->bench.loop, 5);
    int credits = heard->credit_count;
    assert_true(sent > INPUT_WINDOW);
    for (;;) {
        uint8_t bytes[777];
        ssize_t length = fd_read(f->fd, bytes, sizeof(bytes));
        if (length == 0)
            break;
        if (length < 0) {
            assert_int_equal(errno, EAGAIN);
            run_turns(f->bench.loop, 2);
            continue;
        }
        for (ssize_t i = 0; i < length; i++)
            assert_int_equal(bytes[i], (got + (uint64_t)i) % 251);
        got += (uint64_t)length;
        run_turns(f->bench.loop, 1);
    }
    assert_int_equal(got, sent);
    assert_true(heard->credit_count >= credits);
}

/* Two megabytes under credit, byte-exact. */
static void test_credit_goes_on(void **state)
{
    struct fixture *f = *state;
    struct heard *heard = &f->bench.heard;
    const uint64_t total = 2 << 20;
    uint64_t sent = 0, got = 0;
    run_turns(f->bench.loop, 3);
    while (got < total) {
        uint8_t bytes[5000];
        uint64_t room = heard->stdin_credit - sent;
        size_t length = room < sizeof(bytes) ? room : sizeof(bytes);
        if (length > total - sent)
            length = total - sent;
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)((sent + i) % 251);
        if (length > 0)
            input_bytes(f->input, bytes, length);
        sent += length;
        ssize_t read_now = fd_read(f->fd, bytes, 4000);
        for (ssize_t i = 0; i < read_now; i++)
            assert_int_equal(bytes[i], (got + (uint64_t)i) % 251);
        got += read_now > 0 ? (uint64_t)read_now : 0;
        run_turns(f->bench.loop, 2);
        assert_true(length > 0 || read_now > 0 || sent == total); /* never stuck */
    }
    assert_true(heard->stdin_credit >= total);
    assert_true(heard->credit_count <
                2 * (int)(total / (INPUT_WINDOW / 2))); /* not for each byte */
}

static void test_reader_closes(void **state)
{
    struct fixture *f = *state;
    fd_close(&f->fd);
    give(f, "nobody reads this");
    give(f, "nor this");
    input_bytes(f->input, NULL, 0);
    run_turns(f->bench.loop, 3);
    assert_true(f->bench.heard.stdin_closed);
    assert_int_equal(f->bench.heard.credit_count, 2); /* the first window and the news, once */
}

static void test_reader_closes_while_bytes_wait(void **state)
{
    struct fixture *f = *state;
    uint8_t *bytes = mem_alloc(INPUT_WINDOW);
    for (int i = 0; i < 2; i++)
        input_bytes(f->input, bytes, INPUT_WINDOW);
    run_turns(f->bench.loop, 3);
    assert_false(f->bench.heard.stdin_closed);
    fd_close(&f->fd);
    run_turns(f->bench.loop, 5);
    assert_true(f->bench.heard.stdin_closed);
    free(bytes);
}

/* A driver that ignores its credit loses the excess, and no memory is lost to it. */
static void test_beyond_the_credit(void **state)
{
    struct fixture *f = *state;
    uint8_t *bytes = mem_alloc(INPUT_WINDOW);
    uint64_t got = 0;
    for (int i = 0; i < 100; i++)
        input_bytes(f->input, bytes, INPUT_WINDOW);
    input_bytes(f->input, NULL, 0);
    for (;;) {
        ssize_t length = fd_read(f->fd, bytes, INPUT_WINDOW);
        if (length == 0)
            break;
        got += length > 0 ? (uint64_t)length : 0;
        run_turns(f->bench.loop, 2);
    }
    assert_true(got >= 2 * INPUT_WINDOW);
    assert_true(got <= 4 * INPUT_WINDOW);
    free(bytes);
}

static void test_destroy_with_bytes(void **state)
{
    struct fixture *f = *state;
    uint8_t *bytes = mem_alloc(INPUT_WINDOW);
    for (int i = 0; i < 2; i++)
        input_bytes(f->input, bytes, INPUT_WINDOW);
    input_destroy(f->input);
    f->input = NULL;
    run_turns(f->bench.loop, 3);
    input_destroy(NULL);
    free(bytes);
}

/* What a program in a terminal reads until its end of file. */
static void at_a_terminal(const char *const *pieces, const char *wanted)
{
    struct bench bench;
    int master, slave;
    char line[128];
    bench_open(&bench);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    struct input *input = input_create(bench.loop, &bench.post, master, HEARD_RANK, true);
    for (; *pieces != NULL; pieces++)
        input_bytes(input, (const uint8_t *)*pieces, strlen(*pieces));
    input_bytes(input, NULL, 0);
    input_bytes(input, (const uint8_t *)"late", 4);
    run_turns(bench.loop, 5);
    AUTO_BUF struct buf got = BUF_INIT(1000);
    ssize_t length = fd_read(slave, line, sizeof(line)); /* blocks when the end does not come */
    for (; length > 0; length = fd_read(slave, line, sizeof(line)))
        buf_append(&got, line, (size_t)length);
    assert_int_equal(length, 0);
    assert_string_equal(buf_text(&got), wanted);
    fd_nonblock(slave);
    assert_int_equal(fd_read(slave, line, sizeof(line)), -1); /* one end of file, not two */
    assert_int_equal(errno, EAGAIN);
    input_destroy(input);
    fd_close(&slave);
    bench_close(&bench);
}

static void test_end_at_a_terminal(void **state)
{
    (void)state;
    at_a_terminal((const char *const[]){"one\n", "two\n", NULL}, "one\ntwo\n");
    at_a_terminal((const char *const[]){NULL}, "");
    at_a_terminal((const char *const[]){"one\n", "no end of line", NULL}, "one\nno end of line");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_and_end),
        TEST(test_a_worker_that_does_not_read),
        TEST(test_credit_goes_on),
        TEST(test_reader_closes),
        TEST(test_reader_closes_while_bytes_wait),
        TEST(test_beyond_the_credit),
        TEST(test_destroy_with_bytes),
        cmocka_unit_test(test_end_at_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
