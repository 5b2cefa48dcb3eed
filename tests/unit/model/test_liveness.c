/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/net/liveness.h"

#define BEGUN 1000000

/* Ticks every second up to `to_ms` after the beginning; the state after the last one. */
static enum liveness_state tick_until(struct liveness *l, int64_t *at, int64_t to_ms)
{
    enum liveness_state state = l->state;
    while (*at < BEGUN + to_ms) {
        *at += LIVENESS_PERIOD_MS;
        state = liveness_tick(l, *at);
    }
    return state;
}

static void test_silence(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 30000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 4000), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, 5000), LIVENESS_SUSPECT);
    assert_int_equal(tick_until(&l, &at, 29000), LIVENESS_SUSPECT);
    assert_int_equal(liveness_silence_ms(&l, at), 29000);
    assert_int_equal(tick_until(&l, &at, 30000), LIVENESS_LOST);
    liveness_heard(&l, at); /* lost is lost */
    assert_int_equal(tick_until(&l, &at, 32000), LIVENESS_LOST);
}

static void test_heard_again(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 30000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 20000), LIVENESS_SUSPECT);
    liveness_heard(&l, at);
    assert_int_equal(l.state, LIVENESS_ALIVE);
    assert_int_equal(liveness_silence_ms(&l, at), 0);
    assert_int_equal(tick_until(&l, &at, 24000), LIVENESS_ALIVE); /* counted from then on */
    assert_int_equal(tick_until(&l, &at, 25000), LIVENESS_SUSPECT);
    assert_int_equal(tick_until(&l, &at, 49000), LIVENESS_SUSPECT);
    assert_int_equal(tick_until(&l, &at, 50000), LIVENESS_LOST);
}

static void test_regular_frames_keep_it_alive(void **state)
{
    (void)state;
    struct liveness l;
    liveness_init(&l, 5000, 5000, BEGUN);
    for (int64_t at = BEGUN; at < BEGUN + 1000000; at += 1000) {
        if (at % 4000 == 0)
            liveness_heard(&l, at);
        assert_int_equal(liveness_tick(&l, at), LIVENESS_ALIVE);
    }
}

/* A limit below the time of suspicion: lost without having been suspect first. */
static void test_lost_before_suspect(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 2000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 1000), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, 2000), LIVENESS_LOST);
}

/* Who did not look for an hour blames itself; who was only a little late does not. */
static void test_own_stall(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 30000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 20000), LIVENESS_SUSPECT);
    at += 3600000;
    assert_int_equal(liveness_tick(&l, at), LIVENESS_ALIVE);
    assert_int_equal(liveness_silence_ms(&l, at), 0);
}

/* A tick that comes 2 s late says nothing about the peer in these 2 s: what it has sent then may
 * not have been read. Only the second that was to pass counts. */
static void test_own_lateness_does_not_count(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 5000, BEGUN);
    for (int i = 0; i < 4; i++)
        assert_int_equal(liveness_tick(&l, at += 3000), LIVENESS_ALIVE);
    assert_int_equal(liveness_silence_ms(&l, at), 12000); /* which is what the user reads */
    assert_int_equal(liveness_next_ms(&l, at), 1000);
    assert_int_equal(liveness_tick(&l, at += 3000), LIVENESS_LOST); /* so it is never endless */
}

/* Lateness excuses the silence that it is part of, and no later one. */
static void test_lateness_before_the_silence(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 5000, BEGUN);
    assert_int_equal(liveness_tick(&l, at += 3000), LIVENESS_ALIVE);
    liveness_heard(&l, at += 900);
    assert_int_equal(liveness_tick(&l, at += 2100),
                     LIVENESS_ALIVE); /* 2 s late, 2.1 s of silence */
    int64_t begin = at - BEGUN;
    assert_int_equal(tick_until(&l, &at, begin + 4000), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, begin + 5000), LIVENESS_LOST);
    at = BEGUN;
    liveness_init(&l, 5000, 5000, BEGUN);
    liveness_heard(&l, BEGUN + 2950); /* in the same turn as the late tick */
    at += 3000;
    assert_int_equal(liveness_tick(&l, at), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, 7000), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, 8000), LIVENESS_LOST);
}

/* The stall explains what happens while nobody has noticed it, and shortly after it. */
static void test_length_of_a_stall(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 30000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 4000), LIVENESS_ALIVE);
    assert_int_equal(liveness_stall_ms(&l, at + 3000), 0);
    at += 7000;
    assert_int_equal(liveness_stall_ms(&l, at), 7000);
    liveness_heard(&l, at);
    assert_int_equal(liveness_stall_ms(&l, at), 7000);
    liveness_tick(&l, at);
    assert_int_equal(liveness_stall_ms(&l, at + 300), 7000);
    for (int i = 0; i < 5; i++)
        liveness_tick(&l, at += 1000);
    assert_int_equal(liveness_stall_ms(&l, at), 0);
    liveness_suspend(&l, true, at);
    assert_int_equal(liveness_stall_ms(&l, at + 60000), 0); /* then nobody is late */
}

