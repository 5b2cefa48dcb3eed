/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of torch 2.11 on two H200, and of older versions as others have published them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/stall_lines.h"

static void expect(const char *line, int64_t group, int64_t enqueued, int64_t completed)
{
    struct watchdog_state state;
    assert_true(watchdog_read(line, strlen(line), &state));
    assert_int_equal(state.group, group);
    assert_int_equal(state.enqueued, enqueued);
    assert_int_equal(state.completed, completed);
}

static void expect_none(const char *line)
{
    struct watchdog_state state;
    assert_false(watchdog_read(line, strlen(line), &state));
}

static void test_lines(void **state)
{
    (void)state;
    expect("[rank0]:[E1123 01:05:46.763255523 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID "
           "0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 1799 PG "
           "status: last enqueued work: 1799, last completed work: 1798",
           0, 1799, 1798);
    expect("[rank1]:[E1123 01:05:51.456120165 ProcessGroupNCCL.cpp:1914] [PG ID 12 PG GUID "
           "3(tensor) Rank 1] Received a dump signal due to a collective timeout from  rank 0 and "
           "we will try our best to dump the debug info. Last enqueued NCCL work: 1798, last "
           "completed NCCL work: 1798.This is most likely caused by incorrect usages of "
           "collectives",
           12, 1798, 1798);
    expect(
        "[rank3]:[E709 10:00:00.1 ProcessGroupNCCL.cpp:607] [PG 2 (default_pg) Rank 3] Exception "
        "(either an error or timeout) detected by watchdog at work: 31, last enqueued NCCL "
        "work: 58, last completed NCCL work: 30.",
        2, 58, 30);
    expect("[rank3]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 3] Timeout at NCCL work: 7, last "
           "enqueued NCCL work: 8, last completed NCCL work: 76280750235782912.",
           0, 8, -1);
    expect("last enqueued work: 8, last started work: -1, last completed work: 7", 0, 8, 7);
    expect("last enqueued work: 8, last completed work: 9", 0, 8, -1);
}

static void test_other_lines(void **state)
{
    (void)state;
    struct watchdog_state found;
    expect_none("");
    expect_none("last enqueued work: ");
    expect_none("last enqueued work: -1");
    expect_none("last enqueued work: x");
    expect_none("last enqueued work: 76280750235782912");
    expect_none("[PG ID 0 PG GUID 0(default_pg) Rank 0] First PG on this rank to signal dumping.");
    assert_true(watchdog_read("last enqueued work: 123", 21, &found));
    assert_int_equal(found.enqueued, 1); /* not beyond its end */
}

static void add(struct watchdog_rank *rank, int64_t group, int64_t enqueued)
{
    watchdog_rank_add(rank, &(struct watchdog_state){group, enqueued, -1});
}

static void test_groups(void **state)
{
    (void)state;
    struct watchdog_rank ranks[4] = {{.count = 0}};
    int64_t enqueued[4];
    assert_false(watchdog_compare(ranks, 4, enqueued));
    for (int i = 0; i < 4; i++) {
        add(&ranks[i], 0, 100);
        add(&ranks[i], i < 2 ? 1 : 2, i < 2 ? 5 : 700); /* two groups, each with its own numbers */
    }
    assert_false(watchdog_compare(ranks, 4, enqueued));
    assert_int_equal(enqueued[0], -1);
    add(&ranks[3], 2, 699); /* the last one counts */
    assert_true(watchdog_compare(ranks, 4, enqueued));
    assert_int_equal(enqueued[0], -1);
    assert_int_equal(enqueued[2], 700);
    assert_int_equal(enqueued[3], 699);
    add(&ranks[1], 0, 99); /* more ranks have written of this group */
    assert_true(watchdog_compare(ranks, 4, enqueued));
    assert_int_equal(enqueued[1], 99);
    assert_int_equal(enqueued[3], 100);
    for (int i = 0; i < 2 * WATCHDOG_GROUPS; i++)
        add(&ranks[0], i, i);
    assert_int_equal(ranks[0].count, WATCHDOG_GROUPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_other_lines),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
