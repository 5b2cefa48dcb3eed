/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic jobs that hang, with --on-hang restart. */
#include "base/status.h"
#include "model/elastic_story.h"

static void hung(struct story *s, int seat)
{
    happens(s, .kind = ELASTIC_HUNG, .seat = seat);
}

static void test_all_restart(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_runs(&s, "a:2,b:1");
    hung(&s, 2);
    expect(&s, "end all 30000");
    expect_said(&s, "rank 2 on b hangs; all workers restart");
    hung(&s, 2); /* a change is under way */
    expect(&s, "");
    all_end(&s, 9);
    expect(&s, "prepare 2");
    expect_members(&s, "+a0 +a1 +b0");
    goes_on(&s);
    expect_cause(&s, "rank 2 on b hangs");
    story_end(&s);
}

static void test_a_spare_takes_the_place(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 2;
    s.config.failure_limit = 1;
    s.config.spares = 1;
    story_runs(&s, "a,b,c");
    hung(&s, 1);
    expect_said(&s, "b is blacklisted for the rest of the job: the last failure there is a hang\n"
                    "rank 1 on b hangs; all workers restart");
    all_end(&s, 9);
    ignore(&s);
    expect_members(&s, "+a0 +c0");
    goes_on(&s);
    hung(&s, 1); /* nothing is left to go on with */
    expect_said(&s, "rank 1 on c hangs; all workers restart");
    all_end(&s, 9);
    expect_members(&s, "+a0 +c0");
    story_end(&s);
}

static void test_a_cooldown(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.failure_limit = 2;
    s.config.cooldown_min_ms = 30000;
    s.config.cooldown_max_ms = 60000;
    s.config.max_np = 1;
    story_runs(&s, "a,b");
    hung(&s, 0);
    expect_said(&s, "rank 0 on a hangs; all workers restart");
    all_end(&s, 9);
    expect_members(&s, "+a0");
    goes_on(&s);
    hung(&s, 0);
    expect_said(&s, "a is blacklisted for 30 s: the last failure there is a hang");
    story_end(&s);
}

static void test_survivors_rejoin(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 2;
    story_rejoins(&s, "a:2,b:1");
    hung(&s, 2);
    expect(&s, "kill 2");
    expect_said(&s, "rank 2 on b hangs; the other workers rejoin");
    expect_state(&s, ELASTIC_AGREEING);
    signaled(&s, 2, 9);
    finished(&s, 2);
    story_rejoin(&s);
    expect_members(&s, "a0 a1 +b0");
    story_end(&s);
}

static void test_nobody_to_blame(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.failure_limit = 1;
    story_rejoins(&s, "a,b,c");
    hung(&s, -1);
    expect(&s, "end all 30000"); /* nobody would ask */
    expect_said(&s, "the job hangs; all workers restart");
    all_end(&s, 9);
    goes_on(&s);
    expect_host(&s, "a", ELASTIC_HOST_UP);
    story_end(&s);
    story_config(&s)->np = 2;
    story_runs(&s, "a,b");
    hung(&s, 99); /* a seat that nobody has */
    expect_said(&s, "the job hangs; all workers restart");
    story_end(&s);
}

static void test_restarts_are_counted(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_restarts = 1;
    story_runs(&s, "a,b");
    hung(&s, 1);
    all_end(&s, 9);
    goes_on(&s);
    hung(&s, 1);
    expect(&s, "verdict hung");
    expect_verdict(&s, ELASTIC_END_HUNG,
                   "rank 1 on b hangs; no more restarts: 1 allowed (--max-restarts)");
    assert_int_equal(elastic_verdict(s.e)->code, STATUS_HANG);
    assert_false(elastic_verdict(s.e)->signaled);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_STOP;
    story_runs(&s, "a,b");
    hung(&s, 1);
    expect(&s, "verdict hung");
    story_end(&s);
}

/* The hang may be the program's fault, so other jobs need not know. */
static void test_a_lost_host_that_hung_is_not_bad(void **state)
{
    (void)state;
    for (int hangs = 0; hangs < 2; hangs++) {
        struct story s;
        story_config(&s)->np = 3;
        s.config.min_np = 1;
        s.config.mode = ELASTIC_RESTART;
        s.config.failure_limit = hangs + 1;
        story_runs(&s, "a,b,c");
        if (hangs > 0) {
            hung(&s, 1);
            all_end(&s, 9);
            goes_on(&s);
        }
        ignore(&s);
        lost(&s, "b");
        assert_true(elastic_host_facts(s.e, 1).blacklisted_until_ms > 0);
        const char *bad =
            strstr(buf_text(&s.done), "host bad b (it was lost 1 time, the last time: "
                                      "no heartbeat)");
        assert_true((bad == NULL) == (hangs > 0));
        story_end(&s);
    }
}

static void unkilled(struct story *s, const char *host)
{
    happens(s, .kind = ELASTIC_UNKILLED, .host = number(s, host), .text = "not even SIGKILL");
}

/* Its host is blacklisted at once, and the epoch that was planned there is planned again. */
static void test_a_process_that_cannot_be_killed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 2;
    s.config.mode = ELASTIC_RESTART;
    s.config.spares = 1;
    story_runs(&s, "a,b,c");
    exited(&s, 1, 3);
    all_end(&s, 9);
    expect_members(&s, "+a0 +b0");
    unkilled(&s, "b");
    expect_said(&s, "b is blacklisted for the rest of the job: not even SIGKILL");
    expect_members(&s, "+a0 +c0");
    unkilled(&s, "b"); /* nothing new */
    ignore(&s);
    unkilled(&s, "a"); /* nothing is left to go on with */
    expect_silence(&s);
    expect_members(&s, "+a0 +c0");
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_restart),
        cmocka_unit_test(test_a_spare_takes_the_place),
        cmocka_unit_test(test_a_cooldown),
        cmocka_unit_test(test_survivors_rejoin),
        cmocka_unit_test(test_nobody_to_blame),
        cmocka_unit_test(test_restarts_are_counted),
        cmocka_unit_test(test_a_lost_host_that_hung_is_not_bad),
        cmocka_unit_test(test_a_process_that_cannot_be_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
