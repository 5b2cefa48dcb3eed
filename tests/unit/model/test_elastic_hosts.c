/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic jobs: which hosts are called, kept, left alone and given another chance; how a job
 * begins. */
#include "model/elastic_story.h"

#include "base/log.h"
#include "model/elastic/hosts.h"
#include "model/elastic/job.h"

static void test_a_job_begins(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    story_begin(&s);
    assert_null(elastic_plan(s.e));
    hosts(&s, "a:2,b:2");
    expect(&s, "call a, call b");
    came(&s, "a");
    expect(&s, "");
    expect_state(&s, ELASTIC_WAITING);
    came(&s, "b");
    expect(&s, "prepare 1");
    expect_members(&s, "+a0 +a1 +b0 +b1");
    assert_true(elastic_plan(s.e)->fresh);
    assert_int_equal(elastic_plan(s.e)->restart_count, 0);
    assert_int_equal(elastic_worker_facts(s.e, 0).state, ELASTIC_WORKER_PLANNED);
    prepared(&s);
    expect(&s, "start 1");
    started(&s);
    expect(&s, "resumed 1");
    expect_cause(&s, "");
    assert_int_equal(elastic_facts(s.e)->mode, ELASTIC_AUTO);
    assert_int_equal(elastic_facts(s.e)->size, 4);
    for (int seat = 0; seat < 4; seat++)
        assert_int_equal(elastic_worker_facts(s.e, seat).rank, seat);
    assert_int_equal(elastic_deadline(s.e), -1);
    expect_silence(&s);
    story_end(&s);
}

/* It says so if that is long. It ends before the job would give up. */
static void test_the_first_epoch_waits_long_for_more(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct story s;
        struct elastic_config *config = story_config(&s);
        config->max_np = 3;
        config->gather_ms = 30000;
        config->elastic_timeout_ms = i == 0 ? 600000 : 20000;
        story_begin(&s);
        hosts(&s, "a,b,c");
        came(&s, "a");
        expect(&s, "call a, call b, call c");
        expect_said(&s, i == 0 ? "1 slot is enough to start; waiting 30 s for more hosts"
                               : "waiting 19 s for more hosts");
        if (i == 0) {
            came(&s, "b");
            after(&s, 29000);
            expect(&s, "");
            came(&s, "c"); /* the last one */
            expect(&s, "prepare 1");
            expect_members(&s, "+a0 +b0 +c0");
        } else {
            after(&s, 20000);
            expect(&s, "prepare 1");
            expect_members(&s, "+a0");
        }
        story_end(&s);
    }
}

static void test_the_first_epoch_waits_a_little_for_more(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a:2,b:2,c:2");
    came(&s, "a");
    after(&s, 500);
    came(&s, "b");
    expect(&s, "call a, call b, call c");
    after(&s, 499);
    expect(&s, "");
    after(&s, 1); /* counted from the moment when a was enough */
    expect(&s, "prepare 1");
    expect_members(&s, "+a0 +a1 +b0 +b1");
    story_end(&s);
}

static void test_it_does_not_wait_for_who_cannot_come(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a:2,b:2");
    came(&s, "a");
    expect(&s, "call a, call b");
    unreached(&s, "b", "connection refused");
    expect(&s, "prepare 1");
    expect_said(&s, "b: connection refused");
    story_end(&s);
}

static void test_it_does_not_wait_for_more_than_may_be(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_np = 3;
    story_begin(&s);
    hosts(&s, "a:2,b:2,c:2");
    expect(&s, "call a, call b"); /* 4 slots are enough for 3 */
    came(&s, "b");
    expect(&s, "");
    came(&s, "a");
    expect(&s, "prepare 1");
    expect_members(&s, "+a0 +a1 +b0");
    story_end(&s);
}

