/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/binding/topology.h"

static void expect(const char *list, const char *back)
{
    struct cpu_mask mask = {0};
    struct buf text AUTO_BUF = BUF_INIT(4096);
    cpu_mask_set_list(&mask, list);
    assert_int_equal(mask.bytes % sizeof(unsigned long), 0);
    assert_int_equal(cpu_mask_list(&mask, &text), 0);
    assert_string_equal(buf_text(&text), back);
    cpu_mask_clear(&mask);
}

static void test_lists(void **state)
{
    (void)state;
    expect("", "");
    expect("0", "0");
    expect("0-3,8", "0-3,8");
    expect("8,1,0\n", "0-1,8");
    expect("63-64,8191", "63-64,8191");
    expect("rubbish", "");
    expect("1,x,3", "1");
    expect("2-", "2");
    expect("5-3", "");
    expect("65535,65536,99999999999999999999", "65535");
}

static void test_members(void **state)
{
    (void)state;
    struct cpu_mask mask = {0};
    assert_int_equal(cpu_mask_count(&mask), 0);
    assert_false(cpu_mask_has(&mask, 0));
    cpu_mask_set(&mask, 130);
    cpu_mask_set(&mask, 2);
    cpu_mask_set(&mask, 2);
    cpu_mask_set(&mask, -1);
    cpu_mask_set(&mask, 1 << 20);
    assert_int_equal(cpu_mask_count(&mask), 2);
    assert_true(cpu_mask_has(&mask, 130) && cpu_mask_has(&mask, 2));
    assert_false(cpu_mask_has(&mask, 131) || cpu_mask_has(&mask, -1));
    assert_false(cpu_mask_has(&mask, 100000));
    struct buf small AUTO_BUF = BUF_INIT(3);
    assert_int_not_equal(cpu_mask_list(&mask, &small), 0);
    cpu_mask_clear(&mask);
    cpu_mask_clear(&mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_members)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
