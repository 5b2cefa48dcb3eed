/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile.h"
#include "model/plan/plan.h"

struct shape {
    const char *hosts;
    int np; /* of the request */
    bool oversubscribe;
    int app_np[4]; /* ends with -1; {-1} alone is one app without a count */
};

static struct plan *make(const struct shape *shape, struct error *err)
{
    struct host_list hosts = {0};
    struct app_list apps = {0};
    assert_int_equal(hosts_parse(shape->hosts, &hosts, err), 0);
    if (shape->app_np[0] < 0)
        app_list_add(&apps);
    for (int i = 0; shape->app_np[i] >= 0; i++)
        app_list_add(&apps)->np = shape->app_np[i];
    struct plan_request request = {
        .hosts = &hosts,
        .apps = &apps,
        .np = shape->np,
        .oversubscribe = shape->oversubscribe,
    };
    struct plan *plan = plan_create(&request, err);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    return plan;
}

/* What holds for every plan by slots, whatever its numbers. */
static void check_consistency(const struct plan *plan)
{
    int next = 0;
    for (int n = 0; n < plan->node_count; n++) {
        assert_true(plan->nodes[n].local_size > 0);
        for (int l = 0; l < plan->nodes[n].local_size; l++, next++) {
            assert_int_equal(plan->nodes[n].ranks[l], next);
            assert_int_equal(plan->ranks[next].rank, next);
            assert_int_equal(plan->ranks[next].node, n);
            assert_int_equal(plan->ranks[next].local_rank, l);
            assert_in_range(plan->ranks[next].cross_rank, 0, plan->ranks[next].cross_size - 1);
        }
    }
    assert_int_equal(next, plan->size);
    assert_true(plan_is_by_blocks(plan));
}

/* "host local/local_size cross/cross_size", one for each rank, separated by "; ". */
static void expect(const char *hosts, int np, bool oversubscribe, const char *expected)
{
    struct shape shape = {hosts, np, oversubscribe, {-1}};
    struct error err = ERROR_INIT;
    struct plan *plan = make(&shape, &err);
    if (plan == NULL)
        fail_msg("%s -np %d: %s", hosts, np, err.text);
    check_consistency(plan);
    struct buf got = BUF_INIT(1 << 20);
    for (int r = 0; r < plan->size; r++) {
        const struct plan_rank *rank = &plan->ranks[r];
        buf_printf(&got, "%s%s %d/%d %d/%d", r > 0 ? "; " : "", plan->nodes[rank->node].name,
                   rank->local_rank, plan->nodes[rank->node].local_size, rank->cross_rank,
                   rank->cross_size);
    }
    assert_string_equal(buf_text(&got), expected);
    buf_destroy(&got);
    plan_destroy(plan);
}

/* Derived by hand from horovodrun's rule: hosts are filled in order; the cross communicator of a
 * local rank is made of the hosts that have this local rank, in host order. */
static void test_horovod_rule(void **state)
{
    (void)state;
    expect("a:1", 1, false, "a 0/1 0/1");
    expect("a:4", 4, false, "a 0/4 0/1; a 1/4 0/1; a 2/4 0/1; a 3/4 0/1");
    expect("a:4", 2, false, "a 0/2 0/1; a 1/2 0/1");
    expect("a:2,b:2", 4, false, "a 0/2 0/2; a 1/2 0/2; b 0/2 1/2; b 1/2 1/2");
    expect("a:2,b:2", 3, false, "a 0/2 0/2; a 1/2 0/1; b 0/1 1/2");
    /* local rank 0 is on three hosts, 1 on two, 2 and 3 on b alone */
    expect("a:2,b:4,c:1", 7, false,
           "a 0/2 0/3; a 1/2 0/2; b 0/4 1/3; b 1/4 1/2; b 2/4 0/1; b 3/4 0/1; c 0/1 2/3");
    /* one rank less: c has none and is no node */
    expect("a:2,b:4,c:1", 6, false,
           "a 0/2 0/2; a 1/2 0/2; b 0/4 1/2; b 1/4 1/2; b 2/4 0/1; b 3/4 0/1");
    expect("a:2,b:4,c:1", 5, false, "a 0/2 0/2; a 1/2 0/2; b 0/3 1/2; b 1/3 1/2; b 2/3 0/1");
    expect("a:1,b:3", 4, false, "a 0/1 0/2; b 0/3 1/2; b 1/3 0/1; b 2/3 0/1");
    expect("a:3,b:1", 4, false, "a 0/3 0/2; a 1/3 0/1; a 2/3 0/1; b 0/1 1/2");
    expect("a:3,b:1,c:3", 7, false,
           "a 0/3 0/3; a 1/3 0/2; a 2/3 0/2; b 0/1 1/3; c 0/3 2/3; c 1/3 1/2; c 2/3 1/2");
    /* cut in the middle of c: local rank 2 is a's alone */
    expect("a:3,b:1,c:3", 6, false,
           "a 0/3 0/3; a 1/3 0/2; a 2/3 0/1; b 0/1 1/3; c 0/2 2/3; c 1/2 1/2");
    expect("a:1,b:2,c:3", 6, false,
           "a 0/1 0/3; b 0/2 1/3; b 1/2 0/2; c 0/3 2/3; c 1/3 1/2; c 2/3 0/1");
    expect("a,b,c", 3, false, "a 0/1 0/3; b 0/1 1/3; c 0/1 2/3");
    /* a duplicate adds to the first appearance, so c comes last */
    expect("a:1,c:1,a:2", 4, false, "a 0/3 0/2; a 1/3 0/1; a 2/3 0/1; c 0/1 1/2");
    expect("a:2,b:4", 0, false, "a 0/2 0/2; a 1/2 0/2; b 0/4 1/2; b 1/4 1/2; b 2/4 0/1; b 3/4 0/1");
}

