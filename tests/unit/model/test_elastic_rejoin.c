/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic jobs whose workers rejoin: survivors ask, are replaced, grow, shrink, wait. */
#include "base/mem.h"
#include "model/elastic_story.h"

static void test_a_worker_crashes(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    story_rejoins(&s, "a:2,b:2");
    after(&s, 5000);
    exited_at(&s, 2, 3, s.now - 40);
    expect(&s, "");
    expect_state(&s, ELASTIC_AGREEING);
    expect_said(&s, "rank 2 on b exited with code 3; the other workers rejoin");
    finished(&s, 2);
    after(&s, 100);
    asked(&s, 0);
    asked(&s, 3);
    expect(&s, ""); /* rank 1 has still to ask */
    after(&s, 100);
    asked(&s, 1);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 a1 b1 +b0");
    assert_int_equal(elastic_plan(s.e)->members[3].seat, 2); /* free again */
    assert_int_equal(elastic_plan(s.e)->members[2].local_rank, 1);
    assert_false(elastic_plan(s.e)->fresh);
    after(&s, 100);
    prepared(&s);
    expect(&s, "start 2, answer 100:0, answer 101:1, answer 103:3");
    after(&s, 100);
    started(&s);
    expect(&s, "resumed 2");
    expect_cause(&s, "rank 2 on b exited with code 3");
    const struct elastic_facts *facts = elastic_facts(s.e);
    assert_int_equal(facts->mode, ELASTIC_REJOIN);
    assert_int_equal(facts->detected_ms - facts->happened_ms, 40);
    assert_int_equal(facts->agreed_ms - facts->detected_ms, 200);
    assert_int_equal(facts->planned_ms, facts->agreed_ms);
    assert_int_equal(facts->started_ms - facts->planned_ms, 100);
    assert_int_equal(facts->resumed_ms - facts->started_ms, 100);
    assert_int_equal(facts->lost_ms, 440);
    assert_int_equal(facts->epochs, 2);
    assert_int_equal(facts->crashes, 1);
    assert_int_equal(elastic_worker_facts(s.e, 3).rank, 2);
    story_end(&s);
}

static void test_a_seat_is_not_given_away_before_its_worker_has_finished(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    signaled(&s, 1, 11);
    asked(&s, 0);
    expect(&s, "prepare 2"); /* it has exited, that is enough for the slot */
    expect_members(&s, "a0 +a1");
    assert_int_equal(elastic_plan(s.e)->members[1].seat, 2);
    expect_said(&s, "rank 1 on a was killed by SIGSEGV");
    story_end(&s);
}

static void test_a_host_is_lost(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 2;
    story_rejoins(&s, "a,b,c");
    s.now += 6000;
    happens(&s, .kind = ELASTIC_HOST_LOST, .host = 1, .text = "no heartbeat for 5.0 s",
            .since_ms = s.now - 5000);
    expect(&s, "");
    story_rejoin(&s);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 c0");
    prepared(&s);
    expect(&s, "start 2, answer 100:0, answer 102:2, resumed 2"); /* nobody is to be started */
    expect_cause(&s, "lost b: no heartbeat for 5.0 s");
    assert_int_equal(elastic_facts(s.e)->lost_ms, 5000);
    assert_int_equal(elastic_facts(s.e)->hosts_lost, 1);
    exited(&s, 1, 1); /* news of a worker that is gone */
    expect(&s, "");
    after(&s, 1000); /* b is tried again, comes back, and the job grows */
    came(&s, "b");
    after(&s, 1000);
    expect(&s, "call b, notify 0");
    story_rejoin(&s);
    expect(&s, "prepare 3");
    expect_members(&s, "a0 c0 +b0");
    prepared(&s);
    started(&s);
    expect_cause(&s, "added b");
    assert_int_equal(elastic_facts(s.e)->grown, 1);
    story_end(&s);
}

static void test_a_spare_takes_over(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    s.config.spares = 1;
    story_rejoins(&s, "a:2,b:2,c:2");
    expect_members(&s, "+a0 +a1 +b0 +b1");
    lost(&s, "a");
    story_rejoin(&s);
    expect(&s, "prepare 2");
    expect_members(&s, "b0 b1 +c0 +c1");
    prepared(&s);
    started(&s);
    expect_cause(&s, "lost a: no heartbeat; added c");
    story_end(&s);
}

/* Those that fail while the first failure is handled are named. An abort may be a consequence, and
 * does not count. */
static void test_other_members_fail(void **state)
{
    (void)state;
    static const struct {
        int codes[2], crashes;
        const char *cause;
    } cases[] = {{{0}, 1, ""},
                 {{5}, 2, "; rank 1 on a exited with code 5, too"},
                 {{134}, 1, "; rank 1 on a exited with code 134, too"},
                 {{134, 5}, 2, "; rank 1 on a exited with code 134, and 1 more failed, too"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story s;
        story_config(&s)->np = 4;
        s.config.min_np = 1;
        story_rejoins(&s, "a:2,b:2");
        exited(&s, 0, 7);
        for (int rank = 1; rank < 3 && cases[i].codes[rank - 1] != 0; rank++)
            exited(&s, rank, cases[i].codes[rank - 1]);
        story_rejoin(&s);
        prepared(&s);
        started(&s);
        char *cause AUTO_FREE = mem_printf("rank 0 on a exited with code 7%s", cases[i].cause);
        expect_cause(&s, cause);
        assert_int_equal(elastic_facts(s.e)->crashes, cases[i].crashes);
        story_end(&s);
    }
}

/* Every other member has a limit of its own; who passes it is killed and replaced. */
static void test_a_survivor_hangs(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:2,b:1");
    exited(&s, 0, 1);
    after(&s, 30000);
    asked(&s, 1);
    after(&s, 29999);
    expect(&s, "");
    ignore(&s);
    after(&s, 1);
    expect(&s, "kill 2");
    expect_said(&s, "rank 2 on b did not rejoin within 60 s: killing and replacing it");
    signaled(&s, 2, 9);
    expect(&s, "prepare 2");
    expect_members(&s, "a1 +a0 +b0");
    assert_int_equal(elastic_facts(s.e)->crashes, 1);
    story_end(&s);
}

static void test_a_survivor_cannot_even_be_killed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    story_rejoins(&s, "a:2,b:1");
    exited(&s, 0, 1);
    asked(&s, 1);
    after(&s, 60000);
    expect(&s, "kill 2");
    after(&s, 9999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "give up b, prepare 2");
    expect_members(&s, "a1 +a0");
    expect_host(&s, "b", ELASTIC_HOST_AWAY);
    story_end(&s);
}

