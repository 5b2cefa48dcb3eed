/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of a rank are warnings of a stall inspector, and what they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/stall_lines.h"

#define SECOND INT64_C(1000000000)
#define WARNING                                                                                 \
    "W One or more tensors were submitted to be reduced, gathered or broadcasted by subset of " \
    "ranks\nMissing ranks:\n2: [grad\033.1]\n"

struct bench {
    struct stall_lines *lines;
    struct tail tail;
};

static int begin(void **state)
{
    static struct bench bench;
    bench = (struct bench){.lines = stall_lines_create()};
    *state = &bench;
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;
    stall_lines_destroy(bench->lines);
    stall_lines_destroy(NULL);
    tail_destroy(&bench->tail);
    return 0;
}

static void writes(struct bench *bench, const char *text)
{
    tail_add(&bench->tail, text, strlen(text), SECOND);
}

static uint64_t take(struct bench *bench, bool quiet, int64_t when_s)
{
    return stall_lines_take(bench->lines, 1, &bench->tail, quiet, when_s * SECOND);
}

static void test_a_warning_again_and_again(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(take(bench, true, 1), 0);
    for (uint64_t i = 1; i <= 200; i++) { /* more than the tail keeps */
        writes(bench, WARNING);
        assert_int_equal(take(bench, true, 1), i * strlen(WARNING));
        assert_int_equal(take(bench, true, 1), i * strlen(WARNING));
    }
    const struct stall_text *text = stall_lines_find(bench->lines, 2 * SECOND);
    assert_non_null(text);
    assert_int_equal(text->count, 1);
    assert_int_equal(text->missing[0], 2);
    assert_null(strchr(text->name, '\033')); /* a terminal may show it */
    assert_null(stall_lines_find(bench->lines, 200 * SECOND));
}

static void test_other_lines(void **state)
{
    struct bench *bench = *state;
    writes(bench, "step 1\n" WARNING "step 2\n");
    assert_int_equal(take(bench, true, 1), strlen(WARNING));
    writes(bench, "step 3");
    assert_int_equal(take(bench, true, 1), strlen(WARNING));
}

/* Where many lines come, nobody looks for warnings, and they count as output. */
static void test_a_job_that_is_not_quiet(void **state)
{
    struct bench *bench = *state;
    writes(bench, WARNING);
    assert_int_equal(take(bench, false, 1), 0);
    assert_int_equal(take(bench, true, 1), 0);
    for (int i = 0; i < 1000; i++)
        writes(bench, WARNING);
    assert_int_equal(take(bench, true, 1), 0);
    assert_null(stall_lines_find(bench->lines, SECOND));
}

static void test_lines_in_two_pieces(void **state)
{
    struct bench *bench = *state;
    writes(bench, "W One or more tensors were submitted to be reduced,");
    assert_int_equal(take(bench, true, 1), 0);
    writes(bench, " gathered or broadcasted by\n");
    assert_int_equal(take(bench, true, 1), 0);
}

static void test_another_worker_on_the_seat(void **state)
{
    struct bench *bench = *state;
    writes(bench, WARNING);
    assert_int_equal(take(bench, true, 1), strlen(WARNING));
    tail_destroy(&bench->tail);
    bench->tail = (struct tail){.total = 0};
    writes(bench, "x\n");
    assert_int_equal(take(bench, true, 1), 0);
    assert_null(stall_lines_find(bench->lines, SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_warning_again_and_again, begin, end),
        cmocka_unit_test_setup_teardown(test_other_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_that_is_not_quiet, begin, end),
        cmocka_unit_test_setup_teardown(test_lines_in_two_pieces, begin, end),
        cmocka_unit_test_setup_teardown(test_another_worker_on_the_seat, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
