/* SPDX-License-Identifier: Apache-2.0 */
/* Restarts that change nothing: --no-progress-restarts. */
#include "elastic_story.h"

static void begin(struct story *s, int limit)
{
    story_config(s)->np = 2;
    s->config.min_np = 2;
    s->config.mode = ELASTIC_RESTART;
    s->config.max_restarts = -1;
    s->config.failure_limit = 0;
    s->config.idle_restarts = limit;
    story_runs(s, "a,b");
}

static void progressed(struct story *s)
{
    happens(s, .kind = ELASTIC_PROGRESSED);
}

/* False: that was the end of the job. */
static bool crash(struct story *s)
{
    exited(s, 1, 3);
    if (elastic_state(s->e) == ELASTIC_ENDING)
        return false;
    all_end(s, 9);
    goes_on(s);
    return true;
}

static void test_restarts_without_progress(void **state)
{
    (void)state;
    struct story s;
    begin(&s, 2);
    progressed(&s);
    assert_true(crash(&s)); /* that was not a restart */
    assert_true(crash(&s));
    progressed(&s);
    assert_true(crash(&s)); /* it begins anew */
    assert_true(crash(&s));
    assert_false(crash(&s));
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on b exited with code 3; 2 restarts in a row made no progress "
                   "(--no-progress-restarts)");
    assert_int_equal(elastic_verdict(s.e)->code, 3);
    story_end(&s);
}

static void test_a_report_that_comes_late(void **state)
{
    (void)state;
    struct story s;
    begin(&s, 2);
    progressed(&s);
    assert_true(crash(&s));
    exited(&s, 1, 3);
    progressed(&s); /* before that failure */
    all_end(&s, 9);
    goes_on(&s);
    assert_true(crash(&s));
    assert_false(crash(&s));
    story_end(&s);
}

static void test_a_program_without_reports(void **state)
{
    (void)state;
    struct story s;
    begin(&s, 1);
    for (int i = 0; i < 10; i++)
        assert_true(crash(&s));
    progressed(&s);
    assert_true(crash(&s));
    assert_false(crash(&s));
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on b exited with code 3; 1 restart in a row made no progress "
                   "(--no-progress-restarts)");
    story_end(&s);
}

static void test_lost_hosts_do_not_count(void **state)
{
    (void)state;
    struct story s;
    begin(&s, 1);
    progressed(&s);
    for (int i = 0; i < 2; i++) {
        lost(&s, "b");
        all_end(&s, 9);
        after(&s, 60000);
        came(&s, "b");
        goes_on(&s);
    }
    assert_true(crash(&s)); /* the progress before the losses counts */
    assert_false(crash(&s));
    story_end(&s);
}

/* An exit that followed from the loss of a host is none of the program's. */
static void test_a_crash_that_was_a_lost_host(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct story s;
        begin(&s, 2);
        progressed(&s);
        assert_true(crash(&s)); /* the progress belongs to the first epoch */
        if (!late)
            progressed(&s);
        exited(&s, 0, 1);
        if (late)
            progressed(&s);
        happens(&s, .kind = ELASTIC_HOST_LOST, .host = number(&s, "b"), .text = "no heartbeat",
                .since_ms = s.now - 100, .first = true);
        all_end(&s, 9);
        after(&s, 60000);
        came(&s, "b");
        goes_on(&s);
        assert_true(crash(&s)); /* the progress before the loss counts */
        assert_true(crash(&s));
        assert_false(crash(&s));
        story_end(&s);
    }
}

static void test_a_worker_that_asks_is_no_crash(void **state)
{
    (void)state;
    struct story s;
    begin(&s, 1);
    progressed(&s);
    assert_true(crash(&s));
    for (int i = 0; i < 2; i++) {
        asked(&s, 0);
        all_end(&s, 9);
        goes_on(&s);
    }
    assert_false(crash(&s));
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts_without_progress),
        cmocka_unit_test(test_a_report_that_comes_late),
        cmocka_unit_test(test_a_program_without_reports),
        cmocka_unit_test(test_lost_hosts_do_not_count),
        cmocka_unit_test(test_a_crash_that_was_a_lost_host),
        cmocka_unit_test(test_a_worker_that_asks_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