static void test_spares_are_kept_up(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    s.config.max_np = 4;
    s.config.spares = 1;
    story_begin(&s);
    hosts(&s, "a:2,b:2,c:2,d:2");
    expect(&s, "call a, call b, call c");
    unreached(&s, "a", "no route");
    expect(&s, "call d");
    came(&s, "b");
    came(&s, "c");
    came(&s, "d");
    expect(&s, "prepare 1");
    expect_members(&s, "+b0 +b1 +c0 +c1");
    assert_true(elastic_host_facts(s.e, number(&s, "d")).spare);
    assert_false(elastic_host_facts(s.e, number(&s, "c")).spare);
    prepared(&s);
    started(&s);
    expect(&s, "start 1, resumed 1");
    after(&s, 100000); /* a's retry is due, and not needed */
    expect(&s, "");
    lost(&s, "b");
    expect(&s, "end all 30000, call a"); /* as the spare instead of d */
    story_end(&s);
}

/* A host that does not answer must not keep others from being asked. */
static void test_a_call_takes_long(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.max_np = 2;
    story_begin(&s);
    hosts(&s, "dead:2,alive:2");
    expect(&s, "call dead");
    after(&s, 4999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "call alive");
    came(&s, "alive");
    expect(&s, "prepare 1");
    prepared(&s);
    started(&s);
    unreached(&s, "dead", "timed out");
    after(&s, 100000);
    expect(&s, "start 1, resumed 1");
    assert_int_equal(elastic_deadline(s.e), -1);
    story_end(&s);
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    story_begin(&s);
    hosts(&s, "dead,alive");
    after(&s, 5000);
    expect(&s, "call dead, call alive");
    story_end(&s);
}

/* No host that could be used is left out when the job gives up: in the second half of the time all
 * are called, side by side. */
static void test_the_time_becomes_short(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.elastic_timeout_ms = 6000;
    story_begin(&s);
    hosts(&s, "dead,silent,alive");
    after(&s, 2999);
    expect(&s, "call dead");
    after(&s, 1);
    expect(&s, "call silent, call alive");
    hosts(&s, "dead,silent,alive,more");
    expect(&s, "call more");
    came(&s, "alive");
    expect(&s, "prepare 1");
    prepared(&s);
    started(&s);
    expect(&s, "start 1, resumed 1");
    hosts(&s, "dead,silent,alive,more,one"); /* nobody else is needed */
    expect(&s, "");
    story_end(&s);
}

/* A host that is listed while much time is left is called only if it is needed. */
static void test_much_time_is_left(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.elastic_timeout_ms = 600 * 1000;
    story_begin(&s);
    after(&s, 569999);
    hosts(&s, "a,b,c");
    expect(&s, "call a");
    after(&s, 1);
    expect(&s, "call b, call c");
    story_end(&s);
}

/* A job that has enough slots and waits for more does not give up. */
static void test_no_need_while_it_gathers(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 2;
    s.config.elastic_timeout_ms = 6000;
    story_begin(&s);
    after(&s, 2500);
    hosts(&s, "a,b,c,d");
    came(&s, "a");
    expect(&s, "call a, call b");
    after(&s, 500);
    expect(&s, "");
    story_end(&s);
}

/* The half counts from the moment when the wait begins. */
static void test_the_time_becomes_short_after_a_loss(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.elastic_timeout_ms = 6000;
    story_begin(&s);
    hosts(&s, "a,b,c");
    came(&s, "a");
    prepared(&s);
    started(&s);
    after(&s, 100000);
    expect(&s, "call a, prepare 1, start 1, resumed 1");
    lost(&s, "a");
    expect_state(&s, ELASTIC_WAITING);
    expect(&s, "end all 30000, call b");
    after(&s, 1000);
    elastic_wait_anew(s.e, s.now);
    after(&s, 2999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "call a, call c");
    after(&s, 2999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "verdict no hosts, over");
    story_end(&s);
}

static void test_a_problem_is_said_once(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    story_begin(&s);
    hosts(&s, "a");
    unreached(&s, "a", "refused");
    expect_said(&s, "a: refused; hvdrun will try again");
    ignore(&s);
    after(&s, s.config.reconnect_max_ms);
    unreached(&s, "a", "refused");
    expect_silence(&s);
    after(&s, s.config.reconnect_max_ms);
    unreached(&s, "a", "timed out");
    expect_said(&s, "a: timed out; hvdrun will try again");
    story_end(&s);
}

