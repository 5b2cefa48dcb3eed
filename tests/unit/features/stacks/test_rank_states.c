/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "features/stacks/look_driver_test.h"

#define HANGS \
    ": sleeping, waits in futex_wait, calls futex\n    kernel stack: futex_wait < do_futex"

static void add(struct rank_states *states, int rank, const char *host, const char *name,
                const char *what)
{
    char text[256];
    snprintf(text, sizeof(text), "pid %d (%s)%s", 1000 + rank, name, what);
    rank_states_add(states, rank, host, text);
}

static void expect(struct rank_states *states, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(100000);
    rank_states_text(states, &text);
    assert_string_equal(buf_text(&text), wanted);
    rank_states_destroy(states);
}

static void test_nothing(void **state)
{
    (void)state;
    expect(rank_states_create(), "");
    rank_states_destroy(NULL);
}

static void test_one(void **state)
{
    (void)state;
    struct rank_states *states = rank_states_create();
    rank_states_add(states, 3, "a", "pid 7 (sh): sleeping");
    expect(states, "hvdrun: rank 3 on a: pid 7 (sh): sleeping\n");
}

/* The answers of the nodes come in any order. */
static void test_equal_ranks_are_shown_once(void **state)
{
    (void)state;
    struct rank_states *states = rank_states_create();
    for (int rank = 63; rank >= 32; rank--)
        add(states, rank, "b", "python3", HANGS);
    for (int rank = 0; rank < 32; rank++)
        add(states, rank, "a", "python3", rank == 5 ? ": running" : HANGS);
    expect(states, "hvdrun: ranks 0-4,6-63 do the same, here rank 0 on a: pid 1000 (python3)" HANGS
                   "\nhvdrun: rank 5 on a: pid 1005 (python3): running\n");
}

static void test_what_makes_ranks_different(void **state)
{
    (void)state;
    struct rank_states *states = rank_states_create();
    rank_states_add(states, 3, "a", "pid 7 (sh): sleeping\n  pid 8 (sleep): sleeping");
    rank_states_add(states, 1, "a", "pid 17 (sh): sleeping\n  pid 18 (sleep): sleeping");
    rank_states_add(states, 0, "a", "pid 27 (sh): sleeping\n  pid 28 (sleep): stopped");
    rank_states_add(states, 2, "a", "pid 37 (sh): sleeping");
    rank_states_add(states, 4, "a", "exited");
    expect(states, "hvdrun: rank 0 on a: pid 27 (sh): sleeping\n  pid 28 (sleep): stopped\n"
                   "hvdrun: ranks 1,3 do the same, here rank 1 on a: pid 17 (sh): sleeping\n"
                   "  pid 18 (sleep): sleeping\n"
                   "hvdrun: rank 2 on a: pid 37 (sh): sleeping\n"
                   "hvdrun: rank 4 on a: exited\n");
}

static void test_many_different_ranks(void **state)
{
    (void)state;
    struct rank_states *states = rank_states_create();
    struct buf text AUTO_BUF = BUF_INIT(100000);
    char what[64];
    for (int rank = 0; rank < 64; rank++) {
        snprintf(what, sizeof(what), ": sleeping, calls c%d\n    kernel stack: x", rank);
        add(states, rank, "a", "sh", what);
    }
    rank_states_text(states, &text);
    int lines = 0;
    for (const char *at = buf_text(&text); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, RANK_STATES_LINES + 1);
    assert_non_null(strstr(buf_text(&text), "hvdrun: rank 19 on a: "));
    assert_non_null(
        strstr(buf_text(&text), "hvdrun: ranks 20-63 are not shown, to keep this list short\n"));
    rank_states_destroy(states);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_equal_ranks_are_shown_once),
        cmocka_unit_test(test_what_makes_ranks_different),
        cmocka_unit_test(test_many_different_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
