/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic jobs whose workers all start anew after a change: budgets, the blacklist, places, limits.
 */
#include "model/elastic_story.h"

/* A crash of this seat, and the whole way to the next epoch. */
static void crash_and_restart(struct story *s, int seat)
{
    exited(s, seat, 1);
    all_end(s, 15);
    goes_on(s);
}

static void test_a_worker_crashes(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_runs(&s, "a:2,b:1");
    after(&s, 1000);
    exited_at(&s, 2, 1, s.now - 30);
    expect(&s, "end all 30000");
    expect_said(&s, "rank 2 on b exited with code 1; all workers restart");
    expect_state(&s, ELASTIC_STOPPING);
    after(&s, 500);
    signaled(&s, 0, 15);
    finished(&s, 0);
    signaled(&s, 1, 15);
    finished(&s, 2);
    expect(&s, ""); /* the last output is waited for */
    finished(&s, 1);
    expect(&s, "prepare 2");
    expect_members(&s, "+a0 +a1 +b0");
    assert_true(elastic_plan(s.e)->fresh);
    assert_int_equal(elastic_plan(s.e)->restart_count, 1);
    for (int r = 0; r < 3; r++)
        assert_int_equal(elastic_plan(s.e)->members[r].seat, r);
    after(&s, 200);
    prepared(&s);
    started(&s);
    expect(&s, "start 2, resumed 2");
    expect_cause(&s, "rank 2 on b exited with code 1");
    const struct elastic_facts *facts = elastic_facts(s.e);
    assert_int_equal(facts->mode, ELASTIC_RESTART);
    assert_int_equal(facts->agreed_ms - facts->detected_ms, 500);
    assert_int_equal(facts->lost_ms, 730);
    assert_int_equal(facts->crashes, 1);
    story_end(&s);
}

static void test_registered_workers_rejoin_unless_it_is_fixed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_RESTART;
    story_rejoins(&s, "a:2");
    exited(&s, 1, 1);
    expect(&s, "end all 30000");
    story_end(&s);

    story_config(&s)->np = 2;
    story_runs(&s, "a:2");
    happens(&s, .kind = ELASTIC_REGISTERED, .host = 0, .local_rank = 1);
    exited(&s, 1, 1); /* the only one that had registered */
    expect(&s, "end all 30000");
    story_end(&s);
}

static void test_restarts_after_crashes_are_counted(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.max_restarts = 2;
    s.config.max_preemptions = 0;
    s.config.failure_limit = 0;
    story_runs(&s, "a:3");
    crash_and_restart(&s, 0);
    crash_and_restart(&s, 1);
    exited(&s, 2, 77);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 2 on a exited with code 77; no more restarts: 2 allowed");
    assert_int_equal(elastic_verdict(s.e)->code, 77);
    assert_int_equal(elastic_verdict(s.e)->seat, 2);
    story_end(&s);
}

static void test_restarts_after_lost_hosts_are_counted_apart(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.max_restarts = 0;
    s.config.max_preemptions = 1;
    story_runs(&s, "a,b,c");
    lost(&s, "c");
    expect(&s, "end all 30000");
    all_end(&s, 15);
    expect(&s, "prepare 2");
    expect_members(&s, "+a0 +b0");
    goes_on(&s);
    lost(&s, "b");
    expect(&s, "verdict host lost");
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "lost b: no heartbeat; no more restarts: 1 allowed");
    assert_int_equal(elastic_verdict(s.e)->seat, -1); /* no worker is to blame */
    assert_int_equal(elastic_verdict(s.e)->rank, -1);
    story_end(&s);
}

/* Then a crash is the end, whether other hosts are left or not. */
static void test_no_restart_is_allowed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_restarts = 0;
    s.config.failure_limit = 1;
    story_runs(&s, "a");
    exited(&s, 0, 1);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH, "rank 0 on a exited with code 1");
    assert_null(strstr(elastic_verdict(s.e)->text, "every host")); /* one says little */
    story_end(&s);
}

static void test_growing_costs_nothing(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_restarts = 0;
    s.config.max_preemptions = 0;
    s.config.grace_ms = 5000; /* is for failures */
    story_runs(&s, "a");
    hosts(&s, "a,b");
    came(&s, "b");
    after(&s, 999);
    expect(&s, "call b");
    after(&s, 1);
    expect(&s, "end all 30000");
    expect_said(&s, "2 workers can run now instead of 1: all workers restart");
    all_end(&s, 15);
    goes_on(&s);
    expect_members(&s, "+a0 +b0");
    expect_cause(&s, "added b");
    assert_int_equal(elastic_facts(s.e)->grown, 1);
    assert_int_equal(elastic_facts(s.e)->crashes, 0);
    story_end(&s);
}