/* One that still imports has the same limit, and starts meanwhile. */
static void test_not_yet_started_when_a_peer_fails(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->mode = ELASTIC_REJOIN;
    s.config.np = 2;
    story_begin(&s);
    hosts(&s, "a:2");
    came(&s, "a");
    prepared(&s);
    exited(&s, 0, 1);
    ignore(&s);
    after(&s, 59999);
    happens(&s, .kind = ELASTIC_STARTED, .seat = 1);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "kill 1");
    story_end(&s);
}

static void test_asking_for_no_visible_reason(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    asked(&s, 1);
    expect_state(&s, ELASTIC_AGREEING);
    asked(&s, 0);
    expect(&s, "prepare 2");
    prepared(&s);
    expect(&s, "start 2, answer 100:0, answer 101:1, resumed 2");
    expect_cause(&s, "rank 1 on a asked to rejoin");
    story_end(&s);
}

/* The news of the death may come behind the asking. */
static void test_the_cause_comes_later(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:3");
    asked(&s, 0);
    exited(&s, 1, 7);
    exited(&s, 2, 134); /* a consequence */
    expect(&s, "prepare 2");
    prepared(&s);
    started(&s);
    expect_cause(&s, "rank 1 on a exited with code 7; rank 2 on a exited with code 134, too");
    assert_int_equal(elastic_facts(s.e)->crashes, 1);
    story_end(&s);
}

static void test_requests(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    happens(&s, .kind = ELASTIC_ASKED, .host = 0, .local_rank = 5, .request = 1);
    expect(&s, "answer 1:-1"); /* nobody has that place */
    happens(&s, .kind = ELASTIC_ASKED, .host = 77, .local_rank = 0, .request = 2);
    expect(&s, "answer 2:-1");
    expect_state(&s, ELASTIC_RUNNING);
    asked_as(&s, 0, 10);
    asked_as(&s, 0, 10); /* twice the same: once */
    asked_as(&s, 0, 11); /* tried again, the old one may still be there */
    asked_as(&s, 1, 20);
    asked_as(&s, 1, 21);
    expect(&s, "prepare 2");
    dropped(&s, 20);
    dropped(&s, 999);
    expect(&s, ""); /* one is left */
    prepared(&s);
    expect(&s, "start 2, answer 10:0, answer 11:0, answer 21:1, resumed 2");
    dropped(&s, 10); /* it has been answered */
    expect(&s, "");
    story_end(&s);
}

static void test_a_survivor_hangs_up(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    after(&s, 1000);
    asked_as(&s, 0, 10);
    after(&s, 50000);
    asked_as(&s, 1, 20);
    expect(&s, "prepare 2");
    dropped(&s, 10);
    expect(&s, "cancel 2");
    expect_state(&s, ELASTIC_AGREEING);
    after(&s, 59999); /* a limit anew */
    expect(&s, "");
    asked_as(&s, 0, 11);
    expect(&s, "prepare 3");
    prepared(&s);
    expect(&s, "start 3, answer 11:0, answer 20:1, resumed 3");
    story_end(&s);
}

static void test_a_survivor_hangs_up_and_dies(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    asked_as(&s, 0, 10);
    asked_as(&s, 1, 20);
    dropped(&s, 10);
    expect(&s, "prepare 2, cancel 2");
    signaled(&s, 0, 9);
    expect(&s, "prepare 3");
    expect_members(&s, "a1 +a0");
    prepared(&s);
    expect(&s, "start 3, answer 20:1");
    story_end(&s);
}

static void test_a_survivor_dies_while_preparing(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:3");
    exited(&s, 0, 1);
    asked(&s, 1);
    asked(&s, 2);
    exited(&s, 1, 134);
    expect(&s, "prepare 2, cancel 2, prepare 3");
    expect_members(&s, "a2 +a0 +a1");
    prepared(&s);
    expect(&s, "start 3, answer 102:2"); /* the dead one's request has gone with it */
    story_end(&s);
}

/* Fewer slots: the highest ones leave, their workers are told so, and what they end with is no
 * failure. */
static void test_fewer_slots(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    story_rejoins(&s, "a:2,b:2");
    hosts(&s, "a:2,b:1");
    expect(&s, "notify 0");
    expect_said(&s, "b has only 1 slot now");
    story_rejoin(&s);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 a1 b0");
    prepared(&s);
    expect(&s, "start 2, answer 100:0, answer 101:1, answer 102:2, answer 103:-1, resumed 2");
    assert_true(sits(&s, 3, ELASTIC_WORKER_REMOVED));
    asked_as(&s, 3, 55); /* it does not believe it */
    expect(&s, "answer 55:-1");
    exited(&s, 3, 134);
    finished(&s, 3);
    expect(&s, "");
    expect_state(&s, ELASTIC_RUNNING);
    expect_cause(&s, "b has only 1 slot now");
    hosts(&s, "a:2,b:3"); /* and more again */
    after(&s, 1000);
    expect(&s, "notify 0");
    story_rejoin(&s);
    expect_members(&s, "a0 a1 b0 +b1 +b2");
    prepared(&s);
    started(&s);
    expect_cause(&s, "2 more workers");
    story_end(&s);
}

