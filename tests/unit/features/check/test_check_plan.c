/* SPDX-License-Identifier: Apache-2.0 */
/* Which host tries to reach which other host, and in which round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/check/check_steps_driver.h"

#define MOST 300

/* What holds for every plan. */
static void expect_sound(const struct check_route *routes, size_t count, int rounds, int hosts)
{
    static bool busy[2 * MOST * 4][MOST];
    assert_true(rounds < (int)(sizeof(busy) / sizeof(busy[0])));
    memset(busy, 0, sizeof(busy));
    for (size_t i = 0; i < count; i++) {
        const struct check_route *route = &routes[i];
        assert_in_range(route->from, 0, hosts - 1);
        assert_in_range(route->to, 0, hosts - 1);
        assert_int_not_equal(route->from, route->to);
        assert_in_range(route->round, 0, rounds - 1);
        assert_false(busy[route->round][route->from]);
        assert_false(busy[route->round][route->to]);
        busy[route->round][route->from] = busy[route->round][route->to] = true;
        if (i > 0) { /* ordered, and none twice */
            const struct check_route *last = &routes[i - 1];
            assert_true(last->from < route->from ||
                        (last->from == route->from && last->to < route->to));
        }
    }
}

/* Each with each, in rounds that are at most half empty. */
static void test_all_pairs(void **state)
{
    (void)state;
    for (int hosts = 0; hosts <= CHECK_ALL_PAIRS; hosts++) {
        size_t count;
        int rounds;
        struct check_route *routes = check_plan(hosts, &count, &rounds);
        assert_int_equal(count, hosts == 0 ? 0 : (size_t)hosts * (size_t)(hosts - 1));
        expect_sound(routes, count, rounds, hosts);
        assert_true(rounds <= 4 * hosts);
        free(routes);
    }
}

static bool has(const struct check_route *routes, size_t count, int from, int to)
{
    for (size_t i = 0; i < count; i++) {
        if (routes[i].from == from && routes[i].to == to)
            return true;
    }
    return false;
}

/* Of many hosts each tries and is tried by those that are 1, 2, 4... away, both ways. */
static void test_many_hosts(void **state)
{
    static const int sizes[] = {65, 66, 100, 128, 200, 256, 299};
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t count;
        int rounds, hosts = sizes[s];
        struct check_route *routes = check_plan(hosts, &count, &rounds);
        expect_sound(routes, count, rounds, hosts);
        for (int i = 0; i < hosts; i++) {
            for (int step = 1; step <= hosts / 2; step *= 2) {
                assert_true(has(routes, count, i, (i + step) % hosts));
                assert_true(has(routes, count, (i + step) % hosts, i));
            }
        }
        assert_true(count <= (size_t)hosts * 2 * 9);
        free(routes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_many_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