/* Who was dead before our signal came did not die of it. */
static void test_a_crash_just_before_a_restart(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_restarts = 0;
    story_runs(&s, "a:2");
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, 1000);
    expect(&s, "call b, end all 30000");
    signaled(&s, 0, 15);
    expect(&s, "");
    exited_at(&s, 1, 6, s.now - 1);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH, "rank 1 on a exited with code 6");
    story_end(&s);
}

static void test_consequences_count_for_nobody(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.max_restarts = -1;
    story_runs(&s, "a:1,b:1,c:1");
    for (int i = 0; i < 5; i++) {
        exited(&s, i % 3, 1);
        for (int seat = 0; seat < 3; seat++)
            if (seat != i % 3)
                exited(&s, seat, 134);
        all_end(&s, 0);
        goes_on(&s);
    }
    assert_int_equal(elastic_facts(s.e)->crashes, 5);
    for (int h = 0; h < 3; h++)
        assert_int_equal(elastic_host_facts(s.e, h).blacklisted_slots, 0);
    story_end(&s);
}

/* The news of the loss comes after the exit of a peer that followed from it. */
static void lost_before(struct story *s, int host)
{
    happens(s, .kind = ELASTIC_HOST_LOST, .host = host, .text = "killed", .since_ms = s->now,
            .first = true);
}

static void test_a_crash_that_followed_from_a_lost_host(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.max_restarts = 1;
    s.config.mode = ELASTIC_RESTART;
    story_runs(&s, "a,b,c");
    for (int i = 0; i < 2; i++) { /* more often than crashes may be */
        exited(&s, 0, 1);
        assert_int_equal(elastic_cause_seat(s.e), 0);
        assert_int_equal(elastic_facts(s.e)->crashes, 1);
        ignore(&s);
        lost_before(&s, elastic_plan(s.e)->members[1].host);
        assert_int_equal(elastic_cause_seat(s.e), -1);
        assert_int_equal(elastic_facts(s.e)->crashes, 0);
        assert_int_equal(elastic_facts(s.e)->hosts_lost, i + 1);
        assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 0);
        all_end(&s, 0);
        goes_on(&s);
    }
    story_end(&s);
}

static void test_a_verdict_that_a_lost_host_explains(void **state)
{
    (void)state;
    static const enum elastic_mode modes[] = {ELASTIC_RESTART, ELASTIC_STOP};
    for (int i = 0; i < 2; i++) {
        struct story s;
        story_config(&s)->np = 2;
        s.config.min_np = 1;
        s.config.max_restarts = 0;
        s.config.mode = modes[i];
        story_runs(&s, "a,b");
        exited(&s, 0, 7);
        expect(&s, "verdict crash");
        lost_before(&s, 1);
        const struct elastic_verdict *verdict = elastic_verdict(s.e);
        assert_int_equal(verdict->end, i == 0 ? ELASTIC_END_CRASH : ELASTIC_END_HOST_LOST);
        assert_int_equal(verdict->code, i == 0 ? 7 : 0);
        assert_int_equal(verdict->host, i);
        if (i == 0)
            assert_non_null(strstr(verdict->text, "allowed (--max-restarts); before that: lost b"));
        else
            assert_string_equal(verdict->text, "lost b: killed");
        story_end(&s);
    }
}

static void test_two_hosts_at_once(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.failure_limit = 1;
    story_runs(&s, "a,b,c");
    lost(&s, "b");
    lost(&s, "c"); /* of the same cut */
    assert_true(elastic_host_facts(s.e, 1).blacklisted_until_ms > 0);
    assert_int_equal(elastic_host_facts(s.e, 2).blacklisted_until_ms, 0);
    assert_int_equal(elastic_facts(s.e)->hosts_lost, 2);
    story_end(&s);
}