static void test_a_removed_worker_lingers(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a:1,b:1");
    drain_by(&s, "b", -1);
    story_rejoin(&s);
    prepared(&s);
    expect(&s, "notify 0, prepare 2, start 2, answer 100:0, answer 101:-1, resumed 2");
    after(&s, 39999);
    expect(&s, "");
    after(&s, 1); /* grace and patience */
    expect(&s, "kill 1");
    assert_true(elastic_worker_facts(s.e, 0).member);
    assert_false(elastic_worker_facts(s.e, 1).member); /* its rank has another worker now */
    after(&s, 10000);
    expect(&s, "give up b");
    expect_state(&s, ELASTIC_RUNNING);
    expect_host(&s, "b", ELASTIC_HOST_AWAY);
    story_end(&s);
}

static void test_below_the_least(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 3;
    s.config.elastic_timeout_ms = 100000;
    story_rejoins(&s, "a:1,b:2");
    lost(&s, "b");
    asked(&s, 0);
    expect_state(&s, ELASTIC_WAITING);
    expect(&s, "");
    expect_said(&s, "waiting for 2 more slots: 1 found, at least 3 needed");
    after(&s, 90000);
    expect(&s, "call b");
    expect_silence(&s);
    came(&s, "b");
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +b0 +b1");
    lost(&s, "b"); /* and again */
    expect(&s, "cancel 2");
    after(&s, 99999);
    expect(&s, "call b");
    expect_state(&s, ELASTIC_WAITING);
    after(&s, 1);
    expect(&s, "verdict no hosts"); /* the held survivor is the driver's to end */
    expect_verdict(&s, ELASTIC_END_NO_HOSTS, "for 100 s: 3 wanted, 1 found (b: no heartbeat)");
    ended(&s, 0, 0);
    expect(&s, "over");
    story_end(&s);
}

/* A peer that dies in the middle of a rendezvous makes all the others abort: one crash, not the
 * program's fault on every host. */
static void test_a_death_in_the_rendezvous(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_config(&s)->max_restarts = 1;
    story_rejoins(&s, "a:2,b:1");
    exited(&s, 1, 1);
    exited(&s, 0, 134);
    ignore(&s);
    exited(&s, 2, 134);
    expect_state(&s, ELASTIC_STOPPING);
    for (int seat = 0; seat < 3; seat++)
        finished(&s, seat);
    expect_state(&s, ELASTIC_PREPARING);
    assert_int_equal(elastic_facts(s.e)->crashes, 1);
    story_end(&s);
}

static void test_every_worker_fails(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:2,b:1");
    exited(&s, 1, 42);
    exited(&s, 0, 1);
    exited(&s, 2, 1);
    expect(&s, "verdict program fault");
    expect_verdict(&s, ELASTIC_END_FAULT,
                   "every worker failed; the first failure: rank 1 on a exited with code 42");
    assert_int_equal(elastic_verdict(s.e)->code, 42);
    assert_int_equal(elastic_verdict(s.e)->rank, 1);
    finished(&s, 0);
    finished(&s, 1);
    expect(&s, "");
    finished(&s, 2);
    expect(&s, "over");
    story_end(&s);
}

static void test_the_host_with_all_workers_is_lost(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.spares = 1;
    story_rejoins(&s, "a:2,b:2");
    s.config.mode = ELASTIC_REJOIN;
    lost(&s, "a");
    /* nobody that has registered lives: all restart, on what is there */
    expect(&s, "end all 30000, prepare 2");
    expect_members(&s, "+b0 +b1");
    assert_true(elastic_plan(s.e)->fresh);
    assert_int_equal(elastic_plan(s.e)->restart_count, 1);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_REJOIN;
    s.config.spares = 1;
    story_rejoins(&s, "a:2,b:2");
    lost(&s, "a");
    expect(&s, "end all 30000, prepare 2");
    expect_said(&s, "no worker that holds the job's state remains");
    prepared(&s);
    started(&s);
    expect_cause(&s, "lost a: no heartbeat; added b");
    assert_int_equal(elastic_facts(s.e)->mode, ELASTIC_RESTART);
    story_end(&s);
}

/* The only host with workers is drained, another one is there: the state cannot be kept. */
static void test_all_survivors_are_on_hosts_that_are_left(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.spares = 1;
    story_rejoins(&s, "a,b");
    drain_by(&s, "a", -1);
    asked(&s, 0);
    expect(&s, "notify 0, end all 30000");
    expect_said(&s, "no worker that holds the job's state remains");
    all_end(&s, 15);
    expect(&s, "prepare 2, let go a");
    expect_members(&s, "+b0");
    prepared(&s);
    started(&s);
    expect(&s, "start 2, resumed 2");
    story_end(&s);
}

/* All die before the epoch has run: that costs a restart, and not the job. */
static void test_the_set_up_fails(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_REJOIN;
    s.config.max_restarts = 1;
    story_begin(&s);
    hosts(&s, "a:2");
    came(&s, "a");
    prepared(&s);
    ignore(&s);
    for (int times = 1; times <= 2; times++) {
        exited(&s, 0, 1);
        exited(&s, 1, 1);
        if (times == 2)
            break;
        expect(&s, "end all 30000");
        finished(&s, 0);
        finished(&s, 1);
        expect(&s, "prepare 2");
        prepared(&s);
        expect(&s, "start 2");
    }
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH, "no more restarts: 1 allowed");
    story_end(&s);
}

static void test_success(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    exited(&s, 1, 0);
    after(&s, 100000);
    expect(&s, "");
    expect_state(&s, ELASTIC_RUNNING);
    exited(&s, 0, 0);
    expect(&s, "verdict success");
    expect_verdict(&s, ELASTIC_END_SUCCESS, "");
    finished(&s, 1);
    finished(&s, 0);
    expect(&s, "over");
    story_end(&s);
}

