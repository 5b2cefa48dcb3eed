/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/exit/policy.h"
#include "model/hosts/entry.h"
#include "model/plan/spawn.h"

#define MS 1000000
#define NODES 4
#define RANKS_PER_NODE 2
#define RANKS (NODES * RANKS_PER_NODE)

/* Ranks 0 1 on node a, 2 3 on b, 4 5 on c, 6 7 on d. Times are in milliseconds. */
struct fixture {
    struct plan *plan;
    struct exit_outside *outside; /* which the policy borrows, and the fixture moves */
    struct exit_policy *policy;
    struct verdict verdict;
};

static struct fixture begin(enum exit_rule rule)
{
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct error err = ERROR_INIT;
    app_list_add(&apps);
    assert_int_equal(hosts_parse("a:2,b:2,c:2,d:2", &hosts, &err), 0);
    struct plan_request request = {.hosts = &hosts, .apps = &apps};
    struct fixture f = {.plan = plan_create(&request, &err)};
    assert_non_null(f.plan);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    f.outside = mem_alloc(sizeof(*f.outside));
    f.policy = exit_policy_create(rule, f.plan, f.outside);
    for (int r = 0; r < RANKS; r++)
        exit_policy_started(f.policy, r);
    return f;
}

static void end(struct fixture *f)
{
    exit_policy_destroy(f->policy);
    exit_outside_clear(f->outside);
    free(f->outside);
    plan_destroy(f->plan);
}

static bool exits(struct fixture *f, int rank, int code, double ms)
{
    struct exit_event event = {.seat = rank, .code = code, .when_ns = (int64_t)(ms * MS)};
    return exit_policy_ended(f->policy, FACT_EXITED, &event, NULL);
}

static bool dies(struct fixture *f, int rank, int signal, double ms)
{
    struct exit_event event = {
        .seat = rank, .signaled = true, .code = signal, .when_ns = (int64_t)(ms * MS)};
    return exit_policy_ended(f->policy, FACT_EXITED, &event, NULL);
}

/* As exits() and dies() (signal > 0), on a clock that is known to 0.5 ms. */
static bool ends_about(struct fixture *f, int rank, int code, int signal, double ms)
{
    struct exit_event event = {
        .seat = rank,
        .signaled = signal > 0,
        .code = signal > 0 ? signal : code,
        .when_ns = (int64_t)(ms * MS),
        .uncertainty_ns = MS / 2,
    };
    return exit_policy_ended(f->policy, FACT_EXITED, &event, NULL);
}

static bool aborts(struct fixture *f, int rank, int code, const char *message, double ms)
{
    struct exit_event event = {.seat = rank, .code = code, .when_ns = (int64_t)(ms * MS)};
    return exit_policy_ended(f->policy, FACT_ABORTED, &event, message);
}

/* Its agent was alive until `ms`, and is gone from then on. */
static bool is_lost(struct fixture *f, int node, double ms, const char *text)
{
    struct exit_loss loss = {.alive_ns = (int64_t)(ms * MS), .by_ns = (int64_t)(ms * MS)};
    return exit_policy_node_lost(f->policy, node, &loss, text);
}

static void kill_all(struct fixture *f, double ms)
{
    for (int n = 0; n < NODES; n++)
        exit_policy_killed(f->policy, n, (int64_t)(ms * MS));
}

/* Everyone who has no status yet ends by `signal` then. */
static void rest_die(struct fixture *f, int signal, double ms)
{
    for (int r = 0; r < RANKS; r++)
        if (exit_policy_rank_status(f->policy, r) < 0)
            assert_false(dies(f, r, signal, ms));
}

static void rest_exit(struct fixture *f, int code, double ms)
{
    for (int r = 0; r < RANKS; r++)
        if (exit_policy_rank_status(f->policy, r) < 0)
            exits(f, r, code, ms);
}

static void expect(struct fixture *f, int status, enum exit_cause cause, int rank,
                   const char *explanation)
{
    exit_policy_verdict(f->policy, &f->verdict);
    assert_string_equal(f->verdict.explanation, explanation);
    assert_int_equal(f->verdict.status, status);
    assert_string_equal(exit_cause_name(f->verdict.cause), exit_cause_name(cause));
    assert_int_equal(f->verdict.seat, rank);
    if (rank >= 0) {
        assert_int_equal(f->verdict.node, rank / RANKS_PER_NODE);
        assert_int_equal(exit_policy_role(f->policy, rank), ROLE_CAUSE);
    }
}

static void expect_roles(struct fixture *f, const char *const roles[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        assert_string_equal(exit_role_name(exit_policy_role(f->policy, r)), roles[r]);
}

static void test_all_well(void **state)
{
    (void)state;
    for (enum exit_rule rule = EXIT_FIRST; rule <= EXIT_RANK0; rule++) {
        struct fixture f = begin(rule);
        for (int r = 0; r < RANKS; r++)
            assert_false(exits(&f, r, 0, r));
        expect(&f, 0, CAUSE_NONE, -1, "8 ranks succeeded");
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(exit_policy_role(f.policy, r), ROLE_OK);
        end(&f);
    }
}

static void test_first_bad_exit_starts_the_teardown_once(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_false(exits(&f, 0, 0, 5));
    assert_true(exits(&f, 3, 7, 10));
    assert_false(exits(&f, 4, 9, 10.5));
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, 7, CAUSE_EXIT, 3, "rank 3 exited with code 7");
    assert_false(f.verdict.tie);
    const char *const roles[] = {"ok",     "consequence", "consequence", "cause",
                                 "failed", "consequence", "consequence", "consequence"};
    expect_roles(&f, roles);
    assert_int_equal(exit_policy_rank_status(f.policy, 1), 128 + SIGTERM);
    end(&f);
}

/* Ranks 8 and 9 come while the others run: one on node a, one on d. */
static void test_ranks_that_come_later(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    struct plan_rank added[] = {{.rank = 0, .node = 0}, {.rank = 1, .node = 3}};
    struct plan more = {.size = 2, .ranks = added};
    assert_false(exits(&f, 8, 3, 1)); /* out of the plan: ignored */
    struct plan *whole = spawn_join(f.plan, &more, 1);
    exit_policy_grow(f.policy, whole);
    exit_policy_started(f.policy, 8);
    exit_policy_started(f.policy, 9);
    assert_false(exits(&f, 0, 0, 2));
    assert_true(exits(&f, 9, 3, 5));
    exit_policy_killed(f.policy, 0, 6 * MS);
    assert_false(dies(&f, 8, SIGTERM, 7));
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.seat, 9);
    assert_int_equal(f.verdict.node, 3);
    assert_int_equal(f.verdict.status, 3);
    assert_int_equal(exit_policy_role(f.policy, 8), ROLE_CONSEQUENCE);
    end(&f);
    plan_destroy(whole);
}

static void test_signal_death(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    struct exit_event event = {
        .seat = 6, .signaled = true, .code = SIGSEGV, .core = true, .when_ns = 4 * MS};
    assert_true(exit_policy_ended(f.policy, FACT_EXITED, &event, NULL));
    kill_all(&f, 5);
    rest_die(&f, SIGKILL, 6);
    expect(&f, 139, CAUSE_SIGNAL, 6, "rank 6 was killed by SIGSEGV (core dumped)");
    end(&f);
    f = begin(EXIT_FIRST);
    assert_true(dies(&f, 0, 40, 4));
    rest_exit(&f, 0, 5);
    expect(&f, 168, CAUSE_SIGNAL, 0, "rank 0 was killed by signal 40");
    end(&f);
}

