/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunk goes where: windows, gaps, what a host may not say, and what a cache shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/stage/stage.h"

static uint64_t next(struct fanout_host *host, size_t window)
{
    uint64_t chunk;
    if (!fanout_host_next(host, window, &chunk))
        return UINT64_MAX;
    fanout_host_sent(host);
    return chunk;
}

static void test_one_host(void **state)
{
    const uint64_t pairs[] = {1, 2, 5, 1};
    struct fanout_host host = {.count = 0};
    struct fanout_cache cache = {.clock = 0};
    int block;
    (void)state;
    assert_int_equal(next(&host, 8), UINT64_MAX);
    assert_true(fanout_host_begin(&host, 3, pairs, 4, 6));
    assert_int_equal(host.total, 3);
    assert_int_equal(fanout_host_run(&host, 8, &cache), 2);
    assert_int_equal(fanout_host_run(&host, 1, &cache), 1);
    assert_null(fanout_cache_put(&cache, 3, 2, &block));
    assert_int_equal(fanout_host_run(&host, 8, &cache), 1);
    cache = (struct fanout_cache){.clock = 0};
    assert_int_equal(next(&host, 2), 1);
    assert_int_equal(fanout_host_run(&host, 8, &cache), 1);
    assert_int_equal(next(&host, 2), 2);
    assert_int_equal(next(&host, 2), UINT64_MAX);
    assert_false(fanout_host_taken(&host, 3));
    assert_true(fanout_host_taken(&host, 1));
    assert_false(fanout_host_taken(&host, 0));
    assert_int_equal(next(&host, 2), 5);
    assert_true(fanout_host_taken(&host, 3));
    assert_int_equal(next(&host, 2), UINT64_MAX);
    fanout_host_clear(&host);
}

static void expect_bad(const uint64_t *pairs, size_t count)
{
    struct fanout_host host = {.count = 0};
    assert_false(fanout_host_begin(&host, 0, pairs, count, 6));
    fanout_host_clear(&host);
}

static void test_bad_ranges(void **state)
{
    struct fanout_host host = {.count = 0};
    (void)state;
    expect_bad((const uint64_t[]){1}, 1);
    expect_bad((const uint64_t[]){1, 0}, 2);
    expect_bad((const uint64_t[]){5, 2}, 2);
    expect_bad((const uint64_t[]){6, 1}, 2);
    expect_bad((const uint64_t[]){1, UINT64_MAX}, 2);
    expect_bad((const uint64_t[]){2, 1, 1, 1}, 4);
    expect_bad((const uint64_t[]){1, 2, 2, 1}, 4);
    assert_true(fanout_host_begin(&host, 0, NULL, 0, 0)); /* it has all */
    fanout_host_clear(&host);
}

static void test_window(void **state)
{
    (void)state;
    assert_int_equal(fanout_window(0), STAGE_WINDOW);
    assert_int_equal(fanout_window(1), STAGE_WINDOW);
    assert_int_equal(fanout_window(64), 4);
    assert_int_equal(fanout_window(5000), 1);
}

static void test_cache(void **state)
{
    static char blocks[FANOUT_SLOTS + 1];
    struct fanout_cache cache = {.clock = 0};
    (void)state;
    assert_null(fanout_cache_get(&cache, 0, 0));
    for (size_t i = 0; i < FANOUT_SLOTS; i++)
        assert_null(fanout_cache_put(&cache, 0, i, &blocks[i]));
    assert_ptr_equal(fanout_cache_get(&cache, 0, 0), &blocks[0]); /* now it is the newest */
    assert_null(fanout_cache_get(&cache, 1, 0));
    assert_ptr_equal(fanout_cache_put(&cache, 1, 0, &blocks[FANOUT_SLOTS]), &blocks[1]);
    assert_ptr_equal(fanout_cache_get(&cache, 1, 0), &blocks[FANOUT_SLOTS]);
    assert_ptr_equal(fanout_cache_get(&cache, 0, 0), &blocks[0]);
    assert_null(fanout_cache_get(&cache, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_host),
                                       cmocka_unit_test(test_bad_ranges),
                                       cmocka_unit_test(test_window), cmocka_unit_test(test_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
