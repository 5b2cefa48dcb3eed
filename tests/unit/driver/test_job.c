/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/job.h"

struct fixture {
    struct job job;
    struct loop_timer *limit;
    int advanced, passed;
};

static void advance(struct job *job)
{
    struct fixture *f = (struct fixture *)job; /* it is the first member */
    f->advanced++;
}

static void limit_passed(void *context)
{
    struct fixture *f = context;
    job_advance_now(&f->job);
    f->passed = f->advanced;
    loop_stop(f->job.loop);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.job = {.advance = advance, .loop = loop_create(NULL)}};
    f.limit = loop_timer_create(f.job.loop, limit_passed, &f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    loop_timer_destroy(f->limit);
    loop_destroy(f->job.loop);
    return 0;
}

static void test_one_look_for_many_changes(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        job_advance(&f->job);
    assert_int_equal(f->advanced, 0); /* not from within the change */
    loop_timer_set(f->limit, 1);
    loop_run(f->job.loop);
    assert_int_equal(f->advanced, 1);
    job_advance(&f->job);
    loop_timer_set(f->limit, 1);
    loop_run(f->job.loop);
    assert_int_equal(f->advanced, 2);
}

/* What has just happened may have kept the limit: the look comes first, and only once. */
static void test_a_limit_looks_first(void **state)
{
    struct fixture *f = *state;
    job_advance_now(&f->job);
    assert_int_equal(f->advanced, 0); /* nothing has happened */
    job_advance(&f->job);
    limit_passed(f);
    assert_int_equal(f->passed, 1);
    loop_timer_set(f->limit, 1);
    loop_run(f->job.loop);
    assert_int_equal(f->advanced, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_look_for_many_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_limit_looks_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