static void test_cooldowns(void **state)
{
    (void)state;
    struct elastic_host host = {.slots = 1};
    struct elastic_hosts hosts = {.items = &host, .count = 1, .due_ms = INT64_MAX};
    struct elastic_config config = {
        .failure_limit = 1, .cooldown_min_ms = 1, .cooldown_max_ms = 3, .failure_decay_ms = 1000};
    static const int64_t until[] = {101, 102, 103, 103}; /* doubling, up to the longest */
    for (size_t i = 0; i < sizeof(until) / sizeof(until[0]); i++) {
        elastic_hosts_blacklist(&hosts, 0, -1, &config, 100);
        assert_int_equal(host.record.blacklisted_until_ms, until[i]);
    }
    assert_false(elastic_hosts_end_cooldowns(&host, 102));
    assert_true(elastic_hosts_end_cooldowns(&host, 103));
    assert_false(elastic_hosts_end_cooldowns(&host, 104));
    config.cooldown_min_ms = 0;
    elastic_hosts_blacklist(&hosts, 0, -1, &config, 100);
    assert_int_equal(host.record.blacklisted_until_ms, ELASTIC_FOR_GOOD);
}

/* The call of another one begins at once. */
static void test_a_host_that_is_called_drains(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    story_begin(&s);
    hosts(&s, "a,b");
    expect(&s, "call a");
    drain_by(&s, "a", -1);
    expect(&s, "let go a, call b");
    expect_host(&s, "a", ELASTIC_HOST_DRAINED);
    story_end(&s);
}

static void test_spares_are_used_where_np_is_not_reached(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.spares = 2;
    story_begin(&s);
    hosts(&s, "a:2,b:2,c:2");
    came(&s, "a");
    came(&s, "b");
    came(&s, "c");
    expect(&s, "call a, call b, call c, prepare 1");
    expect_members(&s, "+a0 +a1 +b0 +b1");
    story_end(&s);
}

static void test_too_few_for_too_long(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 3;
    s.config.elastic_timeout_ms = 20000;
    story_begin(&s);
    hosts(&s, "a:1,b:2");
    came(&s, "a");
    unreached(&s, "b", "connection refused");
    expect(&s, "call a, call b");
    after(&s, 19999);
    expect_state(&s, ELASTIC_WAITING);
    ignore(&s);
    after(&s, 1);
    expect(&s, "verdict no hosts, over");
    expect_verdict(&s, ELASTIC_END_NO_HOSTS, "3 wanted, 1 found (b: connection refused)");
    expect_state(&s, ELASTIC_DONE);
    assert_int_equal(elastic_deadline(s.e), -1);
    story_end(&s);
}

static void test_more_hosts_come_while_waiting(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "");
    after(&s, 60000);
    hosts(&s, "a");
    expect(&s, "call a");
    came(&s, "a");
    after(&s, 60000);
    expect_state(&s, ELASTIC_WAITING);
    hosts(&s, "a,b");
    came(&s, "b");
    expect(&s, "call b, prepare 1");
    story_end(&s);
}

static void test_hosts_that_are_not_listed_any_more(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 9;
    story_begin(&s);
    hosts(&s, "a,b,c");
    came(&s, "a");
    expect(&s, "call a, call b, call c");
    unreached(&s, "c", "no route");
    hosts(&s, "d");
    expect(&s, "let go b, let go a, call d");
    expect_host(&s, "a", ELASTIC_HOST_ABSENT);
    expect_host(&s, "b", ELASTIC_HOST_ABSENT);
    expect_host(&s, "c", ELASTIC_HOST_ABSENT);
    assert_int_equal(elastic_host_number(s.e, "c"), 2); /* for the whole job */
    hosts(&s, "c,d");
    expect(&s, "call c");
    came(&s, "b"); /* too late: it was let go */
    expect_host(&s, "b", ELASTIC_HOST_ABSENT);
    assert_int_equal(elastic_host_number(s.e, "nobody"), -1);
    story_end(&s);
}