/* Both hosts are lost before the driver has read all: what is lost first is named. */
static void test_success_with_output_lost(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a,b");
    exited(&s, 1, 0);
    exited(&s, 0, 0);
    expect(&s, "verdict success");
    lost(&s, "b");
    lost(&s, "a");
    expect(&s, "over");
    expect_verdict(&s, ELASTIC_END_HOST_LOST,
                   "lost b: no heartbeat; all ranks exited with code 0, but output of rank 1 "
                   "may be missing");
    assert_int_equal(elastic_verdict(s.e)->host, 1);
    story_end(&s);

    story_config(&s)->np = 2; /* the loss comes before the other rank ends */
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    exited(&s, 1, 0);
    lost(&s, "b");
    expect(&s, "");
    ended(&s, 0, 0);
    expect(&s, "verdict host lost, over");
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "output of rank 1 may be missing");
    story_end(&s);

    story_config(&s)->np = 2; /* what it wrote is there */
    story_rejoins(&s, "a,b");
    exited(&s, 1, 0);
    ended(&s, 0, 0);
    finished(&s, 1);
    lost(&s, "b");
    expect(&s, "verdict success, over");
    expect_verdict(&s, ELASTIC_END_SUCCESS, "");
    story_end(&s);
}

static void test_success_does_not_wait_for_the_removed(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:1");
    story_rejoin(&s);
    prepared(&s);
    ignore(&s);
    ended(&s, 0, 0);
    expect(&s, "verdict success");
    after(&s, 40000); /* the driver's kill did not help */
    expect(&s, "give up a, over");
    story_end(&s);
}

/* A 0 shortly before a peer fails is not believed. */
static void test_an_early_zero(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:3");
    after(&s, 1000);
    ended(&s, 0, 0);
    after(&s, 5000);
    signaled(&s, 1, 9);
    expect_state(&s, ELASTIC_AGREEING);
    asked(&s, 2);
    expect(&s, "prepare 2");
    expect_members(&s, "a2 +a0 +a1");
    story_end(&s);
}

static void test_a_zero_long_before(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:3");
    ended(&s, 0, 0);
    after(&s, 5001);
    signaled(&s, 1, 9);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on a was killed by SIGKILL; the workers do not start again, because 1 "
                   "of 3 had exited with code 0");
    assert_true(elastic_verdict(s.e)->signaled);
    assert_int_equal(elastic_verdict(s.e)->code, 9);
    story_end(&s);

    story_config(&s)->np = 3;
    story_rejoins(&s, "a,b,c");
    ended(&s, 0, 0);
    after(&s, 5001);
    lost(&s, "b");
    expect(&s, "verdict host lost");
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "lost b: no heartbeat; the workers do not start");
    assert_int_equal(elastic_verdict(s.e)->host, 1);
    story_end(&s);

    story_config(&s)->np = 2;
    story_rejoins(&s, "a,b");
    ended(&s, 0, 0);
    after(&s, 5001);
    asked(&s, 1);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH, "rank 1 on b asked to rejoin; the workers do not start");
    assert_int_equal(elastic_verdict(s.e)->rank, 0);
    assert_int_equal(elastic_verdict(s.e)->code, 1);
    story_end(&s);
}

/* One rank has succeeded, and no other one holds the job's state: the training is over. */
static void test_success_before_the_last_host_is_lost(void **state)
{
    (void)state;
    static const int64_t later_ms[] = {1, 3000, 9000, 600000};
    for (size_t i = 0; i < sizeof(later_ms) / sizeof(later_ms[0]); i++) {
        struct story s;
        story_config(&s)->np = 2;
        s.config.min_np = 1;
        story_rejoins(&s, "a,b");
        ended(&s, 0, 0);
        after(&s, later_ms[i]);
        lost(&s, "b");
        expect(&s, "verdict host lost, over");
        expect_verdict(&s, ELASTIC_END_HOST_LOST,
                       "lost b: no heartbeat; the workers do not start again, because 1 of 2 had "
                       "exited with code 0");
        story_end(&s);
    }
}

static void test_success_before_the_last_worker_crashes(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a,b,c");
    ended(&s, 0, 0);
    ended(&s, 2, 0);
    after(&s, 3000);
    ended(&s, 1, 7);
    expect(&s, "verdict crash, over");
    expect_verdict(&s, ELASTIC_END_CRASH,
                   "rank 1 on b exited with code 7; the workers do not start again, because 2 of "
                   "3 had exited with code 0");
    assert_int_equal(elastic_verdict(s.e)->code, 7);
    story_end(&s);
}

/* The news of the loss comes first. */
static void test_success_after_the_last_host_is_lost(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a,b,c");
    lost(&s, "b");
    expect_state(&s, ELASTIC_AGREEING);
    ended(&s, 0, 0);
    ended(&s, 2, 1);
    ignore(&s);
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "because 1 of 3 had exited with code 0");
    story_end(&s);
}

/* Whoever does not come back after a success is killed, and the training is over. */
static void test_success_and_a_rank_that_does_not_rejoin(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a,b,c");
    ended(&s, 0, 0);
    after(&s, 1000);
    lost(&s, "b");
    after(&s, s.config.rejoin_timeout_ms);
    signaled(&s, 2, 9);
    finished(&s, 2);
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "because 1 of 3 had exited with code 0");
    story_end(&s);
}

static void test_success_before_a_hang(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a,b");
    ended(&s, 0, 0);
    after(&s, 1000);
    happens(&s, .kind = ELASTIC_HUNG, .seat = -1);
    expect(&s, "verdict hung");
    expect_verdict(&s, ELASTIC_END_HUNG, "the job hangs; the workers do not start again");
    story_end(&s);
}

/* Its own host with all its finished workers may go without harm. */
static void test_a_host_is_lost_whose_workers_have_ended_with_zero(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a,b");
    ended(&s, 0, 0);
    lost(&s, "a");
    expect(&s, "");
    expect_state(&s, ELASTIC_RUNNING);
    ended(&s, 1, 0);
    expect(&s, "verdict success, over");
    story_end(&s);
}

/* A 0 that makes its peers ask is a crash, at the third time of the program's. */
static void test_an_early_zero_is_a_crash(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    for (int times = 1; times <= 2; times++) {
        ended(&s, 1, 0);
        asked(&s, 0);
        assert_int_equal(elastic_facts(s.e)->crashes, times);
        prepared(&s);
        started(&s);
        expect_cause(&s, "rank 1 on a exited with code 0 before its peers");
    }
    ignore(&s);
    asked(&s, 0);
    ended(&s, 1, 0); /* the other order */
    expect(&s, "verdict program fault");
    expect_verdict(&s, ELASTIC_END_FAULT,
                   "crashes on every host; the last crash: rank 1 on a exited with code 0");
    assert_int_equal(elastic_verdict(s.e)->code, 1);
    story_end(&s);
}