/* The news of the first failure comes last, from a slow link. */
static void test_order_of_news_does_not_matter(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(exits(&f, 0, 1, 20));
    kill_all(&f, 30);
    rest_die(&f, SIGKILL, 31);
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_FAILED);
    end(&f);
    f = begin(EXIT_FIRST);
    assert_true(exits(&f, 0, 1, 20));
    exit_policy_killed(f.policy, 0, 21 * MS);
    assert_false(exits(&f, 7, 3, 10));
    kill_all(&f, 30);
    rest_die(&f, SIGKILL, 31);
    expect(&f, 3, CAUSE_EXIT, 7, "rank 7 exited with code 3");
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_FAILED);
    end(&f);
}

static void test_consequences_are_told_by_their_own_node(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_MAX);
    assert_true(exits(&f, 0, 1, 10));
    exit_policy_killed(f.policy, 0, 11 * MS);
    exit_policy_killed(f.policy, 1, 20 * MS);
    exit_policy_killed(f.policy, 1, 25 * MS); /* a second kill does not move the first */
    assert_false(exits(&f, 2, 40, 19));       /* before its node was reached: causal */
    assert_false(exits(&f, 3, 90, 21));       /* after it, though before the second kill */
    exit_policy_killed(f.policy, 2, 12 * MS);
    exit_policy_killed(f.policy, 3, 12 * MS);
    assert_false(exits(&f, 1, 80, 12));
    rest_die(&f, SIGKILL, 30);
    expect(&f, 40, CAUSE_EXIT, 0,
           "rank 0 exited with code 1; exit status 40 is the highest, that of rank 2");
    const char *const roles[] = {"cause",       "consequence", "failed",      "consequence",
                                 "consequence", "consequence", "consequence", "consequence"};
    expect_roles(&f, roles);
    end(&f);
}

static void test_max_keeps_a_first_failure_that_is_the_highest(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_MAX);
    assert_true(exits(&f, 5, 9, 1));
    assert_false(exits(&f, 6, 2, 2));
    rest_exit(&f, 0, 3);
    expect(&f, 9, CAUSE_EXIT, 5, "rank 5 exited with code 9");
    end(&f);
}

static void test_tie_crash_beats_exit(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(ends_about(&f, 2, 1, 0, 10.0));
    assert_false(ends_about(&f, 5, 0, SIGSEGV, 10.3));
    rest_exit(&f, 0, 20);
    expect(&f, 139, CAUSE_SIGNAL, 5,
           "rank 5 was killed by SIGSEGV; ranks 2 and 5 failed within 0.3 ms of each other; hvdrun "
           "takes rank 5 as the first, "
           "because it crashed");
    assert_true(f.verdict.tie);
    assert_int_equal(exit_policy_role(f.policy, 2), ROLE_FAILED);
    end(&f);
}

static void test_tie_lowest_rank(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    ends_about(&f, 7, 3, 0, 10.0);
    ends_about(&f, 5, 2, 0, 10.9);
    ends_about(&f, 0, 1, 0, 10.01);
    rest_exit(&f, 0, 20);
    expect(&f, 1, CAUSE_EXIT, 0,
           "rank 0 exited with code 1; ranks 0, 5 and 7 failed within 0.9 ms of each other; hvdrun "
           "takes rank 0 as the first, "
           "because it is the lowest rank");
    end(&f);
    f = begin(EXIT_FIRST); /* two crashes: the lower one */
    ends_about(&f, 6, 0, SIGBUS, 10.0);
    ends_about(&f, 4, 0, SIGSEGV, 10.0);
    rest_exit(&f, 0, 20);
    expect(&f, 139, CAUSE_SIGNAL, 4,
           "rank 4 was killed by SIGSEGV; ranks 4 and 6 failed at the same moment; hvdrun takes "
           "rank 4 as the first, because "
           "it is the lowest rank");
    end(&f);
}

static void test_no_tie_beyond_the_uncertainty(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    ends_about(&f, 2, 1, 0, 10.0);
    ends_about(&f, 5, 0, SIGABRT, 11.1);
    rest_exit(&f, 0, 20);
    expect(&f, 1, CAUSE_EXIT, 2, "rank 2 exited with code 1");
    assert_false(f.verdict.tie);
    end(&f);
}

/* Nothing that another rank does makes a rank crash, and its agent may be late to see it. */
static void test_a_crash_that_is_seen_late(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct fixture f = begin(EXIT_FIRST);
        ends_about(&f, 2, 1, 0, 10.0);
        ends_about(&f, 5, 0, SIGSEGV, late ? 111.1 : 111);
        rest_exit(&f, 0, 200);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.seat, late ? 2 : 5);
        assert_int_equal(f.verdict.tie, !late);
        end(&f);
    }
    struct fixture f = begin(EXIT_FIRST); /* of one node, the order is known */
    ends_about(&f, 2, 1, 0, 10.0);
    ends_about(&f, 3, 0, SIGSEGV, 10.1);
    rest_exit(&f, 0, 200);
    expect(&f, 1, CAUSE_EXIT, 2, "rank 2 exited with code 1");
    end(&f);
}

/* Both clocks are one clock: the offset's error is no reason for doubt. */
static void test_exits_of_one_node_are_compared_exactly(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    ends_about(&f, 4, 1, 0, 10.0);
    ends_about(&f, 5, 0, SIGABRT, 10.1);
    rest_exit(&f, 0, 20);
    expect(&f, 1, CAUSE_EXIT, 4, "rank 4 exited with code 1");
    end(&f);
    /* nor can the second failure of another node have been the first of all */
    f = begin(EXIT_FIRST);
    ends_about(&f, 0, 1, 0, 10.0);
    ends_about(&f, 5, 2, 0, 10.1);
    ends_about(&f, 4, 0, SIGSEGV, 10.2);
    rest_exit(&f, 0, 20);
    expect(&f, 1, CAUSE_EXIT, 0,
           "rank 0 exited with code 1; ranks 0 and 5 failed within 0.1 ms of each other; hvdrun "
           "takes rank 0 as the first, "
           "because it is the lowest rank");
    end(&f);
    /* stamped alike: collected in one turn */
    f = begin(EXIT_FIRST);
    ends_about(&f, 4, 1, 0, 10.0);
    ends_about(&f, 5, 0, SIGSEGV, 10.0);
    rest_exit(&f, 0, 20);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.seat, 5);
    assert_true(f.verdict.tie);
    end(&f);
}