static void test_calls_are_repeated_ever_more_rarely(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 9;
    s.config.reconnect_max_ms = 4000;
    story_begin(&s);
    hosts(&s, "a");
    expect(&s, "call a");
    const int64_t waits[] = {1000, 2000, 4000, 4000};
    for (int i = 0; i < 4; i++) {
        unreached(&s, "a", "refused");
        after(&s, waits[i] - 1);
        expect(&s, "");
        after(&s, 1);
        expect(&s, "call a");
    }
    expect_said(&s, "a: refused");
    came(&s, "a");
    after(&s, 59999);
    lost(&s, "a"); /* it was not up for a minute */
    after(&s, 3999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "call a");
    came(&s, "a");
    after(&s, 60000);
    lost(&s, "a");
    after(&s, 999);
    expect(&s, "");
    after(&s, 1);
    expect(&s, "call a");
    story_end(&s);
}

static void test_a_host_that_cannot_be_prepared(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a:2,b:2");
    came(&s, "a");
    came(&s, "b");
    expect(&s, "call a, call b, prepare 1");
    prepare_failed(&s, "b", "no such directory");
    expect(&s, "cancel 1, prepare 2");
    expect_members(&s, "+a0 +a1");
    expect_said(&s, "b is blacklisted for the rest of the job: no such directory");
    happens(&s, .kind = ELASTIC_PREPARED, .epoch = 1); /* stale */
    expect(&s, "");
    prepared(&s);
    expect(&s, "start 2");
    story_end(&s);
}

static void test_nowhere_can_it_be_prepared(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 4;
    story_begin(&s);
    hosts(&s, "a:2,b:2");
    came(&s, "a");
    came(&s, "b");
    prepare_failed(&s, "a", "program not found");
    expect(&s, "call a, call b, prepare 1, cancel 1");
    expect_state(&s, ELASTIC_WAITING);
    prepare_failed(&s, "b", "program not found"); /* of the cancelled epoch: true all the same */
    expect(&s, "verdict prepare, over");
    expect_verdict(&s, ELASTIC_END_PREPARE, "b: program not found");
    assert_int_equal(elastic_verdict(s.e)->code, 127);
    story_end(&s);
}

static void test_preparing_has_a_limit(void **state)
{
    (void)state;
    struct story s;
    story_config(&s);
    s.config.prepare_timeout_ms = 7000;
    story_begin(&s);
    hosts(&s, "a");
    came(&s, "a");
    after(&s, 6999);
    expect(&s, "call a, prepare 1");
    after(&s, 1);
    expect(&s, "verdict prepare, over");
    expect_verdict(&s, ELASTIC_END_PREPARE, "within 7 s");
    story_end(&s);
}

/* A restart may wait for something before it is prepared, its start may not. */
static void test_a_restart_may_be_held(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->mode = ELASTIC_RESTART;
    s.config.prepare_timeout_ms = 7000;
    s.config.hold_ms = 60000;
    story_runs(&s, "a");
    exited(&s, 0, 1);
    all_end(&s, 9);
    ignore(&s);
    after(&s, 66999);
    expect(&s, "");
    after(&s, 1);
    expect_verdict(&s, ELASTIC_END_PREPARE, "within 67 s");
    story_end(&s);

    story_config(&s)->mode = ELASTIC_RESTART;
    s.config.prepare_timeout_ms = 7000;
    s.config.hold_ms = 60000;
    story_runs(&s, "a");
    exited(&s, 0, 1);
    all_end(&s, 9);
    prepared(&s);
    ignore(&s);
    after(&s, 6999);
    expect(&s, "");
    after(&s, 1); /* nothing has started */
    expect(&s, "give up a, end all 30000");
    story_end(&s);
}