static void test_hosts_without_ranks(void **state)
{
    (void)state;
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse("a:1,b:2,c:3", &hosts, &err), 0);
    app_list_add(&apps);
    struct plan_request request = {.hosts = &hosts, .apps = &apps, .np = 2, .idle_hosts = true};
    struct plan *plan = plan_create(&request, &err);
    assert_non_null(plan);
    assert_int_equal(plan->node_count, 3);
    static const int sizes[] = {1, 1, 0};
    for (int n = 0; n < 3; n++) {
        assert_int_equal(plan->nodes[n].local_size, sizes[n]);
        assert_int_equal(plan->nodes[n].slots, n + 1);
        assert_int_equal(plan->nodes[n].name[0], "abc"[n]);
    }
    plan_destroy(plan);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
}

static void test_oversubscribe(void **state)
{
    (void)state;
    /* enough slots: no difference */
    expect("a:2,b:2", 3, true, "a 0/2 0/2; a 1/2 0/1; b 0/1 1/2");
    /* a second round gives a one more: 2 + 1 and 1 */
    expect("a:2,b:1", 4, true, "a 0/3 0/2; a 1/3 0/1; a 2/3 0/1; b 0/1 1/2");
    /* two full rounds and one more: a has 1 + 1 + 1, b 1 + 1 */
    expect("a:1,b:1", 5, true, "a 0/3 0/2; a 1/3 0/2; a 2/3 0/1; b 0/2 1/2; b 1/2 1/2");
    /* the second round fills a and gives one to b */
    expect("a:1,b:2", 5, true, "a 0/2 0/2; a 1/2 0/2; b 0/3 1/2; b 1/3 1/2; b 2/3 0/1");
    expect("a", 3, true, "a 0/3 0/1; a 1/3 0/1; a 2/3 0/1");
}

static void test_apps(void **state)
{
    (void)state;
    struct shape shape = {"a:2,b:2", 0, false, {1, 3, -1}};
    struct error err = ERROR_INIT;
    struct plan *plan = make(&shape, &err);
    assert_non_null(plan);
    check_consistency(plan);
    const int app[] = {0, 1, 1, 1}, app_rank[] = {0, 0, 1, 2}, node[] = {0, 0, 1, 1};
    for (int r = 0; r < 4; r++) {
        assert_int_equal(plan->ranks[r].app, app[r]);
        assert_int_equal(plan->ranks[r].app_rank, app_rank[r]);
        assert_int_equal(plan->ranks[r].node, node[r]);
    }
    plan_destroy(plan);
    struct shape agreeing = {"a:4", 3, false, {1, 2, -1}};
    plan = make(&agreeing, &err);
    assert_int_equal(plan->size, 3);
    plan_destroy(plan);
    struct shape own = {"a:4", 0, false, {2, -1}};
    plan = make(&own, &err);
    assert_int_equal(plan->size, 2);
    assert_int_equal(plan->ranks[1].app_rank, 1);
    plan_destroy(plan);
}

static void expect_refusal(const struct shape *shape, int status, const char *cause)
{
    struct error err = ERROR_INIT;
    struct plan *plan = make(shape, &err);
    if (plan != NULL)
        fail_msg("%s was planned", shape->hosts);
    assert_int_equal(err.status, status);
    if (strstr(err.text, cause) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, cause);
    assert_null(strchr(err.text, '\n'));
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal(&(struct shape){"a:4", 0, false, {1, 0, -1}}, STATUS_USAGE,
                   "program 2 of 2 has no number of ranks");
    expect_refusal(&(struct shape){"a:8", 4, false, {1, 2, -1}}, STATUS_USAGE,
                   "ask for 3 together");
    expect_refusal(&(struct shape){"a:8", 4, false, {2, -1}}, STATUS_USAGE, "ask for 2 together");
    expect_refusal(&(struct shape){"a:8", -1, false, {-1}}, STATUS_USAGE, "give -np 1 or more");
    expect_refusal(&(struct shape){"n[1-100]:1000000", 0, false, {-1}}, STATUS_USAGE,
                   "100000000 ranks are more than");
    expect_refusal(&(struct shape){"a", INT32_MAX, true, {-1}}, STATUS_USAGE, "more than the");
}

