/* SPDX-License-Identifier: Apache-2.0 */
/* Newcomers: survivors go on at once, and new workers join when they are ready. */
#include "model/elastic_story.h"

#include <signal.h>

static struct elastic_config *early(struct story *s)
{
    struct elastic_config *config = story_config(s);
    config->early = true;
    config->np = 4;
    config->min_np = 2;
    config->renotify_ms = 1000000;
    return config;
}

static void newcomers_prepared(struct story *s)
{
    happens(s, .kind = ELASTIC_PREPARED, .epoch = elastic_newcomers(s->e)->epoch);
}

static void newcomers_started(struct story *s)
{
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++)
        if (sits(s, seat, ELASTIC_WORKER_JOINING))
            happens(s, .kind = ELASTIC_STARTED, .seat = seat);
}

static void can_join(struct story *s)
{
    for (int seat = 0; seat < elastic_seat_count(s->e); seat++)
        if (sits(s, seat, ELASTIC_WORKER_JOINING))
            happens(s, .kind = ELASTIC_CAN_JOIN, .seat = seat);
}

/* Rank 1 of four has crashed, the survivors go on, and its replacement imports. */
static void story_loses(struct story *s)
{
    story_rejoins(s, "a:2,b:2");
    signaled(s, 1, SIGKILL);
    finished(s, 1);
    ignore(s);
    story_rejoin(s);
    expect(s, "prepare 2");
    prepared(s);
    expect(s, "start 2, answer 100:0, answer 102:2, answer 103:3, resumed 2, prepare newcomers");
    expect_members(s, "a0 b0 b1");
    newcomers_prepared(s);
    newcomers_started(s);
    expect(s, "start newcomers");
    expect_state(s, ELASTIC_RUNNING);
}

static void test_survivors_go_on_at_once(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_loses(&s);
    after(&s, 90000); /* it imports for long */
    expect(&s, "");
    can_join(&s);
    expect(&s, "notify 0");
    story_rejoin(&s);
    expect(&s, "prepare 3");
    prepared(&s);
    expect(&s, "start 3, answer 200:0, answer 202:2, answer 203:3, resumed 3");
    expect_members(&s, "a0 a1 b0 b1");
    expect_cause(&s, "1 more worker");
    assert_int_equal(elastic_facts(s.e)->grown, 1);
    story_end(&s);
}

static void test_a_host_that_comes(void **state)
{
    (void)state;
    struct story s;
    early(&s)->np = 2;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:2,b,c");
    came(&s, "b");
    after(&s, 500);
    came(&s, "c");
    ignore(&s);
    after(&s, 500); /* the grow delay: both are one batch */
    expect(&s, "prepare newcomers");
    newcomers_prepared(&s);
    newcomers_started(&s);
    ignore(&s);
    happens(&s, .kind = ELASTIC_CAN_JOIN, .seat = 3);
    after(&s, 60000);
    expect(&s, ""); /* they join together */
    can_join(&s);
    expect(&s, "notify 0");
    story_rejoin(&s);
    prepared(&s);
    expect_members(&s, "a0 a1 b0 c0");
    expect_cause(&s, "added b, c");
    story_end(&s);
}

static void newcomers_join(struct story *s)
{
    newcomers_prepared(s);
    newcomers_started(s);
    can_join(s);
    story_rejoin(s);
    prepared(s);
    ignore(s);
}

/* It is a change as any other. */
static void test_growth_counts_for_the_reset_limit(void **state)
{
    (void)state;
    struct story s;
    early(&s)->np = 2;
    s.config.reset_limit = 1;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, s.config.grow_delay_ms);
    newcomers_join(&s);
    expect_members(&s, "a0 a1 b0");
    hosts(&s, "a:2,b,c"); /* it would end the job: it does not grow */
    came(&s, "c");
    ignore(&s);
    after(&s, 60000);
    expect(&s, "");
    lost(&s, "b");
    expect(&s, "verdict reset limit");
    expect_verdict(&s, ELASTIC_END_RESET_LIMIT, "1 allowed (--reset-limit); the last: lost b");
    story_end(&s);
}

/* The loss of a worker and its replacement are one change, if a place is free. */
static void test_a_replacement_belongs_to_the_loss(void **state)
{
    (void)state;
    struct story s;
    early(&s)->reset_limit = 2;
    story_loses(&s);
    can_join(&s);
    story_rejoin(&s);
    prepared(&s);
    expect_members(&s, "a0 a1 b0 b1");
    ignore(&s);
    hosts(&s, "a:2,b:2,c"); /* the second change */
    came(&s, "c");
    after(&s, s.config.grow_delay_ms);
    newcomers_join(&s);
    expect_members(&s, "a0 a1 b0 b1 c0");
    signaled(&s, 3, SIGKILL);
    expect(&s, "verdict reset limit");
    story_end(&s);
}