/* Three crashes in one slot put it aside, where the program runs elsewhere. */
static void test_a_bad_slot(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.max_restarts = -1;
    s.config.cooldown_min_ms = 60000;
    s.config.cooldown_max_ms = 100000;
    story_runs(&s, "a:2,b:1");
    crash_and_restart(&s, 1);
    crash_and_restart(&s, 0); /* another slot */
    crash_and_restart(&s, 1);
    exited(&s, 1, 1);
    expect_said(&s, "slot 1 of a is blacklisted for 60 s: the program crashed there 3 times");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 1);
    all_end(&s, 15);
    expect_members(&s, "+a0 +b0");
    goes_on(&s);
    after(&s, 59999);
    expect(&s, "");
    after(&s, 1001);
    expect_said(&s, "a cooldown on a is over");
    expect(&s, "end all 30000"); /* it grows again */
    all_end(&s, 15);
    expect_members(&s, "+a0 +a1 +b0");
    goes_on(&s);
    for (int i = 0; i < 2; i++)
        crash_and_restart(&s, 1);
    exited(&s, 1, 1);
    expect_said(&s, "slot 1 of a is blacklisted for 100 s"); /* doubled, up to the most */
    story_end(&s);
}

/* The first slot of a host is as good as the others. */
static void test_a_bad_first_slot(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.max_restarts = -1;
    s.config.cooldown_min_ms = s.config.cooldown_max_ms = 60000;
    story_runs(&s, "a:2,b:1");
    crash_and_restart(&s, 0);
    crash_and_restart(&s, 0);
    exited(&s, 0, 1);
    all_end(&s, 15);
    expect_members(&s, "+a1 +b0");
    goes_on(&s);
    after(&s, 61000);
    expect_said(&s, "a cooldown on a is over");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 0);
    all_end(&s, 15);
    expect_members(&s, "+a0 +a1 +b0");
    story_end(&s);
}

static void test_waiting_at_the_start_is_told(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 6;
    s.config.min_np = 1;
    story_begin(&s);
    hosts(&s, "a:2,b:2");
    came(&s, "a");
    expect_silence(&s); /* b may be enough, for all we know */
    came(&s, "b");
    expect_said(&s, "waiting for 2 more slots: 4 found, at least 6 needed");
    hosts(&s, "a:2,b:2,c:1");
    came(&s, "c");
    expect_silence(&s); /* once */
    story_end(&s);
}

/* Without the slot the job could only wait: the restarts that are left decide. */
static void test_a_bad_slot_that_is_needed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 3;
    s.config.max_restarts = 4;
    story_runs(&s, "a:2,b:1");
    for (int i = 0; i < 4; i++)
        crash_and_restart(&s, 1);
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 0);
    exited(&s, 1, 77);
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on a exited with code 77; no more restarts: 4 allowed");
    story_end(&s);

    story_config(&s)->np = 3;
    s.config.min_np = 2; /* one can be spared */
    s.config.max_restarts = 4;
    story_runs(&s, "a:2,b:1");
    for (int i = 0; i < 2; i++)
        crash_and_restart(&s, 1);
    exited(&s, 1, 1);
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 1);
    story_end(&s);
}

static void test_a_bad_slot_without_cool_down(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.max_restarts = -1;
    story_runs(&s, "a,b");
    crash_and_restart(&s, 0);
    crash_and_restart(&s, 0);
    exited(&s, 0, 1);
    expect_said(&s, "slot 0 of a is blacklisted for the rest of the job");
    all_end(&s, 15);
    expect_members(&s, "+b0");
    goes_on(&s);
    after(&s, 100000000);
    expect(&s, "");
    lost(&s, "a");
    after(&s, 100000000);
    expect(&s, "");
    hosts(&s, "b");
    hosts(&s, "a,b"); /* a machine of that name is there again */
    expect(&s, "call a");
    came(&s, "a"); /* the same one */
    after(&s, 100000);
    expect(&s, "");
    hosts(&s, "b");
    expect(&s, "let go a");
    hosts(&s, "a,b");
    expect(&s, "call a");
    came_as(&s, "a", "another machine");
    after(&s, 1000);
    expect(&s, "end all 30000"); /* for two workers */
    story_end(&s);
}

static void test_crashes_long_ago_are_forgotten(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_restarts = -1;
    story_runs(&s, "a,b");
    for (int i = 0; i < 6; i++) {
        crash_and_restart(&s, 0);
        after(&s, 600000);
    }
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 0);
    story_end(&s);
}

/* The program knows that each other try would end the same way. */
static void test_never_again(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_restarts = -1;
    story_runs(&s, "a,b");
    exited(&s, 0, 78);
    expect(&s, "verdict program fault");
    expect_verdict(&s, ELASTIC_END_FAULT,
                   "rank 0 on a exited with code 78, which says that no other try can succeed");
    assert_int_equal(elastic_verdict(s.e)->code, 78);
    story_end(&s);
}