/* One tie for each pair: who is named, rank 0 (on node a) or rank 2 (on b). */
static void test_grades(void **state)
{
    (void)state;
    static const struct {
        int signal0, signal2; /* 0: exits with 1 */
        int named;
    } cases[] = {
        {0, SIGBUS, 2},        {0, SIGILL, 2},        {0, SIGFPE, 2},        {0, SIGSYS, 2},
        {0, SIGTRAP, 2},       {0, SIGKILL, 2},       {0, SIGABRT, 2},       {0, SIGPIPE, 0},
        {0, SIGTERM, 0},       {SIGTERM, SIGABRT, 2}, {SIGABRT, SIGSEGV, 2}, {SIGABRT, SIGKILL, 2},
        {SIGKILL, SIGSEGV, 0}, {SIGSEGV, SIGABRT, 0}, {SIGABRT, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f = begin(EXIT_FIRST);
        ends_about(&f, 0, 1, cases[i].signal0, 10.0);
        ends_about(&f, 2, 1, cases[i].signal2, 10.0);
        rest_exit(&f, 0, 20);
        exit_policy_verdict(f.policy, &f.verdict);
        if (f.verdict.seat != cases[i].named)
            fail_msg("case %zu: rank %d named", i, f.verdict.seat);
        assert_true(f.verdict.tie);
        end(&f);
    }
}

static void test_killed_from_outside_is_said(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    ends_about(&f, 0, 1, 0, 10.0);
    ends_about(&f, 2, 0, SIGKILL, 10.2);
    rest_exit(&f, 0, 20);
    expect(&f, 137, CAUSE_SIGNAL, 2,
           "rank 2 was killed by SIGKILL; ranks 0 and 2 failed within 0.2 ms of each other; hvdrun "
           "takes rank 2 as the first, "
           "because it was killed from outside");
    end(&f);
}

static void test_many_in_a_tie(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    for (int r = 0; r < RANKS; r++)
        ends_about(&f, r, 1, 0, 10.0);
    expect(&f, 1, CAUSE_EXIT, 0,
           "rank 0 exited with code 1; ranks 0, 1, 2, 3 and 4 more failed at the same moment; "
           "hvdrun takes "
           "rank 0 as the first, because it is the lowest rank");
    end(&f);
}

static void test_abort(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(aborts(&f, 3, 42, "bad\nmatrix\n", 10));
    assert_false(exits(&f, 3, 1, 11)); /* what the process then exits with is no news */
    kill_all(&f, 12);
    rest_die(&f, SIGTERM, 13);
    expect(&f, 42, CAUSE_ABORT, 3, "rank 3 aborted the job with code 42: bad matrix");
    assert_int_equal(exit_policy_rank_status(f.policy, 3), 42);
    end(&f);
    f = begin(EXIT_FIRST); /* the exit is heard before the abort that explains it */
    assert_true(exits(&f, 3, 1, 10));
    kill_all(&f, 11);
    assert_false(aborts(&f, 3, 42, NULL, 12));
    rest_die(&f, SIGTERM, 13);
    expect(&f, 42, CAUSE_ABORT, 3, "rank 3 aborted the job with code 42");
    end(&f);
    f = begin(EXIT_FIRST); /* even an exit with 0 */
    assert_false(exits(&f, 3, 0, 10));
    assert_true(aborts(&f, 3, 0, NULL, 11));
    rest_exit(&f, 0, 13);
    expect(&f, 1, CAUSE_ABORT, 3,
           "rank 3 aborted the job with code 0 (status 1, because 0 would mean success)");
    end(&f);
    f = begin(EXIT_FIRST);
    aborts(&f, 3, -1, NULL, 11);
    rest_exit(&f, 0, 13);
    expect(&f, 255, CAUSE_ABORT, 3, "rank 3 aborted the job with code -1");
    end(&f);
}

/* MPI's default error handler aborts where a peer has died: the peer is the cause. */
static void test_abort_after_a_crash_elsewhere(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(dies(&f, 0, SIGSEGV, 10));
    assert_false(aborts(&f, 3, 16, "peer lost", 14));
    kill_all(&f, 20);
    rest_die(&f, SIGTERM, 21);
    expect(&f, 139, CAUSE_SIGNAL, 0, "rank 0 was killed by SIGSEGV");
    assert_int_equal(exit_policy_role(f.policy, 3), ROLE_FAILED);
    end(&f);
    f = begin(EXIT_FIRST); /* an abort in a TERM handler is our own doing */
    assert_true(exits(&f, 0, 1, 10));
    kill_all(&f, 11);
    assert_false(aborts(&f, 3, 16, NULL, 14));
    assert_int_equal(exit_policy_role(f.policy, 3), ROLE_CONSEQUENCE);
    end(&f);
}

static void test_exec_failure(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    struct exit_event event = {.seat = 2, .code = STATUS_NOT_FOUND, .when_ns = MS};
    assert_true(exit_policy_ended(f.policy, FACT_NOT_EXECUTED, &event,
                                  "./trian: No such file or directory"));
    assert_false(exits(&f, 2, 127, 2));
    kill_all(&f, 3);
    rest_die(&f, SIGTERM, 4);
    expect(&f, 127, CAUSE_EXEC, 2, "rank 2 could not start: ./trian: No such file or directory");
    end(&f);
}

static void test_node_lost(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_false(exits(&f, 4, 0, 5));
    assert_true(is_lost(&f, 2, 10, "no heartbeat for 30 s"));
    assert_false(is_lost(&f, 2, 10, "again"));
    kill_all(&f, 40);
    for (int r = 0; r < RANKS; r++)
        if (r / RANKS_PER_NODE != 2)
            dies(&f, r, SIGTERM, 41);
    expect(&f, STATUS_NODE_LOST, CAUSE_NODE_LOST, -1,
           "node c was lost: no heartbeat for 30 s; 1 of its 2 ranks was running");
    assert_int_equal(f.verdict.node, 2);
    const char *const roles[] = {"consequence", "consequence", "consequence", "consequence",
                                 "ok",          "lost",        "consequence", "consequence"};
    expect_roles(&f, roles);
    assert_int_equal(exit_policy_rank_status(f.policy, 5), -1);
    end(&f);
}

/* Peers fail of a node's silence before we give it up: it was lost when it was last heard. */
static void test_node_lost_goes_before_its_victims(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(exits(&f, 0, 1, 2000));
    exit_policy_killed(f.policy, 0, 2001 * MS);
    exit_policy_killed(f.policy, 1, 2001 * MS);
    exit_policy_killed(f.policy, 3, 2001 * MS);
    assert_false(is_lost(&f, 2, 1000, NULL));
    for (int r = 0; r < RANKS; r++)
        if (r / RANKS_PER_NODE != 2)
            dies(&f, r, SIGTERM, 2002);
    expect(&f, STATUS_NODE_LOST, CAUSE_NODE_LOST, -1,
           "node c was lost; 2 of its 2 ranks were running");
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_CONSEQUENCE);
    end(&f);
}

static void says(struct fixture *f, int rank, enum symptom_kind kind, double ms)
{
    struct symptom symptom = {.kind = kind, .when_ns = (int64_t)(ms * MS)};
    exit_policy_said(f->policy, rank, &symptom, 0);
}

/* Node c: its agent was alive at 5, and at 12 the driver noticed the end of the connection. */
static void c_is_lost(struct fixture *f, bool silent)
{
    struct exit_loss loss = {
        .alive_ns = 5 * MS, .uncertainty_ns = MS / 2, .by_ns = 12 * MS, .silent = silent};
    exit_policy_node_lost(f->policy, 2, &loss, "killed");
    kill_all(f, 300);
}

#define C_LOST "node c was lost: killed; 2 of its 2 ranks were running"

/* Rank 0 exits with 1 or by `signal`, and its stderr says something at `said_ms`. */
static struct fixture near_a_loss(int signal, double exit_ms, enum symptom_kind said,
                                  double said_ms, bool silent)
{
    struct fixture f = begin(EXIT_MAX);
    ends_about(&f, 0, 122, signal, exit_ms);
    struct symptom symptom = {.kind = said, .when_ns = (int64_t)(said_ms * MS)};
    exit_policy_said(f.policy, 0, &symptom, MS / 2);
    c_is_lost(&f, silent);
    return f;
}

