/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/helpers.h"
#include "loop_fixture.h"

struct fixture {
    struct loop *loop;
    struct stderr_pipe pipe;
    int program; /* the end that a program would write to */
    struct buf lines;
    int ended;
};

static void on_line(void *context, const char *line)
{
    struct fixture *f = context;
    buf_printf(&f->lines, "%s|", line);
}

static void on_end(void *context)
{
    struct fixture *f = context;
    assert_int_equal(f->pipe.fd, -1);
    f->ended++;
    loop_stop(f->loop);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    *f = (struct fixture){.loop = loop_create(NULL), .pipe = STDERR_PIPE_INIT};
    buf_init(&f->lines, 1 << 16);
    f->program = stderr_pipe_open(&f->pipe, f->loop, on_line, on_end, f);
    *state = f;
    return f->program >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    stderr_pipe_close(&f->pipe);
    fd_close(&f->program);
    loop_destroy(f->loop);
    buf_destroy(&f->lines);
    free(f);
    return 0;
}

static void say(const struct fixture *f, const char *text)
{
    assert_int_equal(fd_write_all(f->program, text, strlen(text)), 0);
}

static void test_lines_until_the_end(void **state)
{
    struct fixture *f = *state;
    say(f, "one\ntwo\nunfini");
    run_turns(f->loop, 3);
    assert_string_equal(buf_text(&f->lines), "one|two|");
    assert_string_equal(f->pipe.lines.last, "two");
    assert_int_equal(f->ended, 0);
    say(f, "shed");
    fd_close(&f->program);
    run_loop(f->loop);
    assert_string_equal(buf_text(&f->lines), "one|two|unfinished|");
    assert_string_equal(f->pipe.lines.last, "unfinished");
    run_turns(f->loop, 3);
    assert_int_equal(f->ended, 1);
}

static void test_reads_at_once(void **state)
{
    struct fixture *f = *state;
    stderr_pipe_read(&f->pipe); /* nothing there: it does not wait */
    assert_string_equal(buf_text(&f->lines), "");
    say(f, "now\n");
    stderr_pipe_read(&f->pipe);
    assert_string_equal(buf_text(&f->lines), "now|");
}

static void test_closed_by_us(void **state)
{
    struct fixture *f = *state;
    say(f, "said\n");
    run_turns(f->loop, 3);
    say(f, "too late\n");
    stderr_pipe_close(&f->pipe);
    run_turns(f->loop, 3);
    stderr_pipe_read(&f->pipe);
    assert_string_equal(buf_text(&f->lines), "said|");
    assert_string_equal(f->pipe.lines.last, "said"); /* the lines stay */
    assert_int_equal(f->ended, 0);
}

static void test_without_callbacks(void **state)
{
    struct fixture *f = *state;
    stderr_pipe_close(&f->pipe);
    fd_close(&f->program);
    f->program = stderr_pipe_open(&f->pipe, f->loop, NULL, NULL, NULL);
    say(f, "a\nb\n");
    fd_close(&f->program);
    while (f->pipe.fd >= 0)
        run_turns(f->loop, 1);
    assert_string_equal(f->pipe.lines.last, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_until_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_by_us, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_callbacks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