static void test_it_crashes_on_every_host(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.max_restarts = -1;
    story_runs(&s, "a,b");
    crash_and_restart(&s, 0);
    crash_and_restart(&s, 1);
    crash_and_restart(&s, 0);
    exited(&s, 0, 2); /* a's third one, and b has seen one, too */
    expect(&s, "verdict program fault");
    expect_verdict(
        &s, ELASTIC_END_FAULT,
        "the program crashes on every host; the last crash: rank 0 on a exited with code 2");
    assert_int_equal(elastic_verdict(s.e)->code, 2);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.max_restarts = -1;
    story_runs(&s, "a:2"); /* no other host */
    crash_and_restart(&s, 0);
    crash_and_restart(&s, 0);
    signaled(&s, 0, 11);
    expect(&s, "verdict program fault");
    assert_int_equal(elastic_verdict(s.e)->code, 11);
    assert_true(elastic_verdict(s.e)->signaled);
    story_end(&s);
}

/* Where restarts are counted, they decide. */
static void test_it_crashes_everywhere_but_restarts_are_counted(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_restarts = 6;
    story_runs(&s, "a,b");
    for (int i = 0; i < 6; i++) {
        crash_and_restart(&s, i % 2);
        expect_members(&s, "+a0 +b0");
    }
    exited(&s, 0, 5);
    expect(&s, "verdict crash");
    expect_verdict(
        &s, ELASTIC_END_CRASH,
        "no more restarts: 6 allowed (--max-restarts); the program crashes on every host");
    story_end(&s);
}

static void test_no_worker_is_left(void **state)
{
    (void)state;
    struct story s;
    story_config(&s);
    story_runs(&s, "a");
    lost(&s, "a");
    expect(&s, "end all 30000");
    expect_said(&s, "lost a: no heartbeat; all workers restart");
    expect_state(&s, ELASTIC_WAITING);
    story_end(&s);
}

/* A program that cannot rejoin starts again from its checkpoint, and the user is told. */
static void test_a_rank_has_succeeded(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_runs(&s, "a,b,c");
    ended(&s, 1, 0);
    after(&s, 60000);
    ended(&s, 0, 0);
    after(&s, 60000);
    lost(&s, "c");
    expect(&s, "end all 30000, prepare 2");
    expect_said(&s, "lost c: no heartbeat; all workers restart, also rank 1 on b, which had "
                    "exited with code 0");
    story_end(&s);
}

/* Stable host, stable rank. */
static void test_places(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.max_np = 3;
    story_runs(&s, "a,b,c,d,e");
    expect_members(&s, "+a0 +b0 +c0");
    lost(&s, "b");
    expect(&s, "end all 30000, call d");
    came(&s, "d");
    all_end(&s, 15);
    expect_members(&s, "+a0 +d0 +c0");
    goes_on(&s);
    after(&s, 1000); /* b could come back, but is not needed */
    expect(&s, "");
    lost(&s, "a");
    expect(&s, "end all 30000, call b");
    came(&s, "b");
    all_end(&s, 15);
    expect_members(&s, "+b0 +d0 +c0"); /* its own place is taken: the first one that is free */
    goes_on(&s);
    lost(&s, "d");
    after(&s, 1000);
    all_end(&s, 15);
    expect(&s, "end all 30000, call e, prepare 4");
    expect_members(&s, "+b0 +c0"); /* e has not come yet */
    came(&s, "e");
    lost(&s, "c");
    expect(&s, "cancel 4, prepare 5, call a");
    expect_members(&s, "+b0 +e0"); /* what was only prepared leaves no trace */
    story_end(&s);
}

static void test_a_place_is_kept_for_who_comes_back(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    story_runs(&s, "a,b,c");
    lost(&s, "a");
    all_end(&s, 15);
    expect_members(&s, "+b0 +c0");
    goes_on(&s);
    after(&s, 1000);
    came(&s, "a");
    after(&s, 1000);
    all_end(&s, 15);
    expect_members(&s, "+a0 +b0 +c0");
    story_end(&s);
}

static void test_a_drain_gives_the_time_that_is_left(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.max_preemptions = 1;
    s.config.grace_ms = 5000; /* is for failures */
    story_runs(&s, "a,b");
    drain_by(&s, "b", 12000);
    expect(&s, "deadline b 12000, end all 12000");
    all_end(&s, 15);
    expect(&s, "prepare 2, let go b");
    goes_on(&s);
    expect_cause(&s, "draining b: preempted");
    drain_by(&s, "a", 600000);
    expect(&s, "deadline a 600000, verdict host lost");
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "draining a: preempted; no more restarts");
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.grace_ms = 5000;
    story_runs(&s, "a,b");
    drain_by(&s, "b", 600000);
    expect(&s, "deadline b 600000, end all 30000");
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_runs(&s, "a,b");
    drain_by(&s, "b", 0);
    expect(&s, "deadline b 0, end all 0");
    story_end(&s);
}