/* Peers see the end of a host before the driver does. What they say about it tells. */
static void test_a_peer_notices_a_loss_first(void **state)
{
    (void)state;
    static const enum symptom_kind kinds[] = {SYMPTOM_LOST, SYMPTOM_TIMEOUT};
    static const double times[] = {4.1, 5, 9, 12, 29};
    for (int i = 0; i < 20; i++) {
        double ms = times[i / 4];
        enum symptom_kind kind = kinds[i / 2 % 2];
        bool silent = i > 9 && kind == SYMPTOM_TIMEOUT;
        struct fixture f = near_a_loss(i % 2 == 0 ? 0 : SIGABRT, ms, kind, ms, silent);
        expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST);
        assert_false(f.verdict.tie);
        assert_int_equal(exit_policy_role(f.policy, 0), ROLE_CONSEQUENCE);
        end(&f);
    }
    /* written before the loss could happen, by both clocks */
    struct fixture f = near_a_loss(0, 10, SYMPTOM_LOST, 3.9, false);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_FAILED);
    end(&f);
    f = near_a_loss(0, -96.1, SYMPTOM_LOST, -96.1, false);
    expect(&f, 122, CAUSE_EXIT, 0, "rank 0 exited with code 122");
    assert_false(f.verdict.tie);
    end(&f);
    f = near_a_loss(0, 10, SYMPTOM_LOST, 10, true); /* nobody notices so soon that it is silent */
    expect(&f, 122, CAUSE_EXIT, 0,
           "rank 0 exited with code 122; node c was lost at about the same time");
    end(&f);
    /* its own node: the agent lived longer */
    f = begin(EXIT_FIRST);
    exits(&f, 4, 1, 10);
    says(&f, 4, SYMPTOM_LOST, 9);
    c_is_lost(&f, false);
    expect(&f, 1, CAUSE_EXIT, 4, "rank 4 exited with code 1");
    end(&f);
}

static void test_a_failure_near_a_loss_that_stands_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fixture f = begin(EXIT_FIRST);
        struct exit_event event = {.seat = 0, .signaled = i == 0, .when_ns = 9 * MS};
        event.code = i == 0 ? SIGSEGV : i == 1 ? 127 : 1;
        if (i == 1)
            exit_policy_ended(f.policy, FACT_NOT_EXECUTED, &event, NULL);
        else
            exit_policy_ended(f.policy, FACT_EXITED, &event, NULL);
        if (i == 2)
            says(&f, 0, SYMPTOM_OWN, 8);
        if (i == 3) { /* that of another rank came first */
            says(&f, 0, SYMPTOM_LOST, 8);
            says(&f, 3, SYMPTOM_OWN, 7);
        }
        c_is_lost(&f, false);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.seat, 0);
        assert_true(f.verdict.tie);
        assert_non_null(strstr(f.verdict.explanation, "; node c was lost at about the same time"));
        end(&f);
    }
    struct fixture f = near_a_loss(SIGSEGV, 113, SYMPTOM_NONE, 0, false); /* after it */
    expect(&f, 139, CAUSE_NODE_LOST, -1, C_LOST "; exit status 139 is the highest, that of rank 0");
    assert_false(f.verdict.tie);
    end(&f);
    f = near_a_loss(SIGSEGV, 3.9, SYMPTOM_NONE, 0, false); /* before it */
    expect(&f, 139, CAUSE_SIGNAL, 0, "rank 0 was killed by SIGSEGV");
    assert_false(f.verdict.tie);
    end(&f);
}

static void test_a_silent_failure_near_a_loss(void **state)
{
    (void)state;
    struct fixture f = near_a_loss(0, 9, SYMPTOM_NONE, 0, false);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_string_equal(f.verdict.explanation,
                        C_LOST "; rank 0 exited with code 122 at about the same time; exit status "
                               "122 is the highest, that of rank 0");
    assert_true(f.verdict.tie);
    end(&f);
    f = near_a_loss(0, 9, SYMPTOM_NONE, 0, true); /* nobody notices so soon that a host is silent */
    expect(&f, 122, CAUSE_EXIT, 0,
           "rank 0 exited with code 122; node c was lost at about the same time");
    end(&f);
    f = near_a_loss(0, 112.6, SYMPTOM_NONE, 0, false); /* after it */
    expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST);
    assert_false(f.verdict.tie);
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_CONSEQUENCE);
    end(&f);
}

/* Its peers would wait first, so a rank that ends soon after it may have had another reason. All
 * the same the loss decides the status. */
static void test_a_failure_after_a_host_fell_silent(void **state)
{
    (void)state;
    static const enum exit_rule rules[] = {EXIT_FIRST, EXIT_MAX, EXIT_RANK0};
    for (int i = 0; i < 3; i++) {
        struct fixture f = begin(rules[i]);
        ends_about(&f, 1, 1, 0, 112.7);
        ends_about(&f, 0, 122, 0, 112.6);
        ends_about(&f, 3, 0, 0, 112.55);
        c_is_lost(&f, true);
        expect(&f, 121, CAUSE_NODE_LOST, -1,
               C_LOST "; rank 0 exited with code 122 after that, perhaps for another reason");
        assert_true(f.verdict.tie);
        assert_int_equal(exit_policy_role(f.policy, 0), ROLE_CONSEQUENCE);
        end(&f);
    }
    struct fixture f = near_a_loss(0, 112.6, SYMPTOM_LOST, 10, true);
    expect(&f, 122, CAUSE_NODE_LOST, -1,
           C_LOST "; rank 0 exited with code 122 after that, perhaps for another reason; exit "
                  "status 122 is the highest, that of rank 0");
    assert_true(f.verdict.tie);
    end(&f);
    f = begin(EXIT_FIRST); /* the exit may have been first, but its peer crashed after it */
    ends_about(&f, 3, 1, 0, 112.4);
    ends_about(&f, 0, 0, SIGSEGV, 112.9);
    c_is_lost(&f, true);
    expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST);
    end(&f);
    static const struct {
        int signal;
        double ms;
        enum symptom_kind said;
        double said_ms;
    } others[] = {
        {0, 112.6, SYMPTOM_TIMEOUT, 11}, /* it says that it waited */
        {0, 150, SYMPTOM_LOST, 113},     /* or that it noticed something later */
        {0, 300.1, SYMPTOM_NONE, 0},     /* we have ended it */
        {SIGSEGV, 112.6, SYMPTOM_NONE, 0},
    };
    for (int i = 0; i < 4; i++) {
        f = near_a_loss(others[i].signal, others[i].ms, others[i].said, others[i].said_ms, true);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.cause, CAUSE_NODE_LOST);
        assert_false(f.verdict.tie);
        assert_null(strstr(f.verdict.explanation, "another reason"));
        end(&f);
    }
}

/* Something kills all processes of a host. A peer notices that before the agent sees an end. */
static void test_a_peer_of_a_rank_whose_end_nobody_saw(void **state)
{
    (void)state;
    static const enum symptom_kind said[] = {SYMPTOM_NONE, SYMPTOM_LOST};
    for (int i = 0; i < 4; i++) {
        double ms = i / 2 == 0 ? 3.9 : -95;
        struct fixture f = near_a_loss(0, ms, said[i % 2], ms, false);
        expect(&f, 122, CAUSE_NODE_LOST, -1,
               C_LOST
               "; rank 0 exited with code 122 at about the same time; exit status 122 is the "
               "highest, that of rank 0");
        assert_true(f.verdict.tie);
        end(&f);
    }
    struct fixture f =
        near_a_loss(0, 3.9, SYMPTOM_NONE, 0, true); /* nobody notices silence so soon */
    expect(&f, 122, CAUSE_EXIT, 0, "rank 0 exited with code 122");
    assert_false(f.verdict.tie);
    end(&f);
    f = begin(EXIT_FIRST); /* the agent has seen the ends of all its ranks */
    exits(&f, 4, 0, 1);
    exits(&f, 5, 0, 1);
    exits(&f, 0, 1, 3.9);
    c_is_lost(&f, false);
    expect(&f, 1, CAUSE_EXIT, 0, "rank 0 exited with code 1");
    assert_false(f.verdict.tie);
    end(&f);
}

