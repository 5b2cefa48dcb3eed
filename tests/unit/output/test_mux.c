/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop has to come back for a line that waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/fd.h"
#include "output/mux.h"
#include "output/sink.h"
#include "output/terminal.h"

static void ignore(void *context)
{
    (void)context;
}

static void ignore_failure(void *context, struct output_target *target, int errnum)
{
    (void)context, (void)target, (void)errnum;
}

static void only_lines_that_wait_for_their_equals_are_due(void **state)
{
    (void)state;
    static const struct sink_ops ops = {.drained = ignore, .failed = ignore_failure};
    for (int collapse = 0; collapse < 2; collapse++) {
        struct loop *loop = loop_create(NULL);
        struct sink *sink = sink_create(loop, &ops, NULL);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct output_config config = {
            .ranks = 2, .raw_seat = -1, .collapse = collapse != 0, .out_fd = null, .err_fd = null};
        struct console *console = console_create(sink, &config);
        struct mux *mux = mux_create(sink, console, &config, NULL);
        assert_non_null(mux);
        assert_int_equal(mux_due_ms(mux), -1);
        if (collapse != 0) {
            mux_bytes(mux, 0, OUTPUT_STDOUT, "a\n", 2, 0, 1000);
            assert_true(mux_due_ms(mux) > 1000);
            mux_end(mux, 1, OUTPUT_STDOUT); /* nobody else can write this line now */
            assert_int_equal(mux_due_ms(mux), -1);
            mux_bytes(mux, 0, OUTPUT_STDERR, "b\n", 2, 0, 1000);
            assert_true(mux_due_ms(mux) > 1000);
        }
        mux_destroy(mux); /* what waits is forgotten */
        console_destroy(console);
        assert_true(sink_destroy(sink, 20000));
        fd_close(&null);
        loop_destroy(loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_lines_that_wait_for_their_equals_are_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