static void test_a_crash_on_a_host_that_is_left(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->mode = ELASTIC_REJOIN;
    s.config.np = 2;
    s.config.min_np = 1;
    s.config.failure_limit = 1;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 60000);
    signaled(&s, 1, 15); /* the machine shuts down */
    asked(&s, 0);
    prepared(&s);
    expect(&s, "deadline b 60000, notify 0, prepare 2, start 2, answer 100:0, resumed 2");
    assert_int_equal(elastic_facts(s.e)->crashes, 0);
    story_end(&s);
}

static void test_who_does_not_end(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.grace_ms = 5000;
    story_runs(&s, "a,b,c");
    exited(&s, 0, 1);
    finished(&s, 0);
    expect(&s, "end all 5000");
    signaled(&s, 1, 15); /* and its output never ends */
    after(&s, 14999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "give up c, give up b, prepare 2");
    expect_members(&s, "+a0");
    story_end(&s);
}

/* Somebody asks although all are to restart: it is ended like the others. */
static void test_asking_where_all_restart(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->mode = ELASTIC_RESTART;
    s.config.np = 2;
    s.config.max_restarts = 1;
    story_rejoins(&s, "a:2");
    asked(&s, 0);
    expect(&s, "end all 30000");
    asked(&s, 1);
    expect(&s, "");
    exited_at(&s, 1, 3, s.now - 1); /* why it asked */
    all_end(&s, 15);
    expect(&s, "prepare 2");
    goes_on(&s);
    expect_cause(&s, "rank 1 on a exited with code 3");
    ended(&s, 1, 0);
    asked(&s, 0);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on a exited with code 0 before its peers; no more");
    story_end(&s);
}

static void test_those_that_were_done_start_anew(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_runs(&s, "a:2");
    ended(&s, 0, 0);
    after(&s, 100000);
    exited(&s, 1, 1);
    expect(&s, "end all 30000");
    all_end(&s, 15);
    expect(&s, "prepare 2");
    expect_members(&s, "+a0 +a1");
    story_end(&s);
}

static void test_waiting_between_restarts(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 2;
    story_runs(&s, "a,b");
    lost(&s, "b");
    all_end(&s, 15);
    expect(&s, "end all 30000");
    expect_state(&s, ELASTIC_WAITING);
    expect_said(&s, "waiting for 1 more slot: 1 found, at least 2 needed");
    after(&s, 1000);
    came(&s, "b");
    expect(&s, "call b, prepare 2");
    goes_on(&s);
    assert_int_equal(elastic_plan(s.e)->restart_count, 1);
    story_end(&s);
}

static void test_reset_limit(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.reset_limit = 0;
    story_runs(&s, "a,b");
    drain_by(&s, "b", -1);
    expect(&s, "verdict reset limit");
    expect_verdict(&s, ELASTIC_END_RESET_LIMIT, "0 allowed (--reset-limit); the last: draining b");
    assert_int_equal(elastic_verdict(s.e)->seat, -1); /* no worker has done anything */
    assert_int_equal(elastic_verdict(s.e)->rank, -1);
    assert_int_equal(elastic_verdict(s.e)->host, -1);
    story_end(&s);
}

/* A restart that did not get far is one change with the next one. */
static void test_the_lost_time_of_a_failed_restart(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_runs(&s, "a:2");
    exited(&s, 0, 1);
    all_end(&s, 15);
    after(&s, 1000);
    prepared(&s);
    after(&s, 1000);
    exited(&s, 1, 127);
    all_end(&s, 9);
    after(&s, 1000);
    prepared(&s);
    started(&s);
    expect_cause(&s, "rank 0 on a exited with code 1; rank 1 on a exited with code 127");
    assert_int_equal(elastic_facts(s.e)->lost_ms, 3000);
    story_end(&s);
}

/* 32,000 workers on 4,000 hosts come, run, lose a host, and end: no step may be quadratic, or this
 * test takes minutes. */