/* Several hosts may be lost at once. */
static void test_several_losses(void **state)
{
    (void)state;
    static const char *const said[] = {"", "; node d was lost at about the same time",
                                       "; nodes b and 1 more were lost at about the same time"};
    for (int others = 0; others < 3; others++) {
        struct fixture f = begin(EXIT_FIRST);
        struct exit_loss loss = {.alive_ns = 11 * MS, .by_ns = 13 * MS};
        if (others > 0)
            exit_policy_node_lost(f.policy, 3, &loss, NULL);
        loss.alive_ns = others > 1 ? 12 * MS : 12 * MS + 1; /* c was gone by then */
        exit_policy_node_lost(f.policy, 1, &loss, NULL);
        c_is_lost(&f, false);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.node, 2);
        assert_int_equal(f.verdict.tie, others > 0);
        assert_string_equal(f.verdict.explanation + strlen(C_LOST), said[others]);
        end(&f);
    }
}

static void test_an_error_on_the_host_that_is_lost(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    says(&f, 5, SYMPTOM_OWN, 5);
    c_is_lost(&f, false);
    expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST "; before that, rank 5 had written an error");
    assert_true(f.verdict.tie);
    end(&f);
}

/* The rank may have gone on, so the error need not be the cause. Then it ends because of the loss,
 * or hvdrun ends it. */
static void test_an_error_on_another_host_before_a_loss(void **state)
{
    (void)state;
    static const struct {
        double ms, uncertainty_ms;
        const char *said;
    } cases[] = {
        {4, 0, "; before that, rank 0 had written an error"},
        {-59995, 0, "; before that, rank 0 had written an error"},
        {-59996, 0, NULL}, /* too long ago */
        {4, 1, "; at about the same time, rank 0 wrote an error"},
        {112, 0, "; at about the same time, rank 0 wrote an error"},
        {113, 1, "; at about the same time, rank 0 wrote an error"},
        {113, 0, NULL}, /* after it, and so perhaps because of it */
    };
    for (size_t i = 0; i < 4 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f = begin(EXIT_FIRST);
        struct symptom symptom = {.kind = SYMPTOM_OWN};
        symptom.when_ns = (int64_t)(cases[i / 4].ms * MS);
        exit_policy_said(f.policy, 0, &symptom, (int64_t)(cases[i / 4].uncertainty_ms * MS));
        c_is_lost(&f, i % 2 > 0);
        if (i / 2 % 2 == 0)
            exits(&f, 0, 1, 250);
        else
            dies(&f, 0, SIGTERM, 301);
        says(&f, 3, SYMPTOM_LOST, 240);
        exits(&f, 3, 1, 250);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.status, 121);
        assert_int_equal(f.verdict.cause, CAUSE_NODE_LOST);
        assert_int_equal(f.verdict.tie, cases[i / 4].said != NULL);
        if (cases[i / 4].said != NULL)
            assert_non_null(strstr(f.verdict.explanation, cases[i / 4].said));
        else
            assert_string_equal(f.verdict.explanation, C_LOST);
        end(&f);
    }
    struct fixture f = begin(EXIT_FIRST); /* the error is about a peer */
    says(&f, 0, SYMPTOM_LOST, 4);
    c_is_lost(&f, false);
    dies(&f, 0, SIGTERM, 301);
    expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST);
    end(&f);
    f = begin(EXIT_FIRST); /* it went well all the same */
    says(&f, 0, SYMPTOM_OWN, 4);
    exits(&f, 0, 0, 6);
    c_is_lost(&f, false);
    expect(&f, 121, CAUSE_NODE_LOST, -1, C_LOST);
    end(&f);
}

/* A scheduler kills a rank of the host, and the agent 300 ms later: peers may see the first. */
static void test_peers_of_a_rank_that_fell_with_its_node(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    dies(&f, 4, SIGKILL, 100);
    exits(&f, 0, 1, 102);
    says(&f, 0, SYMPTOM_LOST, 101);
    is_lost(&f, 2, 400, NULL);
    kill_all(&f, 500);
    expect(&f, 121, CAUSE_NODE_LOST, -1, "node c was lost; 1 of its 2 ranks was running");
    end(&f);
}

/* Slurm kills a step: agents and ranks in any order. */
static void test_node_killed_with_its_ranks(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(dies(&f, 2, SIGKILL, 10));
    is_lost(&f, f.plan->ranks[2].node, 12, "the connection to its agent ended");
    kill_all(&f, 20);
    rest_die(&f, SIGTERM, 21);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.cause, CAUSE_NODE_LOST);
    end(&f);
    f = begin(EXIT_FIRST); /* long before */
    assert_true(dies(&f, 2, SIGKILL, 10));
    is_lost(&f, f.plan->ranks[2].node, 1000, "the connection to its agent ended");
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.cause, CAUSE_SIGNAL);
    end(&f);
    f = begin(EXIT_FIRST); /* and we killed before the agent went */
    assert_true(dies(&f, 2, SIGKILL, 10));
    kill_all(&f, 11);
    is_lost(&f, f.plan->ranks[2].node, 12, "the connection to its agent ended");
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.cause, CAUSE_SIGNAL);
    end(&f);
}

static void test_node_lost_in_the_teardown(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_MAX);
    assert_true(exits(&f, 0, 3, 10));
    kill_all(&f, 11);
    assert_false(is_lost(&f, 3, 12, NULL));
    for (int r = 0; r < 6; r++)
        dies(&f, r, SIGTERM, 12);
    expect(&f, 3, CAUSE_EXIT, 0, "rank 0 exited with code 3");
    assert_int_equal(exit_policy_role(f.policy, 7), ROLE_LOST);
    end(&f);
}

/* The clock of node d is ahead, and nobody knows how far: what was heard first tells. */
static void test_node_lost_in_the_teardown_by_another_clock(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(exits(&f, 0, 3, 10));
    says(&f, 0, SYMPTOM_LOST, 9);
    exit_policy_killed(f.policy, 3, 300000 * (int64_t)MS);
    struct exit_loss loss = {
        .alive_ns = 300000 * (int64_t)MS, .uncertainty_ns = INT64_MAX / 4, .by_ns = 200 * MS};
    assert_false(exit_policy_node_lost(f.policy, 3, &loss, NULL));
    for (int n = 0; n < 3; n++)
        exit_policy_killed(f.policy, n, 11 * MS);
    rest_die(&f, SIGTERM, 300001);
    expect(&f, 3, CAUSE_EXIT, 0, "rank 0 exited with code 3");
    end(&f);
}

/* Stamped with one turn of the agent's loop: collected before the kill was sent. */
static void test_an_exit_at_the_time_of_the_kill_is_causal(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_policy_killed(f.policy, 1, 10 * MS);
    exits(&f, 2, 5, 10);
    exits(&f, 3, 6, 10.001);
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, 5, CAUSE_EXIT, 2, "rank 2 exited with code 5");
    assert_int_equal(exit_policy_role(f.policy, 3), ROLE_CONSEQUENCE);
    end(&f);
}

static void test_launcher_failure_in_the_teardown(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_MAX);
    assert_true(exits(&f, 0, 3, 10));
    kill_all(&f, 11);
    exit_outside_failed(f.outside, STATUS_LAUNCHER, 12 * MS, "the report could not be written");
    rest_die(&f, SIGTERM, 13);
    expect(&f, 3, CAUSE_EXIT, 0, "rank 0 exited with code 3");
    end(&f);
    f = begin(EXIT_FIRST); /* nothing else is wrong: then it counts after all */
    kill_all(&f, 11);
    exit_outside_failed(f.outside, STATUS_LAUNCHER, 12 * MS, "no memory");
    rest_die(&f, SIGTERM, 13);
    expect(&f, STATUS_LAUNCHER, CAUSE_LAUNCHER, -1, "no memory");
    end(&f);
}

