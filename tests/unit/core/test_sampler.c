/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/sampler.h"

static struct sampler sampler_of(int64_t examples, bool shuffle, int32_t rank, int32_t size)
{
    struct sampler sampler;
    assert_int_equal(sampler_init(&sampler, examples, shuffle, 42, rank, size, NULL), 0);
    return sampler;
}

static void expect_share(const struct sampler *sampler, const int64_t *expected, int64_t count)
{
    assert_int_equal(sampler->count, count);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(sampler_at(sampler, i), expected[i]);
    assert_int_equal(sampler_at(sampler, count), -1);
    assert_int_equal(sampler_at(sampler, -1), -1);
}

static void test_turns_and_filling(void **state)
{
    (void)state;
    struct sampler one = sampler_of(7, false, 0, 3), last = sampler_of(7, false, 2, 3);
    expect_share(&one, (const int64_t[]){0, 3, 6}, 3);
    expect_share(&last, (const int64_t[]){2, 5, 1}, 3); /* filled up with 0 and 1 */
    sampler_record(&one, 2);
    assert_int_equal(one.done, 6);
    assert_int_equal(sampler_resize(&one, 0, one.done, 1, 2, NULL), 0);
    expect_share(&one, (const int64_t[]){6}, 1);
    sampler_record(&one, 1);
    assert_int_equal(one.done, 7);
    sampler_set_epoch(&one, 1);
    assert_int_equal(one.done, 0);
    assert_int_equal(one.count, 4);
    sampler_destroy(&one);
    sampler_destroy(&last);
}

/* More ranks than examples: Horovod's own sampler fails an assertion here. */
static void test_fewer_examples_than_ranks(void **state)
{
    (void)state;
    for (int32_t rank = 0; rank < 5; rank++) {
        struct sampler sampler = sampler_of(2, true, rank, 5);
        assert_int_equal(sampler.count, 1);
        assert_in_range(sampler_at(&sampler, 0), 0, 1);
        sampler_destroy(&sampler);
    }
    struct sampler none = sampler_of(0, true, 1, 5);
    assert_int_equal(none.count, 0);
    assert_int_equal(sampler_at(&none, 0), -1);
    sampler_record(&none, 3);
    assert_int_equal(none.done, 0);
    sampler_destroy(&none);
}

/* Recording within an epoch does not move the share that the program is going through. */
static void test_the_share_is_stable(void **state)
{
    (void)state;
    struct sampler sampler = sampler_of(100, true, 1, 4);
    int64_t share[25];
    for (int64_t i = 0; i < 25; i++)
        share[i] = sampler_at(&sampler, i);
    sampler_record(&sampler, 10);
    expect_share(&sampler, share, 25);
    assert_int_equal(sampler_resize(&sampler, 0, sampler.done, 1, 4, NULL), 0);
    expect_share(&sampler, share + 10, 15);
    sampler_destroy(&sampler);
}

static void test_the_order(void **state)
{
    (void)state;
    struct sampler a = sampler_of(1000, true, 0, 1), b = sampler_of(1000, true, 0, 1);
    bool seen[1000] = {false};
    int moved = 0, same = 0;
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(sampler_at(&a, i), sampler_at(&b, i)); /* on all ranks alike */
        seen[sampler_at(&a, i)] = true;
        moved += sampler_at(&a, i) != i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_true(seen[i]);
    assert_true(moved > 900);
    sampler_set_epoch(&b, 1);
    for (int64_t i = 0; i < 1000; i++)
        same += sampler_at(&a, i) == sampler_at(&b, i);
    assert_true(same < 50); /* each epoch has another one */
    sampler_destroy(&a);
    sampler_destroy(&b);
}