/* What comes later takes no place of the lost worker. */
static void test_a_host_that_comes_after_a_loss_counts(void **state)
{
    (void)state;
    struct story s;
    early(&s)->reset_limit = 1;
    story_rejoins(&s, "a:2,b:2");
    lost(&s, "b");
    story_rejoin(&s);
    prepared(&s);
    expect_members(&s, "a0 a1");
    hosts(&s, "a:2,c:2");
    came(&s, "c");
    ignore(&s);
    after(&s, 60000);
    expect(&s, "");
    story_end(&s);
}

static void test_too_few_survivors_wait(void **state)
{
    (void)state;
    struct story s;
    early(&s)->min_np = 4;
    story_rejoins(&s, "a:2,b:2");
    signaled(&s, 1, SIGKILL);
    finished(&s, 1);
    ignore(&s);
    story_rejoin(&s);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +a1 b0 b1");
    story_end(&s);
}

static void test_a_newcomer_that_crashes(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_loses(&s);
    int seat = elastic_newcomers(s.e)->members[1].seat;
    for (int failures = 2; failures <= 3; failures++) {
        ended(&s, seat, 1);
        if (failures < 3) {
            expect_said(&s, "rank 1 on a exited with code 1; it had not joined the job yet");
            after(&s, s.config.grow_delay_ms);
            expect(&s, "prepare newcomers");
            newcomers_prepared(&s);
            newcomers_started(&s);
            ignore(&s);
        }
    }
    expect_said(&s, "slot 1 of a is blacklisted for the rest of the job");
    after(&s, 100000);
    expect(&s, "");
    expect_state(&s, ELASTIC_RUNNING); /* nobody else has noticed */
    story_end(&s);
}

static void test_a_newcomer_that_never_comes(void **state)
{
    (void)state;
    struct story s;
    early(&s)->elastic_timeout_ms = 20000;
    story_loses(&s);
    after(&s, 20000);
    expect(&s, "kill 1");
    expect_said(&s, "rank 1 on a did not come to the rendezvous within 20 s");
    expect_state(&s, ELASTIC_RUNNING);
    story_end(&s);
}

/* Its host is slow to end it. There are slots for the next plan, which waits for its end only. */
static void test_a_newcomer_that_ends_slowly(void **state)
{
    (void)state;
    struct story s;
    early(&s)->min_np = 3;
    s.config.elastic_timeout_ms = 5000;
    story_loses(&s);
    can_join(&s);
    signaled(&s, 3, SIGKILL);
    finished(&s, 3);
    ignore(&s);
    story_rejoin(&s); /* two do not go on alone */
    expect(&s, "kill 1");
    after(&s, s.config.elastic_timeout_ms + 1000);
    expect(&s, "");
    expect_state(&s, ELASTIC_WAITING);
    signaled(&s, 1, SIGKILL);
    expect(&s, "prepare 4");
    expect_members(&s, "a0 +a1 b0 +b1");
    story_end(&s);
}

/* Its host is given up in the end, and the time-out begins then. */
static void test_a_newcomer_that_does_not_end(void **state)
{
    (void)state;
    struct story s;
    early(&s)->min_np = 3;
    s.config.elastic_timeout_ms = 5000;
    story_loses(&s);
    can_join(&s);
    signaled(&s, 3, SIGKILL);
    finished(&s, 3);
    story_rejoin(&s);
    ignore(&s);
    after(&s, s.config.patience_ms);
    assert_non_null(strstr(buf_text(&s.done), "give up a"));
    expect_state(&s, ELASTIC_WAITING);
    after(&s, s.config.elastic_timeout_ms - 1);
    expect_state(&s, ELASTIC_WAITING);
    after(&s, 1);
    expect_verdict(&s, ELASTIC_END_NO_HOSTS, "3 wanted, 2 found");
    story_end(&s);
}

