/* SPDX-License-Identifier: Apache-2.0 */
/* --stage-keep: what it may be, and which copies go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "features/stage/store.h"

#define DAY 86400000

static void expect_keep(const char *text, uint64_t bytes, int64_t age_ms)
{
    struct stage_keep keep;
    assert_int_equal(stage_keep_parse(text, &keep, NULL), 0);
    assert_int_equal(keep.bytes, bytes);
    assert_int_equal(keep.age_ms, age_ms);
}

static void test_words(void **state)
{
    static const char *const bad[] = {"", "5", "G", "-1G", "1X", "1G:", "1G:x", "1.5G", "1G:1d:2"};
    struct stage_keep keep;
    (void)state;
    expect_keep("0", 0, 7 * DAY);
    expect_keep("32G", (uint64_t)32 << 30, 7 * DAY);
    expect_keep("1K:1h", 1024, 3600000);
    expect_keep("2T:1d", (uint64_t)2 << 40, DAY);
    expect_keep(STAGE_KEEP_USUAL, (uint64_t)32 << 30, 7 * DAY);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(stage_keep_parse(bad[i], &keep, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
    }
}

static void test_choice(void **state)
{
    const struct stage_keep keep = {100, 1000};
    struct stage_kept copies[] = {{.bytes = 40, .used_ms = 5000},
                                  {.bytes = 40, .used_ms = 4500},
                                  {.bytes = 40, .used_ms = 4200, .in_use = true},
                                  {.bytes = 1, .used_ms = 3999}};
    (void)state;
    stage_keep_choose(&keep, copies, 4, 0, 5000);
    assert_true(copies[3].goes); /* too old */
    assert_true(copies[1].goes); /* the least recently used that may go */
    assert_false(copies[0].goes);
    assert_false(copies[2].goes);
    stage_keep_choose(&keep, copies, 4, 20, 4999);
    assert_false(copies[0].goes);
    assert_true(copies[1].goes);
    stage_keep_choose(&keep, copies, 4, 21, 4999);
    assert_true(copies[0].goes);
    stage_keep_choose(&keep, copies, 4, 1000, 4999);
    assert_false(copies[2].goes); /* it counts, and stays */
    stage_keep_choose(&keep, copies, 0, 1000, 4999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