static void test_a_host_is_lost_while_preparing(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a:2,b:2,c:2");
    came(&s, "a");
    came(&s, "b");
    came(&s, "c");
    expect(&s, "call a, call b, call c, prepare 1");
    lost(&s, "a");
    expect(&s, "cancel 1, prepare 2");
    expect_members(&s, "+b0 +b1 +c0 +c1");
    assert_int_equal(elastic_plan(s.e)->members[0].seat, 0);
    story_end(&s);
}

static void test_a_spare_is_lost_while_preparing(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.spares = 1;
    story_begin(&s);
    hosts(&s, "a,b");
    came(&s, "a");
    came(&s, "b");
    expect(&s, "call a, call b, prepare 1");
    lost(&s, "b");
    expect(&s, "");
    expect_said(&s, "lost b: no heartbeat");
    prepared(&s);
    expect(&s, "start 1");
    story_end(&s);
}

static void test_a_started_worker_never_appears(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a,b");
    came(&s, "a");
    came(&s, "b");
    prepared(&s);
    happens(&s, .kind = ELASTIC_STARTED, .seat = 0);
    expect(&s, "call a, call b, prepare 1, start 1");
    after(&s, 60000);
    expect(&s, "give up b, end all 30000");
    story_end(&s);
}

static void test_discovery_fails(void **state)
{
    (void)state;
    struct story s;
    story_config(&s);
    story_begin(&s);
    hosts(&s, "a");
    for (int i = 0; i < 3; i++)
        happens(&s, .kind = ELASTIC_DISCOVERY_FAILED, .text = "the script ended with 1");
    assert_string_equal(buf_text(&s.said),
                        "the script ended with 1; hvdrun keeps the hosts that it found before\n");
    ignore(&s);
    hosts(&s, "a");
    happens(&s, .kind = ELASTIC_DISCOVERY_FAILED, .text = "the script ended with 1");
    expect_said(&s, "ended with 1"); /* it had worked in between */
    story_end(&s);

    story_config(&s);
    story_begin(&s);
    happens(&s, .kind = ELASTIC_DISCOVERY_FAILED, .text = "the script ended with 1", .first = true);
    expect(&s, "verdict discovery, over");
    expect_verdict(&s, ELASTIC_END_DISCOVERY, "the script ended with 1");
    story_end(&s);
}

/* Lost three times within ten minutes, a host is left alone; as another machine it may come back.
 */
static void test_a_flapping_host(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 9;
    s.config.elastic_timeout_ms = 10000000;
    s.config.cooldown_min_ms = 100000;
    s.config.cooldown_max_ms = 150000;
    story_begin(&s);
    hosts(&s, "a");
    for (int times = 1; times <= 2; times++) {
        for (int i = 0; i < 3; i++) {
            came(&s, "a");
            lost(&s, "a");
            if (i < 2)
                after(&s, 60000);
        }
        expect_said(&s, times == 1 ? "a is blacklisted for 100 s: it was lost 3 times"
                                   : "a is blacklisted for 150 s: it was lost 3 times");
        ignore(&s);
        after(&s, times == 1 ? 99999 : 149999);
        expect(&s, "");
        after(&s, 1);
        expect(&s, "call a");
        expect_said(&s, "a cooldown on a is over");
    }
    came_as(&s, "a", "another machine");
    for (int i = 0; i < 2; i++) {
        lost(&s, "a");
        after(&s, 60000);
        came_as(&s, "a", "another machine");
    }
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, 0);
    came_as(&s, "a", "another machine"); /* twice: changes nothing */
    lost(&s, "a");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, s.now + 100000);
    story_end(&s);
}

static void test_failures_are_forgotten(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 9;
    s.config.elastic_timeout_ms = 10000000;
    story_begin(&s);
    hosts(&s, "a");
    for (int i = 0; i < 5; i++) {
        came(&s, "a");
        lost(&s, "a");
        after(&s, 600000);
    }
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, 0);
    came(&s, "a");
    lost(&s, "a");
    after(&s, 60000);
    came(&s, "a");
    lost(&s, "a");
    after(&s, 60000);
    came(&s, "a");
    lost(&s, "a");
    assert_true(elastic_host_facts(s.e, 0).blacklisted_until_ms == INT64_MAX); /* no cool-down */
    expect_said(&s, "a is blacklisted for the rest of the job: it was lost 3 times");
    hosts(&s, "b");
    ignore(&s);
    hosts(&s, "a,b"); /* somebody has that name now */
    expect(&s, "call a");
    unreached(&s, "a", "refused"); /* it gets up */
    after(&s, 1000000);
    expect(&s, "call a");
    came_as(&s, "a", "another machine");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, 0);
    story_end(&s);
}