static void test_timeouts(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_outside_failed(f.outside, STATUS_TIMEOUT, 100 * MS, "the job ran longer than 100 ms");
    exit_outside_failed(f.outside, STATUS_LAUNCHER, 101 * MS, "and then this");
    kill_all(&f, 101);
    rest_die(&f, SIGTERM, 102);
    expect(&f, STATUS_TIMEOUT, CAUSE_TIMEOUT, -1, "the job ran longer than 100 ms");
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_CONSEQUENCE);
    end(&f);
    f = begin(EXIT_FIRST); /* a failure just before it, heard just after it */
    exit_outside_failed(f.outside, STATUS_TIMEOUT, 100 * MS, "too long");
    assert_false(exits(&f, 1, 5, 99));
    kill_all(&f, 101);
    rest_die(&f, SIGTERM, 102);
    expect(&f, 5, CAUSE_EXIT, 1, "rank 1 exited with code 5");
    end(&f);
}

static void test_start_timeout_and_internal_failure(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_policy_destroy(f.policy);
    f.policy = exit_policy_create(EXIT_FIRST, f.plan, f.outside); /* nobody started */
    exit_outside_failed(f.outside, STATUS_START_TIMEOUT, 30 * MS, "node b did not answer");
    expect(&f, STATUS_START_TIMEOUT, CAUSE_START_TIMEOUT, -1, "node b did not answer");
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_NOT_STARTED);
    assert_int_equal(exit_policy_rank_status(f.policy, 0), -1);
    end(&f);
    f = begin(EXIT_FIRST);
    exit_outside_failed(f.outside, STATUS_LAUNCHER, 30 * MS, NULL);
    kill_all(&f, 31);
    rest_die(&f, SIGTERM, 32);
    expect(&f, STATUS_LAUNCHER, CAUSE_LAUNCHER, -1, "the launcher failed");
    end(&f);
}

static void test_interrupted(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_outside_interrupted(f.outside, SIGINT, 50 * MS);
    exit_outside_interrupted(f.outside, SIGTERM, 60 * MS); /* the first one stays */
    assert_false(dies(&f, 0, SIGINT, 51));                 /* the others keep their grace */
    assert_false(exits(&f, 1, 130, 52));
    assert_false(dies(&f, 2, SIGSEGV, 53));
    kill_all(&f, 70);
    rest_die(&f, SIGKILL, 71);
    expect(&f, 130, CAUSE_INTERRUPTED, -1, "interrupted (SIGINT)");
    assert_int_equal(exit_policy_role(f.policy, 1), ROLE_CONSEQUENCE);
    end(&f);
    f = begin(EXIT_FIRST);
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    rest_die(&f, SIGTERM, 51);
    expect(&f, 143, CAUSE_INTERRUPTED, -1, "interrupted (SIGTERM)");
    end(&f);
    f = begin(EXIT_MAX); /* max looks at causal failures only */
    exit_outside_interrupted(f.outside, SIGINT, 50 * MS);
    rest_die(&f, SIGKILL, 51);
    expect(&f, 130, CAUSE_INTERRUPTED, -1, "interrupted (SIGINT)");
    end(&f);
}

static void test_failure_before_the_interruption(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_outside_interrupted(f.outside, SIGINT, 50 * MS);
    assert_false(exits(&f, 6, 4, 49));
    rest_die(&f, SIGINT, 51);
    expect(&f, 4, CAUSE_EXIT, 6, "rank 6 exited with code 4");
    end(&f);
    /* a doubtful clock says "before", but it died of the very signal */
    f = begin(EXIT_FIRST);
    exit_outside_interrupted(f.outside, SIGINT, 50 * MS);
    assert_false(ends_about(&f, 6, 0, SIGINT, 49.9));
    rest_die(&f, SIGINT, 51);
    expect(&f, 130, CAUSE_INTERRUPTED, -1, "interrupted (SIGINT)");
    end(&f);
}

/* Slurm's TERM goes to all processes, and to the launcher last. */
static void test_signal_round(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_true(dies(&f, 6, SIGTERM, 40));
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    f.outside->interrupted.round_ns = 20 * MS;
    rest_die(&f, SIGTERM, 51);
    expect(&f, 143, CAUSE_INTERRUPTED, -1, "interrupted (SIGTERM)");
    assert_int_equal(exit_policy_role(f.policy, 6), ROLE_CONSEQUENCE);
    end(&f);
    f = begin(EXIT_FIRST); /* too early, and of something else */
    assert_true(dies(&f, 6, SIGTERM, 20));
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    f.outside->interrupted.round_ns = 20 * MS;
    rest_die(&f, SIGTERM, 51);
    expect(&f, 143, CAUSE_SIGNAL, 6, "rank 6 was killed by SIGTERM");
    end(&f);
    f = begin(EXIT_FIRST);
    assert_true(dies(&f, 6, SIGSEGV, 40));
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    f.outside->interrupted.round_ns = 20 * MS;
    rest_die(&f, SIGTERM, 51);
    expect(&f, 139, CAUSE_SIGNAL, 6, "rank 6 was killed by SIGSEGV");
    end(&f);
}

static void test_a_job_that_deals_with_the_signal(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    rest_exit(&f, 0, 60);
    expect(&f, 0, CAUSE_NONE, -1, "8 ranks succeeded");
    end(&f);
    f = begin(EXIT_FIRST); /* all but one */
    exit_outside_interrupted(f.outside, SIGTERM, 50 * MS);
    exits(&f, 7, 3, 55);
    rest_exit(&f, 0, 60);
    expect(&f, 143, CAUSE_INTERRUPTED, -1, "interrupted (SIGTERM)");
    end(&f);
}

static void test_rank0_rule(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_RANK0); /* rank 0 was done before another one failed */
    assert_false(exits(&f, 0, 0, 5));
    assert_true(exits(&f, 3, 7, 10));
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, 0, CAUSE_EXIT, 3, "rank 3 exited with code 7; exit status 0 is that of rank 0");
    end(&f);
    f = begin(EXIT_RANK0); /* rank 0 fails later, but by itself */
    exits(&f, 3, 7, 10);
    exits(&f, 0, 2, 10.5);
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, 2, CAUSE_EXIT, 3, "rank 3 exited with code 7; exit status 2 is that of rank 0");
    end(&f);
    f = begin(EXIT_RANK0); /* killed by us: the cause counts */
    exits(&f, 3, 7, 10);
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, 7, CAUSE_EXIT, 3, "rank 3 exited with code 7");
    end(&f);
    f = begin(EXIT_RANK0);
    exits(&f, 0, 2, 10);
    rest_exit(&f, 0, 12);
    expect(&f, 2, CAUSE_EXIT, 0, "rank 0 exited with code 2");
    end(&f);
    f = begin(EXIT_RANK0); /* it dealt with the signal, the others did not */
    exit_outside_interrupted(f.outside, SIGINT, 4 * MS);
    exits(&f, 0, 0, 5);
    rest_die(&f, SIGINT, 5);
    expect(&f, 0, CAUSE_INTERRUPTED, -1, "interrupted (SIGINT); exit status 0 is that of rank 0");
    end(&f);
}

static void test_no_ranks_at_all(void **state)
{
    (void)state;
    static const struct plan nobody = {.size = 0};
    const struct exit_outside outside = {.launcher = {.status = 0}};
    for (int rule = EXIT_FIRST; rule <= EXIT_RANK0; rule++) {
        struct exit_policy *policy = exit_policy_create((enum exit_rule)rule, &nobody, &outside);
        struct verdict verdict;
        exit_policy_verdict(policy, &verdict);
        assert_int_equal(verdict.status, 0);
        assert_int_equal(verdict.seat, -1);
        exit_policy_destroy(policy);
    }
}

