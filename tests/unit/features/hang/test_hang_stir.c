/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks do because hvdrun asked them is not seen as progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/hang/hang_watch_driver_test.h"

static void expect(struct hang_stir *stir, int seat, uint64_t output, uint64_t io_bytes,
                   uint64_t wanted_output, uint64_t wanted_io)
{
    struct hang_sample sample = {.output = output, .io_bytes = io_bytes};
    hang_stir_take(stir, seat, &sample);
    assert_int_equal(sample.output, wanted_output);
    assert_int_equal(sample.io_bytes, wanted_io);
}

static int open_stir(void **state)
{
    *state = hang_stir_create();
    return *state == NULL;
}

static int close_stir(void **state)
{
    hang_stir_destroy(*state);
    return 0;
}

static void test_nothing_is_hidden_before(void **state)
{
    expect(*state, 0, 10, 1000, 10, 1000);
    expect(*state, 0, 20, 1500, 20, 1500);
    expect(*state, 3, 7, 0, 7, 0);
}

/* While hvdrun asks, and for two samples more: the numbers stand still. */
static void test_what_is_hidden(void **state)
{
    struct hang_stir *stir = *state;
    expect(stir, 0, 10, 1000, 10, 1000);
    hang_stir_asks(stir, true);
    expect(stir, 0, 100, 5000, 10, 1000);
    expect(stir, 0, 200, 5000, 10, 1000);
    hang_stir_asks(stir, false);
    expect(stir, 0, 300, 9000, 10, 1000);
    expect(stir, 0, 300, 9500, 10, 1000);
    /* then all that comes is its own, beside what was hidden */
    expect(stir, 0, 301, 9500, 11, 1000);
    expect(stir, 0, 305, 9600, 15, 1100);
}

static void test_twice(void **state)
{
    struct hang_stir *stir = *state;
    expect(stir, 0, 10, 0, 10, 0);
    for (uint64_t round = 1; round <= 2; round++) {
        hang_stir_asks(stir, true);
        expect(stir, 0, 10 + 100 * round, 0, 10, 0);
        hang_stir_asks(stir, false);
        expect(stir, 0, 10 + 100 * round, 0, 10, 0);
        expect(stir, 0, 10 + 100 * round, 0, 10, 0);
    }
    expect(stir, 0, 217, 0, 17, 0);
}

/* A number that falls is that of another worker on the same seat. */
static void test_another_worker(void **state)
{
    struct hang_stir *stir = *state;
    expect(stir, 1, 500, 800, 500, 800);
    hang_stir_asks(stir, true);
    expect(stir, 1, 600, 900, 500, 800);
    hang_stir_asks(stir, false);
    expect(stir, 1, 4, 900, 4, 800);
    expect(stir, 1, 9, 20, 4, 20);
    expect(stir, 1, 10, 21, 5, 21);
}

/* One that began meanwhile: its first number is not an answer. */
static void test_seats_are_apart(void **state)
{
    struct hang_stir *stir = *state;
    expect(stir, 0, 10, 0, 10, 0);
    expect(stir, 1, 10, 0, 10, 0);
    hang_stir_asks(stir, true);
    expect(stir, 0, 50, 0, 10, 0);
    hang_stir_asks(stir, false);
    expect(stir, 0, 50, 0, 10, 0);
    expect(stir, 0, 50, 0, 10, 0);
    expect(stir, 0, 51, 0, 11, 0);
    expect(stir, 1, 40, 0, 10, 0);
}

/* A dump also uses memory, the processor and the GPU. What the library completes is not hidden. */
static void test_all_that_can_look_like_progress(void **state)
{
    struct hang_stir *stir = *state;
    struct hang_sample before = {.operations = 5, .cpu_us = 10, .faults = 20, .waits = 30},
                       more = before, after = before;
    hang_stir_take(stir, 0, &before);
    hang_stir_asks(stir, true);
    more = (struct hang_sample){.operations = 6,
                                .cpu_us = 110,
                                .faults = 220,
                                .waits = 330,
                                .has_gpu = true,
                                .gpu_memory_use = 7};
    hang_stir_take(stir, 0, &more);
    assert_int_equal(more.cpu_us, 10);
    assert_int_equal(more.faults, 20);
    assert_int_equal(more.waits, 30);
    assert_int_equal(more.operations, 6);
    assert_false(more.has_gpu);
    hang_stir_asks(stir, false);
    for (int i = 0; i < 3; i++) {
        after = (struct hang_sample){.cpu_us = 111, .faults = 221, .waits = 331, .has_gpu = true};
        hang_stir_take(stir, 0, &after);
    }
    assert_int_equal(after.cpu_us, 10);
    assert_true(after.has_gpu);
    after = (struct hang_sample){.cpu_us = 112, .faults = 223, .waits = 334};
    hang_stir_take(stir, 0, &after);
    assert_int_equal(after.cpu_us, 11);
    assert_int_equal(after.faults, 22);
    assert_int_equal(after.waits, 33);
    assert_false(after.has_gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_hidden_before, open_stir, close_stir),
        cmocka_unit_test_setup_teardown(test_what_is_hidden, open_stir, close_stir),
        cmocka_unit_test_setup_teardown(test_twice, open_stir, close_stir),
        cmocka_unit_test_setup_teardown(test_another_worker, open_stir, close_stir),
        cmocka_unit_test_setup_teardown(test_seats_are_apart, open_stir, close_stir),
        cmocka_unit_test_setup_teardown(test_all_that_can_look_like_progress, open_stir,
                                        close_stir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