/* A name that dials in may be another machine's by then: it may come, and its boot id decides. */
static void test_blacklisted_hosts_that_dial_in(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 9;
    s.config.elastic_timeout_ms = 10000000;
    s.config.hosts_dial_in = true;
    story_begin(&s);
    hosts(&s, "a");
    for (int i = 0; i < 3; i++) {
        came(&s, "a");
        lost(&s, "a");
        if (i < 2)
            after(&s, 60000);
    }
    expect_said(&s, "a is blacklisted for the rest of the job: it was lost 3 times");
    ignore(&s);
    after(&s, 60000);
    expect(&s, "call a");
    came(&s, "a");
    assert_true(elastic_host_facts(s.e, 0).blacklisted_until_ms == INT64_MAX);
    lost(&s, "a");
    ignore(&s);
    after(&s, 60000);
    expect(&s, "call a");
    came_as(&s, "a", "another machine");
    assert_int_equal(elastic_host_facts(s.e, 0).blacklisted_until_ms, 0);
    story_end(&s);
}

/* Time may leap forward, and what is due comes in its order; backwards it stands still. */
static void test_time_leaps(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a,b");
    came(&s, "a");
    unreached(&s, "b", "refused");
    ignore(&s);
    s.now += 100000000;
    happens(&s, .kind = ELASTIC_TICK);
    expect(&s, "call b, verdict no hosts, over");
    story_end(&s);

    story_config(&s)->np = 2;
    story_begin(&s);
    hosts(&s, "a,b");
    came(&s, "a");
    s.now -= 500000;
    unreached(&s, "b", "refused");
    assert_int_equal(elastic_deadline(s.e), STORY_BEGIN_MS + 1000);
    happens(&s, .kind = ELASTIC_TICK);
    expect(&s, "call a, call b");
    story_end(&s);
}

/* One event can have more to say than the core has made room for. */
static void test_many_cooldowns_end_at_once(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 12;
    s.config.min_np = 1;
    s.config.failure_limit = 1;
    s.config.cooldown_min_ms = s.config.cooldown_max_ms = 60000;
    story_runs(&s, "a,b,c,d,e,f,g,h,i,j,k,l");
    for (char host = 'b'; host <= 'l'; host++) {
        lost(&s, (char[]){host, '\0'});
        all_end(&s, 15);
        prepared(&s);
        started(&s);
        s.now += 4000;
    }
    buf_clear(&s.said);
    s.now += 100000;
    happens(&s, .kind = ELASTIC_TICK);
    for (char host = 'b'; host <= 'l'; host++) {
        char said[] = "a cooldown on ? is over";
        *strchr(said, '?') = host;
        assert_non_null(strstr(buf_text(&s.said), said));
    }
    story_end(&s);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(elastic_state_name(ELASTIC_DONE), "done");
    assert_string_equal(elastic_host_state_name(ELASTIC_HOST_AWAY), "lost");
    assert_string_equal(elastic_worker_state_name(ELASTIC_WORKER_EXITED), "exited");
    assert_string_equal(elastic_mode_name(ELASTIC_STOP), "stop");
    assert_string_equal(elastic_event_name(ELASTIC_END), "end");
    assert_string_equal(elastic_action_name(ELASTIC_OVER), "over");
    assert_string_equal(elastic_end_name(ELASTIC_END_DRIVER), "driver");
    assert_int_equal(ELASTIC_WARNING, LOG_WARNING);
    assert_int_equal(ELASTIC_NOTICE, LOG_NOTICE);
}

