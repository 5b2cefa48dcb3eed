/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "driver/tell/stalls.h"

static struct stall_ranks ranks(int first, int count, bool more)
{
    struct stall_ranks list = {mem_array((size_t)count + 1, sizeof(int)), count, more};
    for (int i = 0; i < count; i++)
        list.list[i] = first + i;
    return list;
}

static struct stall stall(int seat, uint32_t set, const char *name)
{
    return (struct stall){.seat = seat,
                          .set = set,
                          .seconds = 60,
                          .operation = mem_strdup("allreduce"),
                          .name = mem_strdup(name),
                          .waiting = ranks(0, 3, false),
                          .missing = ranks(3, 1, false),
                          .since_ns = 1000};
}

static void expect_text(struct stall one, const char *text)
{
    AUTO_BUF struct buf line = BUF_INIT(4096);
    stall_text(&one, &line);
    assert_string_equal(buf_text(&line), text);
    stall_clear(&one);
}

static void test_text(void **state)
{
    (void)state;
    expect_text(stall(0, 0, "grad.17"),
                "ranks 0-2 wait for rank 3 in allreduce 'grad.17', for 60 s");
    struct stall one = stall(0, 2, "x");
    one.waiting.count = 1;
    one.missing.count = 0;
    one.others = 1;
    expect_text(one, "rank 0 waits for other ranks in allreduce 'x' of process set 2, for 60 s "
                     "(and in 1 more operation)");
    one = stall(0, 0, "x");
    one.others = 4;
    one.waiting.more = true;
    expect_text(one, "ranks 0-2,... wait for rank 3 in allreduce 'x', for 60 s "
                     "(and in 4 more operations)");
    one = stall(0, 0, "");
    one.operation[0] = '\0';
    one.waiting.count = 0;
    expect_text(one, "some ranks wait for rank 3 in operation '', for 60 s");
}

/* After eight ranges the text has its own dots. */
static void test_text_of_many_ranks(void **state)
{
    (void)state;
    struct stall one = stall(0, 0, "x");
    free(one.waiting.list);
    one.waiting = ranks(0, 40, true);
    for (int i = 0; i < 40; i++)
        one.waiting.list[i] = 2 * i;
    expect_text(one, "ranks 0,2,4,6,8,10,12,14,... wait for rank 3 in allreduce 'x', for 60 s");
}

static void test_text_of_a_long_name(void **state)
{
    (void)state;
    AUTO_BUF struct buf line = BUF_INIT(4096);
    char name[1000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct stall one = stall(0, 0, name);
    stall_text(&one, &line);
    assert_in_range(line.length, 100, 300);
    assert_non_null(strstr(buf_text(&line), "nnn...', for 60 s"));
    stall_clear(&one);
}

static void add(struct stall_list *list, int seat, uint32_t set, const char *name)
{
    struct stall one = stall(seat, set, name);
    stall_list_add(list, &one);
}

static void test_one_for_each_seat_and_set(void **state)
{
    (void)state;
    struct stall_list *list = stall_list_create();
    add(list, 0, 0, "a");
    struct stall again = stall(0, 0, "a");
    again.seconds = 120;
    again.since_ns = 9000;
    const struct stall *kept = stall_list_add(list, &again);
    assert_int_equal(kept->seconds, 120);
    assert_int_equal(kept->since_ns, 1000); /* it is the same one */
    assert_null(stall_list_at(list, 1));
    add(list, 0, 1, "a");
    add(list, 0, 0, "b"); /* another one: the first must be over */
    assert_true(stall_list_at(list, 0)->over);
    assert_false(stall_list_at(list, 1)->over);
    assert_false(stall_list_at(list, 2)->over);
    stall_list_over(list, 0, 0);
    stall_list_over(list, 5, 0); /* nothing */
    assert_true(stall_list_at(list, 2)->over);
    add(list, 0, 0, "b"); /* again, later */
    assert_false(stall_list_at(list, 3)->over);
    stall_list_all_over(list);
    for (int i = 0; i < 4; i++)
        assert_true(stall_list_at(list, i)->over);
    assert_null(stall_list_at(list, 4));
    assert_null(stall_list_at(list, -1));
    stall_list_destroy(list);
    stall_list_destroy(NULL);
}

/* A worker repeats the report as long as the stall lasts, and may not say when it ends. */
static void test_reports_that_do_not_come_again(void **state)
{
    (void)state;
    const int64_t second = 1000000000;
    struct stall_list *list = stall_list_create();
    struct stall one = stall(0, 0, "a");
    one.reported_ns = 100 * second;
    const struct stall *kept = stall_list_add(list, &one);
    assert_true(stall_lasts(kept, 101 * second));
    assert_true(stall_lasts(kept, 221 * second));
    assert_false(stall_lasts(kept, 222 * second));
    one = stall(0, 0, "a");
    one.seconds = 120;
    one.reported_ns = 160 * second;
    kept = stall_list_add(list, &one);
    assert_int_equal(kept->period, 60);
    assert_true(stall_lasts(kept, 281 * second));
    assert_false(stall_lasts(kept, 282 * second));
    stall_list_over(list, 0, 0);
    assert_false(stall_lasts(kept, 161 * second));
    stall_list_destroy(list);
}

static void test_the_list_is_bounded(void **state)
{
    (void)state;
    struct stall_list *list = stall_list_create();
    for (int i = 0; i < STALLS_MAX; i++)
        add(list, i, 0, "a");
    stall_list_over(list, 5, 0);
    add(list, 1000, 0, "a"); /* takes the place of what is over */
    assert_int_equal(stall_list_at(list, 4)->seat, 4);
    assert_int_equal(stall_list_at(list, 5)->seat, 6);
    assert_int_equal(stall_list_at(list, STALLS_MAX - 1)->seat, 1000);
    add(list, 1001, 0, "a"); /* nothing is over: the oldest goes */
    assert_int_equal(stall_list_at(list, 0)->seat, 1);
    assert_int_equal(stall_list_at(list, STALLS_MAX - 1)->seat, 1001);
    assert_null(stall_list_at(list, STALLS_MAX));
    stall_list_destroy(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_of_many_ranks),
        cmocka_unit_test(test_text_of_a_long_name),
        cmocka_unit_test(test_one_for_each_seat_and_set),
        cmocka_unit_test(test_reports_that_do_not_come_again),
        cmocka_unit_test(test_the_list_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
