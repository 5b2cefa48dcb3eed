/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks go that a running job adds, and the plan with them. */
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
#include "model/plan/spawn.h"

#define RANKS_MAX 16

/* A job of `np` ranks on these hosts, and which of them have ended. */
struct fixture {
    struct plan *whole;
    bool ended[RANKS_MAX];
    int slots[RANKS_MAX];
    const char *hostnames[RANKS_MAX];
    bool oversubscribe;
    struct error err;
};

static struct fixture begin(const char *hosts_text, int np)
{
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct fixture f = {.err = ERROR_INIT};
    assert_int_equal(hosts_parse(hosts_text, &hosts, &f.err), 0);
    app_list_add(&apps);
    const struct mapping by_node = {.rule = MAP_NODE};
    struct plan_request request = {.hosts = &hosts, .apps = &apps, .np = np, .mapping = &by_node};
    f.whole = plan_create(&request, &f.err);
    assert_non_null(f.whole);
    for (int n = 0; n < f.whole->node_count; n++)
        f.slots[n] = f.whole->nodes[n].slots, f.hostnames[n] = "machine";
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    return f;
}

static struct plan *add(struct fixture *f, const struct spawn_app *apps, int count)
{
    struct spawn_request request = {.whole = f->whole,
                                    .ended = f->ended,
                                    .slots = f->slots,
                                    .hostnames = f->hostnames,
                                    .apps = apps,
                                    .app_count = count,
                                    .oversubscribe = f->oversubscribe};
    f->err = (struct error)ERROR_INIT;
    return spawn_plan(&request, &f->err);
}

/* "a0 a1 b2": node and slot of each rank. Adds them to the job. */
static void expect(struct fixture *f, const struct spawn_app *apps, int count, const char *places)
{
    struct plan *plan = add(f, apps, count);
    if (plan == NULL)
        fail_msg("%s", f->err.text);
    AUTO_BUF struct buf got = BUF_INIT(1024);
    for (int r = 0; r < plan->size; r++)
        buf_printf(&got, "%s%s%d", r > 0 ? " " : "", plan->nodes[plan->ranks[r].node].name,
                   plan->ranks[r].slot);
    assert_string_equal(buf_text(&got), places);
    struct plan *joined = spawn_join(f->whole, plan, 1);
    plan_destroy(plan);
    plan_destroy(f->whole);
    f->whole = joined;
}

static void expect_none(struct fixture *f, const struct spawn_app *apps, int count, int status,
                        const char *text)
{
    assert_null(add(f, apps, count));
    assert_int_equal(f->err.status, status);
    if (strstr(f->err.text, text) == NULL)
        fail_msg("%s", f->err.text);
}

static void test_free_slots(void **state)
{
    (void)state;
    struct fixture f = begin("a:2,b:4", 3); /* a0 b0 a1 */
    const struct spawn_app two = {2, NULL};
    expect(&f, &two, 1, "b1 b2");
    expect_none(&f, &two, 1, STATUS_NO_SLOTS, "2 ranks are wanted, and 1 slot is free");
    f.ended[0] = f.ended[4] = true; /* a0, b2 */
    expect(&f, &two, 1, "a0 b2");
    const struct spawn_app one = {1, ""};
    expect(&f, &one, 1, "b3");
    expect_none(&f, &one, 1, STATUS_NO_SLOTS, "1 rank is wanted, and 0 slots are free");
    plan_destroy(f.whole);
}

static void test_hosts(void **state)
{
    (void)state;
    struct fixture f = begin("a:3,b:4", 2); /* a0 b0 */
    const struct spawn_app apps[] = {{2, "b:1,a"}, {2, "b"}};
    expect(&f, apps, 2, "a1 a2 b1 b2");
    const struct spawn_app limited = {2, "b:1"}, other = {1, "c"}, none = {1, ","};
    expect_none(&f, &limited, 1, STATUS_NO_SLOTS, "2 ranks are wanted, and 1 slot is free");
    expect_none(&f, &other, 1, STATUS_NO_SLOTS, "c is not one of the hosts");
    expect_none(&f, &none, 1, STATUS_NO_SLOTS, "0 slots are free");
    plan_destroy(f.whole);
}