static void test_not_enough_slots(void **state)
{
    (void)state;
    struct shape shape = {"a:4,b:2", 8, false, {-1}};
    struct error err = ERROR_INIT;
    assert_null(make(&shape, &err));
    assert_int_equal(err.status, STATUS_NO_SLOTS);
    assert_string_equal(err.text,
                        "not enough slots: 8 ranks wanted, 6 slots found (a: 4, b: 2); give more "
                        "hosts or slots, or --oversubscribe");
    expect_refusal(&(struct shape){"a", 2, false, {-1}}, STATUS_NO_SLOTS,
                   "2 ranks wanted, 1 slot found (a: 1); give");
    expect_refusal(&(struct shape){"a:2", 0, false, {2, 1, -1}}, STATUS_NO_SLOTS, "3 ranks wanted");
    expect_refusal(&(struct shape){"node[001-999]", 1000, false, {-1}}, STATUS_NO_SLOTS,
                   ", ...); give more hosts");
}

static void test_no_slots_at_all(void **state)
{
    (void)state;
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct error err = ERROR_INIT;
    app_list_add(&apps);
    hosts_add(&hosts, "a", 0, true);
    struct plan_request request = {.hosts = &hosts, .apps = &apps, .np = 2, .oversubscribe = true};
    assert_null(plan_create(&request, &err));
    assert_int_equal(err.status, STATUS_NO_SLOTS);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    plan_destroy(NULL);
}

static void test_the_way_to_a_node(void **state)
{
    (void)state;
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct error err = ERROR_INIT;
    const char text[] = "a slots=1\nann@b slots=2 port=2222 address=10.0.0.2\n";
    const struct hostfile file = {.bytes = text, .length = strlen(text), .name = "f"};
    assert_int_equal(hostfile_parse(&file, &hosts, &err), 0);
    app_list_add(&apps);
    struct plan_request request = {.hosts = &hosts, .apps = &apps};
    struct plan *plan = plan_create(&request, &err);
    hosts_destroy(&hosts); /* the plan has copies */
    assert_non_null(plan);
    assert_int_equal(plan->node_count, 2);
    assert_null(plan->nodes[0].traits.user);
    assert_null(plan->nodes[0].traits.address);
    assert_int_equal(plan->nodes[0].traits.port, 0);
    assert_string_equal(plan->nodes[1].traits.user, "ann");
    assert_string_equal(plan->nodes[1].traits.address, "10.0.0.2");
    assert_int_equal(plan->nodes[1].traits.port, 2222);
    plan_destroy(plan);
    app_list_destroy(&apps);
}

static void test_description(void **state)
{
    (void)state;
    static const struct {
        int ranks[20], count;
        const char *text;
    } cases[] = {{{4}, 1, "rank 4"},
                 {{0, 1, 2, 3}, 4, "ranks 0-3"},
                 {{0, 2, 4}, 3, "ranks 0,2,4"},
                 {{1, 2, 5, 7, 8, 9}, 6, "ranks 1-2,5,7-9"},
                 {{0, 2, 4, 6, 8, 10, 12, 14}, 8, "ranks 0,2,4,6,8,10,12,14"},
                 {{0, 2, 4, 6, 8, 10, 12, 14, 16}, 9, "ranks 0,2,4,6,8,10,12,14,..."}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_node node = {.local_size = cases[i].count, .ranks = cases[i].ranks};
        struct buf text = BUF_INIT(256);
        plan_node_describe(&node, &text);
        assert_string_equal(buf_text(&text), cases[i].text);
        buf_destroy(&text);
    }
}

/* Quadratic behaviour would run into the test's time limit. */
static void test_a_million_ranks(void **state)
{
    (void)state;
    struct shape wide = {"n[1-100000]:10", 1000000, false, {-1}};
    struct error err = ERROR_INIT;
    struct plan *plan = make(&wide, &err);
    assert_non_null(plan);
    check_consistency(plan);
    assert_int_equal(plan->ranks[999999].cross_rank, 99999);
    assert_int_equal(plan->ranks[999999].cross_size, 100000);
    plan_destroy(plan);
    struct shape deep = {"a:1,b:1000000", 1000000, false, {999999, 1, -1}};
    plan = make(&deep, &err);
    assert_non_null(plan);
    check_consistency(plan);
    assert_int_equal(plan->ranks[999999].local_rank, 999998);
    assert_int_equal(plan->ranks[999999].app, 1);
    plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_horovod_rule),    cmocka_unit_test(test_hosts_without_ranks),
        cmocka_unit_test(test_oversubscribe),   cmocka_unit_test(test_apps),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_not_enough_slots),
        cmocka_unit_test(test_no_slots_at_all), cmocka_unit_test(test_the_way_to_a_node),
        cmocka_unit_test(test_description),     cmocka_unit_test(test_a_million_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