static void test_many(void **state)
{
    (void)state;
    enum { HOSTS = 4000, EACH = 8 };
    struct story s;
    story_config(&s)->np = HOSTS * EACH;
    s.config.min_np = 1;
    story_runs(&s, "n[1-4000]:8");
    assert_int_equal(elastic_plan(s.e)->size, HOSTS * EACH);
    registered(&s);
    lost(&s, "n17");
    story_rejoin(&s);
    prepared(&s);
    assert_int_equal(elastic_plan(s.e)->size, (HOSTS - 1) * EACH);
    for (int seat = 0; seat < HOSTS * EACH; seat++)
        if (sits(&s, seat, ELASTIC_WORKER_RUNNING))
            ended(&s, seat, 0);
    expect_state(&s, ELASTIC_DONE);
    story_end(&s);
}

/* A slot does not come back before its time, also when there is other news of hosts. */
static void test_a_bad_slot_stays_out_for_its_time(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    s.config.min_np = 1;
    s.config.max_restarts = -1;
    s.config.cooldown_min_ms = 60000;
    s.config.cooldown_max_ms = 60000;
    story_begin(&s);
    hosts(&s, "a:3,b:1,c:1");
    came(&s, "a");
    came(&s, "b");
    unreached(&s, "c", "refused");
    prepared(&s);
    started(&s);
    expect_state(&s, ELASTIC_RUNNING);
    for (int i = 0; i < 2; i++)
        crash_and_restart(&s, 1);
    exited(&s, 1, 1);
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 1);
    all_end(&s, 15);
    goes_on(&s);
    for (int i = 0; i < 5; i++) {
        after(&s, 10000);
        if (elastic_host_facts(s.e, 2).state == ELASTIC_HOST_CALLING)
            unreached(&s, "c", "refused");
        assert_null(strstr(buf_text(&s.said), "cooldown"));
        assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 1);
    }
    after(&s, 10000);
    expect_said(&s, "a cooldown on a is over");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 0);
    story_end(&s);
}

/* While all workers are stopped no agent is let go: it may be at work on that. */
static void test_nobody_is_let_go_while_all_stop(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.spares = 1;
    story_runs(&s, "a,b");
    exited(&s, 0, 1);
    expect_state(&s, ELASTIC_STOPPING);
    ignore(&s);
    drain_by(&s, "b", -1);
    expect(&s, "");
    finished(&s, 0);
    expect(&s, "prepare 2, let go b");
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_crashes),
        cmocka_unit_test(test_registered_workers_rejoin_unless_it_is_fixed),
        cmocka_unit_test(test_restarts_after_crashes_are_counted),
        cmocka_unit_test(test_restarts_after_lost_hosts_are_counted_apart),
        cmocka_unit_test(test_no_restart_is_allowed),
        cmocka_unit_test(test_growing_costs_nothing),
        cmocka_unit_test(test_a_crash_just_before_a_restart),
        cmocka_unit_test(test_consequences_count_for_nobody),
        cmocka_unit_test(test_a_crash_that_followed_from_a_lost_host),
        cmocka_unit_test(test_a_verdict_that_a_lost_host_explains),
        cmocka_unit_test(test_two_hosts_at_once),
        cmocka_unit_test(test_a_bad_slot),
        cmocka_unit_test(test_a_bad_first_slot),
        cmocka_unit_test(test_waiting_at_the_start_is_told),
        cmocka_unit_test(test_a_bad_slot_that_is_needed),
        cmocka_unit_test(test_a_bad_slot_without_cool_down),
        cmocka_unit_test(test_crashes_long_ago_are_forgotten),
        cmocka_unit_test(test_never_again),
        cmocka_unit_test(test_it_crashes_on_every_host),
        cmocka_unit_test(test_it_crashes_everywhere_but_restarts_are_counted),
        cmocka_unit_test(test_no_worker_is_left),
        cmocka_unit_test(test_a_rank_has_succeeded),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_a_place_is_kept_for_who_comes_back),
        cmocka_unit_test(test_a_drain_gives_the_time_that_is_left),
        cmocka_unit_test(test_a_crash_on_a_host_that_is_left),
        cmocka_unit_test(test_who_does_not_end),
        cmocka_unit_test(test_asking_where_all_restart),
        cmocka_unit_test(test_those_that_were_done_start_anew),
        cmocka_unit_test(test_waiting_between_restarts),
        cmocka_unit_test(test_reset_limit),
        cmocka_unit_test(test_the_lost_time_of_a_failed_restart),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_a_bad_slot_stays_out_for_its_time),
        cmocka_unit_test(test_nobody_is_let_go_while_all_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