static void test_suspend(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 30000, BEGUN);
    assert_int_equal(tick_until(&l, &at, 29000), LIVENESS_SUSPECT);
    liveness_suspend(&l, true, at);
    assert_int_equal(tick_until(&l, &at, 500000), LIVENESS_ALIVE);
    at += 3600000; /* nor does a stall count then */
    assert_int_equal(liveness_tick(&l, at), LIVENESS_ALIVE);
    at += 3600000;
    liveness_suspend(&l, false, at);
    int64_t resumed = at - BEGUN;
    assert_int_equal(tick_until(&l, &at, resumed + 4000), LIVENESS_ALIVE);
    assert_int_equal(tick_until(&l, &at, resumed + 5000), LIVENESS_SUSPECT);
    assert_int_equal(tick_until(&l, &at, resumed + 30000), LIVENESS_LOST);
    liveness_suspend(&l, true, at);
    liveness_suspend(&l, false, at);
    assert_int_equal(liveness_tick(&l, at), LIVENESS_LOST);
}

static void the_next_tick_is_never_late_for_a_verdict(void **state)
{
    (void)state;
    struct liveness l;
    liveness_init(&l, 5000, 7000, 1000);
    assert_int_equal(liveness_next_ms(&l, 1000), LIVENESS_PERIOD_MS);
    assert_int_equal(liveness_tick(&l, 2000), LIVENESS_ALIVE);
    assert_int_equal(liveness_next_ms(&l, 5600), 400);
    for (int64_t at = 3000; at <= 5000; at += 1000)
        assert_int_equal(liveness_tick(&l, at), LIVENESS_ALIVE);
    assert_int_equal(liveness_tick(&l, 5600), LIVENESS_ALIVE);
    assert_int_equal(liveness_tick(&l, 6000), LIVENESS_SUSPECT);
    assert_int_equal(liveness_tick(&l, 7000), LIVENESS_SUSPECT);
    assert_int_equal(liveness_next_ms(&l, 7700), 300);
    assert_int_equal(liveness_tick(&l, 8000), LIVENESS_LOST);
    liveness_init(&l, 5000, 7000, 1000);
    liveness_suspend(&l, true, 1000);
    assert_int_equal(liveness_next_ms(&l, 60000), LIVENESS_PERIOD_MS);
}

static void a_host_that_answers_gets_twice_the_time(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 5000, BEGUN);
    liveness_host_answers(&l);
    assert_int_equal(tick_until(&l, &at, 9000), LIVENESS_SUSPECT);
    assert_int_equal(tick_until(&l, &at, 10000), LIVENESS_LOST);
    /* it counts for one silence only */
    at = BEGUN;
    liveness_init(&l, 5000, 5000, BEGUN);
    liveness_host_answers(&l);
    liveness_heard(&l, BEGUN + 100);
    assert_int_equal(tick_until(&l, &at, 6000), LIVENESS_LOST);
}

/* Whoever sends a byte now and then, and never a frame, does not live for ever. */
static void bytes_that_wait_excuse_once(void **state)
{
    (void)state;
    struct liveness l;
    int64_t at = BEGUN;
    liveness_init(&l, 5000, 7000, BEGUN);
    tick_until(&l, &at, 4000);
    assert_false(liveness_wants_bytes(&l, at));
    assert_true(liveness_wants_bytes(&l, BEGUN + 5000));
    liveness_bytes_wait(&l, BEGUN + 5000);
    assert_int_equal(tick_until(&l, &at, 11000), LIVENESS_SUSPECT);
    assert_false(liveness_wants_bytes(&l, at));
    assert_int_equal(tick_until(&l, &at, 12000), LIVENESS_LOST);
    liveness_init(&l, 5000, 7000, BEGUN);
    liveness_bytes_wait(&l, BEGUN + 5000);
    liveness_heard(&l, BEGUN + 6000); /* a frame */
    assert_true(liveness_wants_bytes(&l, BEGUN + 11000));
}

static void the_limit_that_holds(void **state)
{
    (void)state;
    struct liveness l;
    liveness_init(&l, 5000, 7000, BEGUN);
    assert_int_equal(liveness_limit_ms(&l), 7000);
    liveness_host_answers(&l);
    assert_int_equal(liveness_limit_ms(&l), 14000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_tick_is_never_late_for_a_verdict),
        cmocka_unit_test(a_host_that_answers_gets_twice_the_time),
        cmocka_unit_test(bytes_that_wait_excuse_once),
        cmocka_unit_test(the_limit_that_holds),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_heard_again),
        cmocka_unit_test(test_regular_frames_keep_it_alive),
        cmocka_unit_test(test_lost_before_suspect),
        cmocka_unit_test(test_own_stall),
        cmocka_unit_test(test_own_lateness_does_not_count),
        cmocka_unit_test(test_lateness_before_the_silence),
        cmocka_unit_test(test_length_of_a_stall),
        cmocka_unit_test(test_suspend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
