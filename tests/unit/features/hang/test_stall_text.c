/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of a rank only say that ranks wait for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/stall_lines.h"

#define FIRST                                                                                    \
    "[2026-11-23 10:11:12.131415: W /tmp/horovod/common/stall_inspector.cc:107] One or more "    \
    "tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "  \
    "waiting for remainder of ranks for more than 60 seconds. This may indicate that different " \
    "ranks are trying to submit different tensors or that only subset of ranks is submitting "   \
    "tensors, which will cause deadlock. "

static bool takes(struct stall_text *text, const char *line)
{
    return stall_text_line(text, line, strlen(line));
}

static void test_a_warning_of_horovod(void **state)
{
    (void)state;
    struct stall_text text = {.count = 0};
    for (int round = 0; round < 2; round++) {
        assert_true(takes(&text, FIRST));
        assert_true(takes(&text, ""));
        assert_true(takes(&text, "Missing ranks:"));
        assert_true(takes(&text, "2: [allreduce.grad.1, allreduce.grad.2 ...]"));
        assert_true(takes(&text, "14: [allreduce.grad.1]"));
        assert_int_equal(text.count, 2);
        assert_int_equal(text.missing[0], 2);
        assert_int_equal(text.missing[1], 14);
        assert_string_equal(text.name, "allreduce.grad.1");
    }
    assert_false(takes(&text, "step 12"));
    assert_false(takes(&text, "3: [allreduce.grad.1]")); /* the list is over */
    assert_false(takes(&text, ""));
    assert_int_equal(text.count, 2); /* until the next one */
}

static void test_other_lines(void **state)
{
    (void)state;
    struct stall_text text = {.count = 0};
    const char *others[] = {
        "",         "Missing ranks:",       "2: [x]", "libhvd: warning: the timeline",
        "loss 2.3", "libhvd: warning: rank"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(takes(&text, others[i]));
    assert_int_equal(text.count, 0);
    assert_true(
        takes(&text, "libhvd: warning: ranks 0-2 wait for rank 3 in allreduce 'x', for 60 s"));
    assert_int_equal(text.count, 0);
}

/* The rank chose these bytes. */
static void test_lines_that_are_broken(void **state)
{
    (void)state;
    struct stall_text text = {.count = 0};
    assert_true(takes(&text, FIRST));
    assert_true(takes(&text, "Missing ranks:"));
    assert_true(takes(&text, "7: ["));
    assert_string_equal(text.name, "");
    assert_true(takes(&text, "7: [again]"));
    assert_true(takes(&text, "6: [before]"));
    assert_int_equal(text.count, 1);
    for (int rank = 10; rank < 1000; rank++) {
        char line[40];
        assert_true(
            stall_text_line(&text, line, (size_t)snprintf(line, sizeof(line), "%d: [x]", rank)));
    }
    assert_int_equal(text.count, STALL_TEXT_RANKS);
    assert_false(takes(&text, "12345678: [x]"));
    assert_true(takes(&text, FIRST "Missing ranks:")); /* on one line */
    assert_true(takes(&text, "1: [x"));
    assert_string_equal(text.name, "x");
    char name[1000] = "0: [";
    memset(name + 4, 'n', sizeof(name) - 4);
    assert_true(takes(&text, FIRST));
    assert_true(takes(&text, "Missing ranks:"));
    assert_true(stall_text_line(&text, name, sizeof(name)));
    assert_int_equal(strlen(text.name), STALL_TEXT_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_warning_of_horovod),
        cmocka_unit_test(test_other_lines),
        cmocka_unit_test(test_lines_that_are_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