static void test_rank0_rule_does_not_hide_our_failures(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_RANK0);
    exits(&f, 0, 0, 5);
    is_lost(&f, 1, 10, NULL);
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, STATUS_NODE_LOST, CAUSE_NODE_LOST, -1, "node b was lost");
    end(&f);
    f = begin(EXIT_RANK0);
    exits(&f, 0, 0, 5);
    exits(&f, 7, 3, 9);
    is_lost(&f, 1, 10, NULL);
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, STATUS_NODE_LOST, CAUSE_EXIT, 7,
           "rank 7 exited with code 3; exit status 121, because a node was lost, too");
    end(&f);
    f = begin(EXIT_RANK0);
    exits(&f, 0, 0, 5);
    exit_outside_failed(f.outside, STATUS_TIMEOUT, 10 * MS, "too long");
    kill_all(&f, 11);
    rest_die(&f, SIGTERM, 12);
    expect(&f, STATUS_TIMEOUT, CAUSE_TIMEOUT, -1, "too long");
    end(&f);
}

static void test_a_rank_without_a_status_is_a_failure(void **state)
{
    (void)state;
    for (enum exit_rule rule = EXIT_FIRST; rule <= EXIT_RANK0; rule++) {
        struct fixture f = begin(rule);
        for (int r = 0; r < RANKS; r++)
            if (r != 5)
                exits(&f, r, 0, r);
        expect(&f, STATUS_LAUNCHER, CAUSE_NO_STATUS, 5, "rank 5 ended without an exit status");
        end(&f);
    }
    struct fixture f = begin(EXIT_FIRST);
    exit_policy_destroy(f.policy);
    f.policy = exit_policy_create(EXIT_FIRST, f.plan, f.outside);
    for (int r = 1; r < RANKS; r++)
        exits(&f, r, 0, r);
    assert_int_equal(exit_policy_role(f.policy, 0), ROLE_NOT_STARTED);
    expect(&f, STATUS_LAUNCHER, CAUSE_NO_STATUS, 0, "rank 0 was never started");
    end(&f);
}

/* Killed for a reason that nobody told the policy: never a success. */
static void test_kills_without_a_reason(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    kill_all(&f, 10);
    rest_die(&f, SIGTERM, 11);
    expect(&f, STATUS_LAUNCHER, CAUSE_LAUNCHER, -1,
           "the launcher ended the job without a recorded reason");
    end(&f);
}

static void test_nonsense_is_harmless(void **state)
{
    (void)state;
    struct fixture f = begin(EXIT_FIRST);
    assert_false(exits(&f, -1, 1, 1));
    assert_false(exits(&f, RANKS, 1, 1));
    assert_false(is_lost(&f, NODES, 1, NULL));
    assert_false(is_lost(&f, -1, 1, NULL));
    exit_policy_started(f.policy, RANKS);
    exit_policy_killed(f.policy, NODES, 1);
    exit_policy_killed(f.policy, -1, 1);
    assert_int_equal(exit_policy_role(f.policy, RANKS), ROLE_NONE);
    assert_int_equal(exit_policy_rank_status(f.policy, -1), -1);
    const int64_t odd[] = {INT64_MIN, INT64_MAX};
    for (int i = 0; i < 2; i++) {
        struct exit_event event = {
            .seat = i * 2, .code = 1, .when_ns = odd[i], .uncertainty_ns = odd[1 - i]};
        exit_policy_ended(f.policy, FACT_EXITED, &event, NULL);
    }
    assert_false(exits(&f, 0, 0, 3)); /* a second exit of one rank is no news */
    assert_int_equal(exit_policy_rank_status(f.policy, 0), 1);
    rest_exit(&f, 0, 20);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_int_equal(f.verdict.status, 1);
    end(&f);
    exit_policy_destroy(NULL);
}

static void test_long_texts_stay_one_short_line(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[0] = '\t';
    text[1] = 'x';
    text[sizeof(text) - 2] = '\0';
    struct fixture f = begin(EXIT_FIRST);
    aborts(&f, 1, 3, text, 1);
    rest_exit(&f, 0, 2);
    exit_policy_verdict(f.policy, &f.verdict);
    assert_null(strchr(f.verdict.explanation, '\t'));
    size_t length = strlen(f.verdict.explanation);
    assert_in_range(length, 100, 300);
    assert_string_equal(f.verdict.explanation + length - 2, "\xc3\xa4");
    end(&f);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Rank 1 was ending when the kill reached its node, and rank 2 was not. */
static void test_what_was_ending_is_not_ended_by_the_kill(void **state)
{
    (void)state;
    static const enum exit_rule rules[] = {EXIT_FIRST, EXIT_MAX};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = begin(rules[i]);
        assert_true(exits(&f, 0, 1, 10));
        kill_all(&f, 20);
        struct exit_event event = {.seat = 1, .code = 3, .when_ns = 30 * MS, .ending_ns = 10 * MS};
        exit_policy_ended(f.policy, FACT_EXITED, &event, NULL);
        event =
            (struct exit_event){.seat = 2, .code = 4, .when_ns = 30 * MS, .ending_ns = 20 * MS + 1};
        exit_policy_ended(f.policy, FACT_EXITED, &event, NULL);
        rest_die(&f, SIGTERM, 40);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.status, i == 0 ? 1 : 3);
        assert_int_equal(exit_policy_role(f.policy, 1), ROLE_FAILED);
        assert_int_equal(exit_policy_role(f.policy, 2), ROLE_CONSEQUENCE);
        end(&f);
    }
}