static void test_growing(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.renotify_ms = 5000;
    story_rejoins(&s, "a");
    hosts(&s, "a,b,c");
    came(&s, "b");
    expect(&s, "call b, call c");
    after(&s, 600);
    came(&s, "c");
    after(&s, 399);
    expect(&s, "");
    after(&s, 1); /* from the first arrival on */
    expect(&s, "notify 0");
    static const int pauses[] = {500, 1000, 2000, 4000, 5000, 5000};
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        after(&s, pauses[i] - 1);
        expect(&s, "");
        after(&s, 1);
        expect(&s, "notify 0"); /* it may have been thrown away */
    }
    hosts(&s, "a,b,c,d");
    came(&s, "d");
    after(&s, 1000);
    expect(&s, "call d, notify 0"); /* more has come */
    asked(&s, 0);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +b0 +c0 +d0");
    prepared(&s);
    started(&s);
    expect(&s, "start 2, answer 100:0, resumed 2");
    expect_cause(&s, "added b, c, d");
    assert_int_equal(elastic_facts(s.e)->grown, 1);
    after(&s, 20000);
    expect(&s, ""); /* nothing is left to tell */
    story_end(&s);
}

static void test_rank_0_is_told_as_soon_as_it_has_registered(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_runs(&s, "a:2");
    happens(&s, .kind = ELASTIC_REGISTERED, .host = 0, .local_rank = 1);
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, 60000);
    expect(&s, "call b");
    happens(&s, .kind = ELASTIC_REGISTERED, .host = 0, .local_rank = 0);
    expect(&s, "notify 0");
    story_end(&s);
}

static void test_what_comes_while_preparing_is_for_the_next_epoch(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    exited(&s, 1, 1);
    asked(&s, 0);
    hosts(&s, "a:2,b");
    came(&s, "b");
    expect(&s, "prepare 2, call b");
    prepared(&s);
    after(&s, 5000);
    expect(&s, "start 2, answer 100:0");
    started(&s);
    after(&s, 999);
    expect(&s, "resumed 2");
    after(&s, 1);
    expect(&s, "notify 0");
    story_end(&s);
}

static void test_no_growth_beyond_the_most_nor_at_the_end(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_np = 2;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:4,b");
    after(&s, 60000);
    expect(&s, "");
    story_end(&s);

    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    ended(&s, 1, 0); /* the job is about to end */
    hosts(&s, "a:2,b");
    came(&s, "b");
    after(&s, 60000);
    expect(&s, "call b");
    story_end(&s);
}

static void test_an_arrival_that_vanishes(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    story_rejoins(&s, "a");
    hosts(&s, "a,b");
    came(&s, "b");
    after(&s, 500);
    hosts(&s, "a");
    expect(&s, "call b, let go b");
    after(&s, 60000);
    expect(&s, "");
    story_end(&s);
}

static void test_draining(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b,c");
    drain_by(&s, "c", 120000);
    expect(&s, "deadline c 120000, notify 0");
    expect_host(&s, "c", ELASTIC_HOST_DRAINING);
    assert_int_equal(elastic_host_facts(s.e, 2).drain_deadline_ms, s.now + 120000);
    drain_by(&s, "c", 120000); /* told twice */
    expect(&s, "");
    drain_by(&s, "c", 30000); /* it is sooner */
    expect(&s, "deadline c 30000");
    story_rejoin(&s);
    prepared(&s);
    expect(&s, "prepare 2, start 2, answer 100:0, answer 101:1, answer 102:-1, resumed 2");
    expect_cause(&s, "draining c: preempted");
    assert_int_equal(elastic_facts(s.e)->preemptions, 1);
    ignore(&s);
    exited(&s, 2, 134);
    expect(&s, ""); /* its last output is still read */
    finished(&s, 2);
    expect(&s, "let go c");
    expect_said(&s, "c has left the job");
    expect_host(&s, "c", ELASTIC_HOST_DRAINED);
    hosts(&s, "a,b,c");
    expect(&s, ""); /* it has always been listed */
    undrain(&s, "c");
    expect(&s, "call c");
    story_end(&s);
}

static void test_drained_too_late(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.failure_limit = 1;
    s.config.max_preemptions = 0; /* counts restarts alone */
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 1000);
    lost(&s, "b");
    asked(&s, 0);
    expect(&s, "deadline b 1000, notify 0, prepare 2");
    assert_int_equal(elastic_host_facts(s.e, 1).blacklisted_until_ms, 0); /* a preemption */
    assert_int_equal(elastic_facts(s.e)->hosts_lost, 0);
    after(&s, 1000);
    expect(&s, "call b");
    came(&s, "b"); /* the same machine is not used */
    expect(&s, "let go b");
    expect_host(&s, "b", ELASTIC_HOST_DRAINED);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 1000);
    lost(&s, "b");
    after(&s, 1000);
    came_as(&s, "b", "another machine");
    asked(&s, 0);
    expect(&s, "deadline b 1000, notify 0, call b, prepare 2");
    expect_members(&s, "a0 +b0");
    story_end(&s);
}

static void test_a_drain_is_taken_back(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 20000);
    assert_string_equal(s.actions.items[0].text, "preempted");
    drain_by(&s, "b", -1); /* less is known than before */
    undrain(&s, "b");
    expect(&s, "deadline b 20000, notify 0, deadline b none");
    expect_host(&s, "b", ELASTIC_HOST_UP);
    assert_int_equal(elastic_host_facts(s.e, 1).drain_deadline_ms, -1);
    story_rejoin(&s); /* they were told, and find nothing changed */
    expect(&s, "prepare 2");
    expect_members(&s, "a0 b0");
    prepared(&s);
    after(&s, 60000);
    expect(&s, "start 2, answer 100:0, answer 101:1, resumed 2");
    story_end(&s);
}