/* Its end would not help: there are too few slots even then. */
static void test_a_newcomer_that_ends_slowly_and_too_few_slots(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct story s;
        early(&s)->min_np = 3;
        s.config.elastic_timeout_ms = 5000;
        story_loses(&s);
        can_join(&s);
        ignore(&s);
        lost(&s, "b");
        story_rejoin(&s);
        expect(&s, "kill 1");
        expect_state(&s, ELASTIC_WAITING);
        after(&s, s.config.elastic_timeout_ms - 1);
        expect(&s, "call b");
        if (comes) {
            came(&s, "b"); /* now nothing else is missing */
            after(&s, s.config.elastic_timeout_ms - 1);
            expect_state(&s, ELASTIC_WAITING);
            signaled(&s, 1, SIGKILL);
            expect(&s, "prepare 4");
        } else {
            expect_state(&s, ELASTIC_WAITING);
            after(&s, 1);
            expect_verdict(&s, ELASTIC_END_NO_HOSTS, "3 wanted, 2 found");
        }
        story_end(&s);
    }
}

/* Its rank and the size of its world are not those of the next epoch. */
static void test_a_second_loss_starts_the_newcomer_anew(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_loses(&s);
    signaled(&s, 3, SIGKILL);
    finished(&s, 3);
    expect(&s, "");
    story_rejoin(&s);
    prepared(&s);
    expect(&s, "prepare 4, start 4, answer 200:0, answer 202:2, kill 1, resumed 4");
    signaled(&s, 1, SIGKILL);
    expect(&s, "prepare newcomers");
    assert_int_equal(elastic_newcomers(s.e)->size, 4);
    story_end(&s);
}

/* It is ready when a member fails: the others do not wait, and it does not join them. */
static void test_a_failure_before_the_survivors_ask(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_loses(&s);
    can_join(&s);
    expect(&s, "notify 0");
    signaled(&s, 2, SIGKILL);
    finished(&s, 2);
    story_rejoin(&s);
    prepared(&s);
    expect(&s, "prepare 4, start 4, answer 200:0, answer 203:3, kill 1, resumed 4");
    expect_members(&s, "a0 b1");
    story_end(&s);
}

static void test_its_host_goes(void **state)
{
    (void)state;
    struct story s;
    early(&s)->np = 2;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, s.config.grow_delay_ms);
    newcomers_prepared(&s);
    newcomers_started(&s);
    ignore(&s);
    hosts(&s, "a:2"); /* nobody waits for it */
    expect(&s, "kill 2");
    signaled(&s, 2, SIGKILL);
    finished(&s, 2);
    expect(&s, "let go b");
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, s.config.grow_delay_ms);
    expect(&s, "call b, prepare newcomers");
    lost(&s, "b");
    expect(&s, "cancel newcomers");
    expect_state(&s, ELASTIC_RUNNING);
    story_end(&s);
}

/* The members of a host are not punished when its agent cannot start more of them. */
static void test_it_cannot_be_prepared(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_rejoins(&s, "a:2,b:2");
    signaled(&s, 1, SIGKILL);
    finished(&s, 1);
    story_rejoin(&s);
    prepared(&s);
    ignore(&s);
    uint32_t epoch = elastic_newcomers(s.e)->epoch;
    happens(&s, .kind = ELASTIC_PREPARE_FAILED, .epoch = epoch, .host = number(&s, "a"),
            .text = "no space left", .code = 125);
    expect(&s, "cancel newcomers");
    expect_said(&s, "could not start new workers on a: no space left");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_slots, 1);
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, 0);
    ignore(&s);
    happens(&s, .kind = ELASTIC_PREPARE_FAILED, .epoch = epoch, .host = number(&s, "a"),
            .text = "no space left", .code = 125); /* once more */
    expect(&s, "");
    expect_silence(&s);
    story_end(&s);
}

static void test_the_end_ends_newcomers_too(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_loses(&s);
    for (int seat = 0; seat < 4; seat++)
        if (sits(&s, seat, ELASTIC_WORKER_RUNNING))
            exited(&s, seat, 0);
    expect(&s, "verdict success");
    for (int seat = 0; seat < 4; seat++)
        finished(&s, seat);
    expect(&s, "");
    ended(&s, 1, 143);
    expect(&s, "over");
    story_end(&s);
}

/* A worker cannot be told that the one that it waits for has ended. */
static void test_stuck_at_the_rendezvous(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_rejoins(&s, "a:2,b:2");
    signaled(&s, 1, SIGKILL);
    ignore(&s);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 0);
    expect(&s, "kill 0");
    expect_said(&s, "a worker ended while others were about to connect to it");
    happens(&s, .kind = ELASTIC_STUCK, .seat = 0); /* once is enough */
    asked(&s, 2);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 2); /* it has asked: nothing holds it */
    expect(&s, "");
    expect_silence(&s);
    asked(&s, 3);
    ended(&s, 0, 137);
    expect(&s, "prepare 2");
    expect_members(&s, "b0 b1");
    story_end(&s);
}