/* It counts from when its agent saw it ending, unless a lost peer may be the reason. */
static void test_the_time_of_an_end(void **state)
{
    (void)state;
    static const struct {
        bool signaled;
        int code, time;
    } cases[] = {{true, SIGSEGV, 1}, {true, SIGKILL, 1}, {true, SIGABRT, 2}, {true, SIGPIPE, 2},
                 {true, SIGTERM, 2}, {false, 3, 2},      {false, 0, 2},      {false, SIGSEGV, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct exit_event event = {
            .signaled = cases[i].signaled, .code = cases[i].code, .when_ns = 2, .ending_ns = 1};
        assert_int_equal(exit_event_time(&event), cases[i].time);
        event.ending_ns = 0;
        assert_int_equal(exit_event_time(&event), 2);
    }
}

/* What must hold whatever happens, over many random histories: the status is 0 only when nobody
 * failed and everyone was heard; the teardown starts at most once; the order of the news does not
 * change the verdict. */
static void test_random_histories(void **state)
{
    (void)state;
    uint64_t seed = 20261121;
    for (int round = 0; round < 2000; round++) {
        struct fixture f = begin(EXIT_FIRST), g = begin(EXIT_FIRST);
        struct exit_event events[RANKS];
        int starts = 0, bad = 0;
        for (int r = 0; r < RANKS; r++) {
            uint64_t kind = next_random(&seed) % 4;
            events[r] = (struct exit_event){
                .seat = r,
                .signaled = kind == 0,
                .code = kind == 0   ? SIGTERM
                        : kind == 1 ? (int)(next_random(&seed) % 256)
                                    : 0,
                .when_ns = (int64_t)(next_random(&seed) % 50),
                .uncertainty_ns = (int64_t)(next_random(&seed) % 10),
            };
            bad += events[r].signaled || events[r].code != 0;
        }
        for (int n = 0; n < NODES; n++) {
            int64_t when = 10 + (int64_t)(next_random(&seed) % 50);
            exit_policy_killed(g.policy, n, when);
            for (int l = 0; l < RANKS_PER_NODE; l++)
                starts +=
                    exit_policy_ended(f.policy, FACT_EXITED, &events[n * RANKS_PER_NODE + l], NULL);
            exit_policy_killed(f.policy, n, when);
        }
        for (int r = RANKS - 1; r >= 0; r--)
            exit_policy_ended(g.policy, FACT_EXITED, &events[r], NULL);
        assert_in_range(starts, 0, 1);
        exit_policy_verdict(f.policy, &f.verdict);
        exit_policy_verdict(g.policy, &g.verdict);
        assert_string_equal(f.verdict.explanation, g.verdict.explanation);
        assert_int_equal(f.verdict.status, g.verdict.status);
        assert_int_equal(f.verdict.status == 0, bad == 0);
        end(&f);
        end(&g);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(exit_cause_name(CAUSE_NODE_LOST), "node-lost");
    assert_string_equal(exit_role_name(ROLE_NOT_STARTED), "not-started");
}

/* The earliest failure is the cause, on whichever node. */
static void test_the_cause_is_on_any_node(void **state)
{
    (void)state;
    for (int first = 0; first < RANKS; first++) {
        struct fixture f = begin(EXIT_FIRST);
        int second = (first + 3) % RANKS;
        assert_true(exits(&f, first, 3, 10));
        exits(&f, second, 4, 20);
        kill_all(&f, 30);
        rest_die(&f, SIGTERM, 40);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.seat, first);
        assert_int_equal(f.verdict.status, 3);
        assert_int_equal(exit_policy_role(f.policy, first), ROLE_CAUSE);
        end(&f);
    }
}

static void expect_text(const char *text, size_t max, const char *expected)
{
    char *got = exit_text(text, max);
    if (expected == NULL)
        assert_null(got);
    else
        assert_string_equal(got, expected);
    free(got);
}

static void test_texts_of_workers(void **state)
{
    (void)state;
    expect_text(NULL, 10, NULL);
    expect_text("", 10, NULL);
    expect_text(" \n\t", 10, NULL);
    expect_text("x", 10, "x");
    expect_text("x\n", 10, "x");
    expect_text("two\nlines\x7f!", 20, "two lines !");
    expect_text("0123456789", 10, "0123456789");
    expect_text("0123456789x", 10, "0123456789");
    expect_text("01234567\xc3\xbc", 10, "01234567\xc3\xbc");
    expect_text("012345678\xc3\xbc", 10, "012345678");
    expect_text("\x80\x80", 1, NULL);
}

/* A program that is not there explains the exits of its peers, and so does an abort. */
static void test_tie_with_a_program_that_is_not_there(void **state)
{
    (void)state;
    for (int aborted = 0; aborted < 2; aborted++) {
        struct fixture f = begin(EXIT_FIRST);
        struct exit_event event = {
            .seat = 6, .code = 9, .when_ns = 10 * MS + MS / 5, .uncertainty_ns = MS / 2};
        ends_about(&f, 2, 1, 0, 10.0);
        if (aborted != 0)
            exit_policy_ended(f.policy, FACT_ABORTED, &event, NULL);
        else
            exit_policy_ended(f.policy, FACT_NOT_EXECUTED, &event, "no such file");
        rest_exit(&f, 0, 20);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.seat, 6);
        assert_true(f.verdict.tie);
        end(&f);
    }
}

static void test_any_node_may_be_lost(void **state)
{
    (void)state;
    for (int node = 0; node < NODES; node++) {
        struct fixture f = begin(EXIT_FIRST);
        assert_true(is_lost(&f, node, 10, "no heartbeat"));
        kill_all(&f, 20);
        rest_die(&f, SIGKILL, 30);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.status, STATUS_NODE_LOST);
        assert_int_equal(f.verdict.node, node);
        assert_non_null(strstr(f.verdict.explanation, "no heartbeat"));
        end(&f);
        f = begin(EXIT_FIRST); /* and hvdrun fails because of that */
        assert_true(is_lost(&f, node, 10, "no heartbeat"));
        exit_outside_failed(f.outside, STATUS_LAUNCHER, 15 * MS, NULL);
        kill_all(&f, 20);
        rest_die(&f, SIGKILL, 30);
        exit_policy_verdict(f.policy, &f.verdict);
        assert_int_equal(f.verdict.status, STATUS_NODE_LOST);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_well),
        cmocka_unit_test(test_first_bad_exit_starts_the_teardown_once),
        cmocka_unit_test(test_ranks_that_come_later),
        cmocka_unit_test(test_signal_death),
        cmocka_unit_test(test_order_of_news_does_not_matter),
        cmocka_unit_test(test_consequences_are_told_by_their_own_node),
        cmocka_unit_test(test_max_keeps_a_first_failure_that_is_the_highest),
        cmocka_unit_test(test_tie_crash_beats_exit),
        cmocka_unit_test(test_tie_lowest_rank),
        cmocka_unit_test(test_no_tie_beyond_the_uncertainty),
        cmocka_unit_test(test_a_crash_that_is_seen_late),
        cmocka_unit_test(test_exits_of_one_node_are_compared_exactly),
        cmocka_unit_test(test_grades),
        cmocka_unit_test(test_killed_from_outside_is_said),
        cmocka_unit_test(test_many_in_a_tie),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_abort_after_a_crash_elsewhere),
        cmocka_unit_test(test_exec_failure),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_node_lost_goes_before_its_victims),
        cmocka_unit_test(test_a_peer_notices_a_loss_first),
        cmocka_unit_test(test_a_failure_near_a_loss_that_stands_alone),
        cmocka_unit_test(test_a_silent_failure_near_a_loss),
        cmocka_unit_test(test_a_failure_after_a_host_fell_silent),
        cmocka_unit_test(test_a_peer_of_a_rank_whose_end_nobody_saw),
        cmocka_unit_test(test_several_losses),
        cmocka_unit_test(test_an_error_on_the_host_that_is_lost),
        cmocka_unit_test(test_an_error_on_another_host_before_a_loss),
        cmocka_unit_test(test_peers_of_a_rank_that_fell_with_its_node),
        cmocka_unit_test(test_node_killed_with_its_ranks),
        cmocka_unit_test(test_node_lost_in_the_teardown),
        cmocka_unit_test(test_node_lost_in_the_teardown_by_another_clock),
        cmocka_unit_test(test_an_exit_at_the_time_of_the_kill_is_causal),
        cmocka_unit_test(test_launcher_failure_in_the_teardown),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_start_timeout_and_internal_failure),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_failure_before_the_interruption),
        cmocka_unit_test(test_signal_round),
        cmocka_unit_test(test_a_job_that_deals_with_the_signal),
        cmocka_unit_test(test_rank0_rule),
        cmocka_unit_test(test_no_ranks_at_all),
        cmocka_unit_test(test_rank0_rule_does_not_hide_our_failures),
        cmocka_unit_test(test_a_rank_without_a_status_is_a_failure),
        cmocka_unit_test(test_kills_without_a_reason),
        cmocka_unit_test(test_nonsense_is_harmless),
        cmocka_unit_test(test_long_texts_stay_one_short_line),
        cmocka_unit_test(test_what_was_ending_is_not_ended_by_the_kill),
        cmocka_unit_test(test_the_time_of_an_end),
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_the_cause_is_on_any_node),
        cmocka_unit_test(test_texts_of_workers),
        cmocka_unit_test(test_tie_with_a_program_that_is_not_there),
        cmocka_unit_test(test_any_node_may_be_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