/* A spare cannot be prepared: the epoch that does not use it goes on. */
static void test_a_spare_that_cannot_be_prepared(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    story_begin(&s);
    hosts(&s, "a,b");
    came(&s, "a");
    came(&s, "b");
    expect_state(&s, ELASTIC_PREPARING);
    expect_members(&s, "+a0");
    ignore(&s);
    prepare_failed(&s, "b", "no such folder");
    expect(&s, "");
    expect_state(&s, ELASTIC_PREPARING);
    prepared(&s);
    started(&s);
    expect_state(&s, ELASTIC_RUNNING);
    story_end(&s);
}

static void test_a_spare_of_one_slot(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 1;
    s.config.max_np = 1;
    s.config.spares = 1;
    story_runs(&s, "a,b");
    assert_false(elastic_host_facts(s.e, number(&s, "a")).spare);
    assert_int_equal(elastic_host_facts(s.e, number(&s, "a")).workers, 1);
    assert_true(elastic_host_facts(s.e, number(&s, "b")).spare);
    assert_int_equal(elastic_host_facts(s.e, number(&s, "b")).workers, 0);
    story_end(&s);
}

/* Enough are there, and more may come: still the job ends its waiting when that is due. */
static void test_the_earliest_deadline_is_the_next(void **state)
{
    (void)state;
    struct story s;
    story_config(&s)->np = 2;
    s.config.elastic_timeout_ms = 1500;
    story_begin(&s);
    hosts(&s, "a:2,b:2");
    assert_int_equal(elastic_deadline(s.e), STORY_BEGIN_MS + 1500);
    after(&s, 1000);
    came(&s, "a"); /* and suffices: it starts before the job would give up */
    assert_int_equal(elastic_deadline(s.e), STORY_BEGIN_MS + 1499);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_begins),
        cmocka_unit_test(test_the_first_epoch_waits_a_little_for_more),
        cmocka_unit_test(test_the_first_epoch_waits_long_for_more),
        cmocka_unit_test(test_it_does_not_wait_for_who_cannot_come),
        cmocka_unit_test(test_it_does_not_wait_for_more_than_may_be),
        cmocka_unit_test(test_spares_are_kept_up),
        cmocka_unit_test(test_a_call_takes_long),
        cmocka_unit_test(test_the_time_becomes_short),
        cmocka_unit_test(test_much_time_is_left),
        cmocka_unit_test(test_no_need_while_it_gathers),
        cmocka_unit_test(test_the_time_becomes_short_after_a_loss),
        cmocka_unit_test(test_a_problem_is_said_once),
        cmocka_unit_test(test_cooldowns),
        cmocka_unit_test(test_a_host_that_is_called_drains),
        cmocka_unit_test(test_spares_are_used_where_np_is_not_reached),
        cmocka_unit_test(test_too_few_for_too_long),
        cmocka_unit_test(test_more_hosts_come_while_waiting),
        cmocka_unit_test(test_hosts_that_are_not_listed_any_more),
        cmocka_unit_test(test_calls_are_repeated_ever_more_rarely),
        cmocka_unit_test(test_a_host_that_cannot_be_prepared),
        cmocka_unit_test(test_nowhere_can_it_be_prepared),
        cmocka_unit_test(test_preparing_has_a_limit),
        cmocka_unit_test(test_a_restart_may_be_held),
        cmocka_unit_test(test_a_host_is_lost_while_preparing),
        cmocka_unit_test(test_a_spare_is_lost_while_preparing),
        cmocka_unit_test(test_a_started_worker_never_appears),
        cmocka_unit_test(test_discovery_fails),
        cmocka_unit_test(test_a_flapping_host),
        cmocka_unit_test(test_failures_are_forgotten),
        cmocka_unit_test(test_blacklisted_hosts_that_dial_in),
        cmocka_unit_test(test_time_leaps),
        cmocka_unit_test(test_many_cooldowns_end_at_once),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_spare_that_cannot_be_prepared),
        cmocka_unit_test(test_a_spare_of_one_slot),
        cmocka_unit_test(test_the_earliest_deadline_is_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