/* At the gate of the rendezvous survivors can wait for another worker with the same rank. */
static void story_held(struct story *s)
{
    early(s);
    story_rejoins(s, "a:2,b:2");
    signaled(s, 3, SIGKILL);
    finished(s, 3);
    story_rejoin(s);
    prepared(s);
    expect_members(s, "a0 a1 b0");
    lost(s, "b"); /* while the others come to the gate */
    ignore(s);
    happens(s, .kind = ELASTIC_STUCK, .seat = 0, .first = true);
    expect(s, "");
}

static void test_survivors_at_the_gate_keep_their_memory(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_rejoins(&s, "a:2,b:2");
    signaled(&s, 1, SIGKILL);
    finished(&s, 1);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 0, .first = true);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 2, .first = true);
    ignore(&s);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 3, .first = true); /* the last one to come */
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +a1 b0 b1");
    prepared(&s);
    started(&s);
    expect(&s, "start 2, resumed 2");
    ended(&s, 1, 1); /* and once more */
    for (int seat = 0; seat < 4; seat++)
        if (seat != 1)
            happens(&s, .kind = ELASTIC_STUCK, .seat = seat, .first = true);
    expect(&s, "prepare 3");
    assert_true(elastic_worker_facts(s.e, 2).member);
    exited(&s, 2, 0); /* one of those that wait */
    assert_false(elastic_worker_facts(s.e, 2).member);
    expect(&s, "cancel 3, prepare 4");
    expect_members(&s, "a0 +a1 +b0 b1");
    story_end(&s);
}

static void test_nobody_can_come_to_the_gate(void **state)
{
    (void)state;
    struct story s;
    story_held(&s);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 1, .first = true);
    expect(&s, "kill 0, kill 1"); /* b is lost, and its rank with it */
    story_end(&s);
}

/* The others would receive the state of the new rank 0. */
static void test_rank_0_ends_before_the_gate(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_rejoins(&s, "a:2,b:2");
    signaled(&s, 0, SIGKILL);
    finished(&s, 0);
    ignore(&s);
    for (int seat = 1; seat < 4; seat++)
        happens(&s, .kind = ELASTIC_STUCK, .seat = seat, .first = true);
    expect(&s, "kill 1, kill 2, kill 3");
    for (int seat = 1; seat < 4; seat++)
        ended(&s, seat, 137);
    expect_said(&s, "no worker that holds the job's state remains");
    story_end(&s);
}

static void test_stuck_behind_an_early_exit(void **state)
{
    (void)state;
    struct story s;
    early(&s);
    story_rejoins(&s, "a:2,b:2");
    exited(&s, 1, 0);
    happens(&s, .kind = ELASTIC_STUCK, .seat = 0);
    expect(&s, "kill 0");
    expect_state(&s, ELASTIC_AGREEING);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivors_go_on_at_once),
        cmocka_unit_test(test_a_host_that_comes),
        cmocka_unit_test(test_too_few_survivors_wait),
        cmocka_unit_test(test_a_newcomer_that_crashes),
        cmocka_unit_test(test_a_newcomer_that_never_comes),
        cmocka_unit_test(test_a_newcomer_that_ends_slowly),
        cmocka_unit_test(test_a_newcomer_that_does_not_end),
        cmocka_unit_test(test_a_newcomer_that_ends_slowly_and_too_few_slots),
        cmocka_unit_test(test_a_second_loss_starts_the_newcomer_anew),
        cmocka_unit_test(test_a_failure_before_the_survivors_ask),
        cmocka_unit_test(test_its_host_goes),
        cmocka_unit_test(test_it_cannot_be_prepared),
        cmocka_unit_test(test_the_end_ends_newcomers_too),
        cmocka_unit_test(test_stuck_at_the_rendezvous),
        cmocka_unit_test(test_survivors_at_the_gate_keep_their_memory),
        cmocka_unit_test(test_nobody_can_come_to_the_gate),
        cmocka_unit_test(test_rank_0_ends_before_the_gate),
        cmocka_unit_test(test_stuck_behind_an_early_exit),
        cmocka_unit_test(test_growth_counts_for_the_reset_limit),
        cmocka_unit_test(test_a_replacement_belongs_to_the_loss),
        cmocka_unit_test(test_a_host_that_comes_after_a_loss_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