/* Its name is listed for another machine, for which the job waits: its workers must go first. */
static void test_a_drained_host_is_listed_again(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 2;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", -1);
    story_rejoin(&s);
    expect(&s, "notify 0");
    expect_state(&s, ELASTIC_WAITING);
    hosts(&s, "a");
    hosts(&s, "a,b");
    expect(&s, "answer 101:-1");
    exited(&s, 1, 134);
    finished(&s, 1);
    expect(&s, "let go b, call b");
    came(&s, "b");
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +b0");
    story_end(&s);

    story_config(&s)->np = 2; /* nobody else has the state */
    s.config.min_np = 1;
    story_rejoins(&s, "a:2");
    drain_by(&s, "a", -1);
    hosts(&s, "");
    hosts(&s, "a:2");
    ignore(&s);
    ended(&s, 0, 1);
    asked(&s, 1);
    expect_said(&s, "no worker that holds the job's state remains");
    expect_state(&s, ELASTIC_STOPPING);
    all_end(&s, 15);
    came(&s, "a");
    expect(&s, "end all 30000, let go a, call a, prepare 2");
    story_end(&s);
}

/* No commit comes before the machine goes: its workers do not hold up the others. */
static void test_the_time_of_a_drained_host_is_over(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.renotify_ms = 1000000;
    story_rejoins(&s, "a,b:2");
    drain_by(&s, "b", 20000);
    expect(&s, "deadline b 20000, notify 0");
    after(&s, 20000);
    expect(&s, "kill 2, kill 1");
    expect_state(&s, ELASTIC_AGREEING);
    expect_said(&s, "the deadline for draining b has passed; the other workers rejoin");
    asked(&s, 0);
    signaled(&s, 1, 9);
    signaled(&s, 2, 9);
    expect(&s, "prepare 2");
    expect_members(&s, "a0");
    assert_int_equal(elastic_facts(s.e)->crashes, 0);
    assert_int_equal(elastic_facts(s.e)->hosts_lost, 0);
    story_end(&s);

    story_config(&s)->np = 2; /* the same while too few are there */
    s.config.min_np = 2;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 20000);
    story_rejoin(&s);
    expect_state(&s, ELASTIC_WAITING);
    ignore(&s);
    after(&s, 20000);
    expect(&s, "kill 1");
    hosts(&s, "a,b,c");
    came(&s, "c");
    expect(&s, "call c");
    signaled(&s, 1, 9);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 +c0");
    story_end(&s);
}

/* The replacement has the name of the machine that is still being left. */
static void test_listed_anew_while_leaving(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", -1);
    hosts(&s, "a");
    hosts(&s, "a,b");
    expect_host(&s, "b", ELASTIC_HOST_DRAINING);
    story_rejoin(&s);
    prepared(&s);
    expect(&s, "notify 0, prepare 2, start 2, answer 100:0, answer 101:-1, resumed 2");
    ended(&s, 1, 134);
    expect(&s, "let go b, call b");
    came(&s, "b"); /* the listing is newer than the drain, whatever machine it is */
    expect_host(&s, "b", ELASTIC_HOST_UP);
    story_end(&s);
}

static void test_not_listed_any_more(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    hosts(&s, "a");
    expect(&s, "notify 0");
    expect_said(&s, "b is not listed any more");
    hosts(&s, "a,b"); /* it was a mistake */
    expect_host(&s, "b", ELASTIC_HOST_UP);
    hosts(&s, "a");
    story_rejoin(&s);
    prepared(&s);
    ended(&s, 1, 134);
    expect(&s, "notify 0, prepare 2, start 2, answer 100:0, answer 101:-1, resumed 2, let go b");
    expect_host(&s, "b", ELASTIC_HOST_ABSENT);
    story_end(&s);
}

static void test_a_drain_disturbs_what_is_prepared(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b,c");
    lost(&s, "c");
    story_rejoin(&s);
    expect(&s, "prepare 2");
    drain_by(&s, "b", -1);
    expect(&s, "cancel 2, prepare 3");
    expect_members(&s, "a0");
    prepared(&s);
    expect(&s, "start 3, answer 100:0, answer 101:-1, resumed 3");
    expect_cause(&s, "lost c: no heartbeat; draining b: preempted");
    story_end(&s);
}

static void test_draining_what_has_no_worker(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.spares = 2;
    story_begin(&s);
    hosts(&s, "a,b,c,d");
    came(&s, "a");
    came(&s, "b");
    expect(&s, "call a, call b, call c, prepare 1");
    drain_by(&s, "b", 1000);
    expect(&s, "let go b, call d");
    expect_host(&s, "b", ELASTIC_HOST_DRAINED);
    drain_by(&s, "c", -1); /* it is being called */
    expect(&s, "let go c");
    expect_host(&s, "c", ELASTIC_HOST_DRAINED);
    drain_by(&s, "a", -1); /* it is planned on */
    expect(&s, "cancel 1, let go a");
    came(&s, "d");
    expect(&s, "prepare 2");
    expect_members(&s, "+d0");
    story_end(&s);
}

static void test_reset_limit(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.reset_limit = 1;
    story_rejoins(&s, "a:2");
    exited(&s, 1, 1);
    asked(&s, 0);
    prepared(&s);
    started(&s);
    expect(&s, "prepare 2, start 2, answer 100:0, resumed 2");
    hosts(&s, "a:3"); /* it would end the job: it does not grow */
    after(&s, 10000);
    expect(&s, "");
    exited(&s, 0, 5);
    expect(&s, "verdict reset limit");
    expect_verdict(&s, ELASTIC_END_RESET_LIMIT,
                   "1 allowed (--reset-limit); the last: rank 0 on a exited with code 5");
    assert_int_equal(elastic_verdict(s.e)->code, 5);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.reset_limit = 0;
    story_rejoins(&s, "a:2");
    exited(&s, 1, 0); /* its peer asks at once: that was no success */
    asked(&s, 0);
    expect(&s, "verdict reset limit");
    assert_int_equal(elastic_verdict(s.e)->code, 1);
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.reset_limit = 0;
    story_rejoins(&s, "a,b");
    lost(&s, "b");
    expect(&s, "verdict reset limit");
    assert_int_equal(elastic_verdict(s.e)->code, 0);
    assert_string_equal(story_host(&s, elastic_verdict(s.e)->host), "b");
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_RESTART;
    s.config.reset_limit = 0;
    story_rejoins(&s, "a:2");
    asked(&s, 1); /* and nobody has failed */
    expect(&s, "verdict reset limit");
    expect_verdict(&s, ELASTIC_END_RESET_LIMIT, "; the last: rank 1 on a asked to rejoin");
    story_end(&s);
}