/* As MPI_Get_processor_name() tells them, and addresses, whose end may look like a number. */
static void test_names_of_machines(void **state)
{
    (void)state;
    struct fixture f = begin("10.0.0.1:3,[fe80::1]:3,c:3", 3);
    f.hostnames[0] = "node1.example";
    f.hostnames[1] = "c"; /* the plan's names are stronger */
    f.hostnames[2] = "node3";
    const struct spawn_app one = {1, "node1.example"}, two = {2, "fe80::1,node3:1"},
                           three = {1, "c"};
    expect(&f, &one, 1, "10.0.0.11");
    expect(&f, &two, 1, "fe80::11 fe80::12");
    expect(&f, &three, 1, "c1");
    const struct spawn_app again = {2, "node3:1"};
    expect_none(&f, &again, 1, STATUS_NO_SLOTS, "2 ranks are wanted, and 1 slot is free");
    f.hostnames[0] = f.hostnames[2] = "both";
    const struct spawn_app both = {2, "both"};
    expect(&f, &both, 1, "10.0.0.12 c2");
    plan_destroy(f.whole);
}

static void test_oversubscribed(void **state)
{
    (void)state;
    struct fixture f = begin("a:1,b:2", 3);
    const struct spawn_app four = {4, NULL}, on_a = {1, "a"};
    f.oversubscribe = true;
    expect(&f, &four, 1, "a1 b2 b3 a2");
    expect(&f, &on_a, 1, "a3");
    plan_destroy(f.whole);
}

static void test_the_plan_of_the_job(void **state)
{
    (void)state;
    struct fixture f = begin("a:3,b:3", 2);
    const struct spawn_app apps[] = {{1, "b"}, {2, NULL}};
    expect(&f, apps, 2, "b1 a1 a2");
    const struct plan *plan = f.whole;
    assert_int_equal(plan->size, 5);
    static const int nodes[] = {0, 1, 1, 0, 0}, all_apps[] = {0, 0, 1, 2, 2};
    for (int r = 0; r < plan->size; r++) {
        assert_int_equal(plan->ranks[r].rank, r);
        assert_int_equal(plan->ranks[r].node, nodes[r]);
        assert_int_equal(plan->ranks[r].app, all_apps[r]);
    }
    assert_int_equal(plan->nodes[0].local_size, 3);
    assert_int_equal(plan->nodes[0].ranks[2], 4);
    assert_int_equal(plan->nodes[1].ranks[1], 2);
    plan_destroy(f.whole);
}

static void test_the_plan_of_the_new_ranks(void **state)
{
    (void)state;
    struct fixture f = begin("a:1,b:3", 2);
    const struct spawn_app two = {2, NULL};
    struct plan *plan = add(&f, &two, 1);
    assert_non_null(plan);
    assert_int_equal(plan->node_count, 2); /* all of the job's */
    assert_int_equal(plan->nodes[0].local_size, 0);
    assert_int_equal(plan->nodes[1].local_size, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(plan->ranks[r].rank, r);
        assert_int_equal(plan->ranks[r].local_rank, r);
        assert_int_equal(plan->ranks[r].cross_size, 1);
    }
    plan_destroy(plan);
    plan_destroy(f.whole);
}

/* Each takes the slot behind the last one, however many there are. */
static void test_very_many(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    struct fixture f = begin("a:1", 1);
    f.oversubscribe = true;
    const struct spawn_app all[] = {{MANY, NULL}};
    struct plan *plan = add(&f, all, 1);
    assert_non_null(plan);
    assert_int_equal(plan->ranks[MANY - 1].slot, MANY);
    plan_destroy(plan);
    plan_destroy(f.whole);
}

static void test_nonsense(void **state)
{
    (void)state;
    struct fixture f = begin("a:4", 1);
    const struct spawn_app wrong[][2] = {{{0, NULL}, {1, NULL}},
                                         {{-1, NULL}, {1, NULL}},
                                         {{INT32_MAX, NULL}, {INT32_MAX, NULL}},
                                         {{1, NULL}, {PLAN_SIZE_MAX, NULL}}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_none(&f, wrong[i], 2, STATUS_USAGE, i < 2 ? "no ranks are wanted" : "ranks in all");
    expect_none(&f, wrong[0], 0, STATUS_USAGE, "ranks in all");
    plan_destroy(f.whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_slots),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_names_of_machines),
        cmocka_unit_test(test_oversubscribed),
        cmocka_unit_test(test_the_plan_of_the_job),
        cmocka_unit_test(test_the_plan_of_the_new_ranks),
        cmocka_unit_test(test_very_many),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