static void test_bad_numbers(void **state)
{
    (void)state;
    struct sampler sampler;
    assert_int_equal(sampler_init(&sampler, -1, true, 0, 0, 1, NULL), -1);
    assert_int_equal(sampler_init(&sampler, INT64_MAX, false, 0, 0, 1, NULL), -1);
#ifndef __SANITIZE_ADDRESS__ /* which ends the process when so much is wanted */
    assert_int_equal(sampler_init(&sampler, INT64_MAX / 32, true, 0, 0, 1, NULL), -1);
#endif
    assert_int_equal(sampler_init(&sampler, 1, true, 0, 1, 1, NULL), -1);
    assert_int_equal(sampler_init(&sampler, 1, true, 0, -1, 1, NULL), -1);
    assert_int_equal(sampler_init(&sampler, 1, true, 0, 0, 0, NULL), -1);
    sampler_destroy(&sampler);
    sampler = sampler_of(10, false, 0, 2);
    assert_int_equal(sampler_resize(&sampler, 0, -1, 0, 2, NULL), -1);
    assert_int_equal(sampler_resize(&sampler, 0, 0, 2, 2, NULL), -1);
    assert_int_equal(sampler.size, 2);
    assert_int_equal(sampler_resize(&sampler, 0, 1000, 0, 2, NULL), 0); /* more than there are */
    assert_int_equal(sampler.count, 0);
    sampler_record(&sampler, -5);
    assert_int_equal(sampler.done, 10);
    sampler_destroy(&sampler);
}

/* A training whose size changes at random, also in the middle of a step, so that some examples are
 * processed by a rank but not recorded by all. */
#define EXAMPLES_MAX 200

struct training {
    unsigned int seed;
    int64_t examples;
    int recorded[EXAMPLES_MAX]; /* how often each was processed in a step that counts */
    int64_t filled;             /* examples that may have been processed twice */
};

static int draw(struct training *t, int from, int to)
{
    t->seed = t->seed * 1103515245 + 12345;
    return from + (int)((t->seed >> 8) % (unsigned int)(to - from + 1));
}

/* `size` ranks do some steps of at most 8 examples each. Returns the new `done`. */
static int64_t run_share(struct training *t, int64_t epoch, int64_t done, int32_t size)
{
    int64_t after = done, steps = draw(t, 0, 12), batch = draw(t, 1, 8);
    for (int32_t rank = 0; rank < size; rank++) {
        struct sampler sampler = sampler_of(t->examples, true, 0, 1); /* as a new worker has it */
        assert_int_equal(sampler_resize(&sampler, epoch, done, rank, size, NULL), 0);
        int64_t next = 0, count = sampler.count;
        for (int64_t step = 0; step < steps && next < count; step++) {
            int64_t now = batch < count - next ? batch : count - next;
            for (int64_t i = 0; i < now; i++)
                t->recorded[sampler_at(&sampler, next + i)]++;
            sampler_record(&sampler, now);
            next += now;
        }
        assert_true(rank == 0 || sampler.done == after); /* all agree */
        after = sampler.done;
        sampler_destroy(&sampler);
    }
    t->filled += after == t->examples && after > done ? size : 0;
    return after;
}

static void test_random_resizes(void **state)
{
    (void)state;
    for (unsigned int round = 0; round < 2000; round++) {
        struct training t = {.seed = round * 7919 + 1};
        t.examples = draw(&t, 1, EXAMPLES_MAX);
        int64_t epoch = draw(&t, 0, 5), done = 0;
        while (done < t.examples)
            done = run_share(&t, epoch, done, draw(&t, 1, 9));
        int64_t more = 0;
        for (int64_t i = 0; i < t.examples; i++) {
            assert_true(t.recorded[i] >= 1); /* none is left out */
            more += t.recorded[i] - 1;
        }
        assert_true(more < t.filled); /* only the end of the last share was filled up */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_and_filling),
        cmocka_unit_test(test_fewer_examples_than_ranks),
        cmocka_unit_test(test_the_share_is_stable),
        cmocka_unit_test(test_the_order),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_random_resizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