/* It is not overruled by what the job waited for. */
static void test_the_driver_ends_a_job_that_waits(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 2;
    s.config.elastic_timeout_ms = 1000;
    story_rejoins(&s, "a,b");
    lost(&s, "b");
    asked(&s, 0);
    expect_state(&s, ELASTIC_WAITING);
    happens(&s, .kind = ELASTIC_END);
    ignore(&s);
    after(&s, 2000);
    expect(&s, "");
    assert_int_equal(elastic_verdict(s.e)->end, ELASTIC_END_DRIVER);
    story_end(&s);
}

static void test_each_rank_has_a_limit_to_rejoin(void **state)
{
    (void)state;
    for (int late = 0; late < 3; late++) {
        struct story s;
        story_config(&s)->np = 3;
        s.config.min_np = 1;
        story_rejoins(&s, "a:3");
        ended(&s, (late + 1) % 3, 1);
        asked(&s, (late + 2) % 3);
        ignore(&s);
        after(&s, s.config.rejoin_timeout_ms - 1);
        expect(&s, "");
        after(&s, 1);
        char kill[16];
        snprintf(kill, sizeof(kill), "kill %d", late);
        expect(&s, kill);
        expect_said(&s, "did not rejoin within");
        story_end(&s);
    }
}

/* Its worker ends already, so nobody would read the notice. */
static void test_rank_0_has_ended_when_a_host_drains(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    story_rejoins(&s, "a,b");
    exited(&s, 0, 0);
    drain_by(&s, "b", 20000);
    expect(&s, "deadline b 20000");
    story_end(&s);
}

static void test_stop(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_STOP;
    story_rejoins(&s, "a,b");
    hosts(&s, "a,b,c"); /* it grows all the same */
    came(&s, "c");
    after(&s, 1000);
    story_rejoin(&s);
    prepared(&s);
    started(&s);
    expect(&s, "call c, notify 0, prepare 2, start 2, answer 100:0, answer 101:1, resumed 2");
    exited(&s, 1, 9);
    expect(&s, "verdict crash");
    expect_verdict(&s, ELASTIC_END_CRASH, "rank 1 on b exited with code 9");
    story_end(&s);

    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_STOP;
    story_rejoins(&s, "a,b");
    asked(&s, 0); /* nothing has failed yet */
    expect(&s, "");
    lost(&s, "b");
    expect(&s, "verdict host lost");
    expect_verdict(&s, ELASTIC_END_HOST_LOST, "lost b: no heartbeat");
    story_end(&s);
}

static void test_the_driver_ends_the_job(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a,b");
    asked(&s, 0);
    happens(&s, .kind = ELASTIC_END);
    expect(&s, "");
    expect_state(&s, ELASTIC_ENDING);
    expect_verdict(&s, ELASTIC_END_DRIVER, "");
    asked(&s, 1); /* nothing is decided any more */
    hosts(&s, "a,b,c");
    exited(&s, 0, 1);
    finished(&s, 0);
    expect(&s, "");
    lost(&s, "b");
    expect(&s, "over");
    happens(&s, .kind = ELASTIC_END);
    happens(&s, .kind = ELASTIC_TICK);
    expect(&s, "");
    story_end(&s);
}

/* After the verdict, what has exited is still read for long, who lives is not waited for. */
static void test_limits_of_the_end(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.mode = ELASTIC_STOP;
    story_rejoins(&s, "a,b");
    exited(&s, 0, 1);
    after(&s, 39999);
    expect(&s, "verdict crash");
    after(&s, 1);
    expect(&s, "give up b");
    after(&s, 599999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "give up a, over");
    story_end(&s);
}

static void test_news_that_does_not_fit(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_rejoins(&s, "a:2");
    const int64_t deadline = elastic_deadline(s.e);
    happens(&s, .kind = ELASTIC_STARTED, .seat = 0);
    happens(&s, .kind = ELASTIC_STARTED, .seat = 99);
    happens(&s, .kind = ELASTIC_EXITED, .seat = -1, .code = 1);
    happens(&s, .kind = ELASTIC_EXITED, .seat = 2, .code = 1);
    happens(&s, .kind = ELASTIC_FINISHED, .seat = 0);
    happens(&s, .kind = ELASTIC_PREPARED, .epoch = 1);
    happens(&s, .kind = ELASTIC_PREPARE_FAILED, .epoch = 1, .host = 0, .text = "late");
    happens(&s, .kind = ELASTIC_HOST_CAME, .host = 0);
    happens(&s, .kind = ELASTIC_HOST_UNREACHED, .host = 0);
    happens(&s, .kind = ELASTIC_HOST_LOST, .host = 4);
    happens(&s, .kind = ELASTIC_HOST_DRAIN, .host = -1);
    happens(&s, .kind = ELASTIC_HOST_UNDRAIN, .host = 0);
    happens(&s, .kind = ELASTIC_ASK_DROPPED, .request = 5);
    happens(&s, .kind = ELASTIC_TICK);
    expect(&s, "");
    expect_silence(&s);
    expect_state(&s, ELASTIC_RUNNING);
    assert_int_equal(elastic_deadline(s.e), deadline);
    exited(&s, 0, 3);
    exited(&s, 0, 3); /* twice */
    assert_int_equal(elastic_facts(s.e)->crashes, 1);
    story_end(&s);
}

