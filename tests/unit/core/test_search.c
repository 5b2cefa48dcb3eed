/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/tuner.h"

static const struct search_axis axes[SEARCH_AXES] = {{12, 4}, {10, 2}};

/* One peak, and flat slopes. `noise`: in percent, from a fixed sequence. */
static double score_of(const int at[SEARCH_AXES], int top, int right, int noise, uint32_t *random)
{
    double distance = abs(at[0] - top) + abs(at[1] - right);
    *random = *random * 1664525u + 1013904223u;
    return (100 - 5 * distance) * (1 + noise * ((double)(*random >> 16 & 255) / 255 - 0.5) / 100);
}

static int run(struct search *search, int top, int right, int noise)
{
    uint32_t random = 7;
    int points = 0;
    for (; !search->ended; points++)
        search_score(search, score_of(search->at, top, right, noise, &random));
    return points;
}

static void test_it_finds_each_peak(void **state)
{
    (void)state;
    for (int top = 0; top < axes[0].end; top++)
        for (int right = 0; right < axes[1].end; right++) {
            struct search search;
            search_init(&search, axes, (int[]){11, 3}, 100);
            assert_in_range(run(&search, top, right, 0), 1, 40);
            assert_int_equal(search.at[0], top);
            assert_int_equal(search.at[1], right);
            assert_true(search.best_score > 99);
        }
}

/* With few points and noise it is at least better than where it began. */
static void test_few_points(void **state)
{
    (void)state;
    struct search search;
    search_init(&search, axes, (int[]){11, 3}, 8);
    assert_int_equal(run(&search, 3, 6, 5), 8);
    assert_true(search.best_score > 75);
    assert_memory_equal(search.at, search.best, sizeof search.at);
    search_init(&search, axes, (int[]){11, 3}, 1);
    assert_int_equal(run(&search, 3, 6, 0), 1);
    assert_int_equal(search.at[0], 11);
    search_score(&search, 1000); /* it has ended: nothing changes */
    assert_true(search.best_score < 1000);
}

static void test_an_advantage_that_is_noise_does_not_count(void **state)
{
    (void)state;
    struct search search;
    search_init(&search, axes, (int[]){5, 5}, 100);
    for (double score = 100; !search.ended; score += 0.05)
        search_score(&search, score);
    assert_int_equal(search.at[0], 5);
    assert_int_equal(search.at[1], 5);
}

static void test_a_number_that_is_fixed(void **state)
{
    (void)state;
    struct search search;
    const struct search_axis one[SEARCH_AXES] = {{12, 0}, {10, 2}},
                             none[SEARCH_AXES] = {{1, 0}, {1, 0}};
    search_init(&search, one, (int[]){2, 3}, 100);
    run(&search, 9, 8, 0);
    assert_int_equal(search.at[0], 2);
    assert_int_equal(search.at[1], 8);
    search_init(&search, none, (int[]){0, 0}, 100);
    assert_int_equal(run(&search, 0, 0, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_finds_each_peak),
        cmocka_unit_test(test_few_points),
        cmocka_unit_test(test_an_advantage_that_is_noise_does_not_count),
        cmocka_unit_test(test_a_number_that_is_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