/* Asking is proof enough that a worker can rejoin: it need not have registered. */
static void test_asking_without_having_registered(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 2;
    story_runs(&s, "a:3");
    asked(&s, 0);
    asked(&s, 1);
    exited(&s, 2, 1);
    expect(&s, "prepare 2");
    expect_members(&s, "a0 a1 +a2");
    story_end(&s);
}

static void test_no_growth_without_a_reset(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.reset_limit = 0;
    story_rejoins(&s, "a:2");
    hosts(&s, "a:3");
    after(&s, 60000);
    expect(&s, "");
    story_end(&s);
}

static void test_the_time_of_a_host_with_one_worker_is_over(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.min_np = 1;
    s.config.renotify_ms = 1000000;
    story_rejoins(&s, "a,b");
    drain_by(&s, "b", 20000);
    expect(&s, "deadline b 20000, notify 0");
    after(&s, 20000);
    expect(&s, "kill 1");
    expect_state(&s, ELASTIC_AGREEING);
    expect_said(&s, "the deadline for draining b has passed; the other workers rejoin");
    story_end(&s);
}

/* The lost time begins with the failure, also where the asking of its peers was heard before. */
static void test_the_lost_time_begins_with_the_failure(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    story_rejoins(&s, "a:3");
    after(&s, 1000);
    asked(&s, 0);
    after(&s, 100);
    exited_at(&s, 1, 7, s.now - 600);
    asked(&s, 2);
    after(&s, 400);
    prepared(&s);
    started(&s);
    assert_int_equal(elastic_facts(s.e)->lost_ms, 1000);
    story_end(&s);
}

/* A host that we give up counts as one that failed, although others failed before it. */
static void test_a_host_that_is_given_up_counts(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.min_np = 1;
    s.config.failure_limit = 1;
    s.config.max_restarts = -1;
    story_rejoins(&s, "a:3,b:1,c:1");
    lost(&s, "c");
    for (int seat = 0; seat < elastic_seat_count(s.e); seat++)
        if (elastic_worker_facts(s.e, seat).host == 0 && sits(&s, seat, ELASTIC_WORKER_RUNNING))
            asked(&s, seat);
    after(&s, 60000);
    ignore(&s);
    after(&s, 10000);
    expect(&s, "give up b, host bad b (it was lost 1 time, the last time: its agent did not "
               "terminate a worker in time), prepare 2");
    assert_true(elastic_host_facts(s.e, number(&s, "b")).blacklisted_until_ms > 0);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_crashes),
        cmocka_unit_test(test_a_seat_is_not_given_away_before_its_worker_has_finished),
        cmocka_unit_test(test_a_host_is_lost),
        cmocka_unit_test(test_a_spare_takes_over),
        cmocka_unit_test(test_other_members_fail),
        cmocka_unit_test(test_a_survivor_hangs),
        cmocka_unit_test(test_a_survivor_cannot_even_be_killed),
        cmocka_unit_test(test_not_yet_started_when_a_peer_fails),
        cmocka_unit_test(test_asking_for_no_visible_reason),
        cmocka_unit_test(test_the_cause_comes_later),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_a_survivor_hangs_up),
        cmocka_unit_test(test_a_survivor_hangs_up_and_dies),
        cmocka_unit_test(test_a_survivor_dies_while_preparing),
        cmocka_unit_test(test_fewer_slots),
        cmocka_unit_test(test_a_removed_worker_lingers),
        cmocka_unit_test(test_below_the_least),
        cmocka_unit_test(test_a_death_in_the_rendezvous),
        cmocka_unit_test(test_every_worker_fails),
        cmocka_unit_test(test_the_host_with_all_workers_is_lost),
        cmocka_unit_test(test_all_survivors_are_on_hosts_that_are_left),
        cmocka_unit_test(test_the_set_up_fails),
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_success_with_output_lost),
        cmocka_unit_test(test_success_does_not_wait_for_the_removed),
        cmocka_unit_test(test_an_early_zero),
        cmocka_unit_test(test_a_zero_long_before),
        cmocka_unit_test(test_success_before_the_last_host_is_lost),
        cmocka_unit_test(test_success_before_the_last_worker_crashes),
        cmocka_unit_test(test_success_after_the_last_host_is_lost),
        cmocka_unit_test(test_success_and_a_rank_that_does_not_rejoin),
        cmocka_unit_test(test_success_before_a_hang),
        cmocka_unit_test(test_a_host_is_lost_whose_workers_have_ended_with_zero),
        cmocka_unit_test(test_an_early_zero_is_a_crash),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_rank_0_is_told_as_soon_as_it_has_registered),
        cmocka_unit_test(test_what_comes_while_preparing_is_for_the_next_epoch),
        cmocka_unit_test(test_no_growth_beyond_the_most_nor_at_the_end),
        cmocka_unit_test(test_an_arrival_that_vanishes),
        cmocka_unit_test(test_draining),
        cmocka_unit_test(test_drained_too_late),
        cmocka_unit_test(test_a_drain_is_taken_back),
        cmocka_unit_test(test_a_drained_host_is_listed_again),
        cmocka_unit_test(test_the_time_of_a_drained_host_is_over),
        cmocka_unit_test(test_listed_anew_while_leaving),
        cmocka_unit_test(test_not_listed_any_more),
        cmocka_unit_test(test_a_drain_disturbs_what_is_prepared),
        cmocka_unit_test(test_draining_what_has_no_worker),
        cmocka_unit_test(test_reset_limit),
        cmocka_unit_test(test_the_driver_ends_a_job_that_waits),
        cmocka_unit_test(test_each_rank_has_a_limit_to_rejoin),
        cmocka_unit_test(test_rank_0_has_ended_when_a_host_drains),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_the_driver_ends_the_job),
        cmocka_unit_test(test_limits_of_the_end),
        cmocka_unit_test(test_news_that_does_not_fit),
        cmocka_unit_test(test_asking_without_having_registered),
        cmocka_unit_test(test_no_growth_without_a_reset),
        cmocka_unit_test(test_the_time_of_a_host_with_one_worker_is_over),
        cmocka_unit_test(test_the_lost_time_begins_with_the_failure),
        cmocka_unit_test(test_a_host_that_is_given_up_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
