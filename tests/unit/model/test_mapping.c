/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "model/plan/mapping.h"
#include "model/plan/plan.h"
#include "model/plan/rank_list.h"

struct shape {
    const char *map_by;   /* NULL: slot */
    const char *rankfile; /* the host of each rank, with commas between */
    const char *hosts;
    int np;
    bool oversubscribe;
    const char *limited; /* this host ... */
    int max_slots;       /* ... never gets more */
};

static void read_rankfile(const char *hosts, struct mapping *mapping)
{
    struct error err = ERROR_INIT;
    struct buf file = BUF_INIT(4096);
    for (int rank = 0; *hosts != '\0'; rank++) {
        size_t length = strcspn(hosts, ",");
        buf_printf(&file, "rank %d=%.*s\n", rank, (int)length, hosts);
        hosts += length + (hosts[length] == ',');
    }
    mapping->rule = MAP_LIST;
    if (rankfile_parse(buf_text(&file), file.length, "ranks", &mapping->list, &err) < 0)
        fail_msg("%s", err.text);
    buf_destroy(&file);
}

static void prepare(const struct shape *shape, struct mapping *mapping, struct host_list *hosts)
{
    struct error err = ERROR_INIT;
    if (shape->map_by != NULL && mapping_parse(shape->map_by, mapping, &err) < 0)
        fail_msg("%s", err.text);
    if (shape->rankfile != NULL)
        read_rankfile(shape->rankfile, mapping);
    assert_int_equal(hosts_parse(shape->hosts, hosts, &err), 0);
    for (size_t i = 0; i < hosts->count; i++) {
        if (shape->limited != NULL && strcmp(hosts->items[i].name, shape->limited) == 0)
            hosts->items[i].max_slots = shape->max_slots;
    }
}

static struct plan *make(const struct shape *shape, struct error *err)
{
    struct mapping mapping = {.rule = MAP_SLOT};
    struct host_list hosts = {0};
    struct app_list apps = {0};
    app_list_add(&apps);
    prepare(shape, &mapping, &hosts);
    struct plan_request request = {.hosts = &hosts,
                                   .apps = &apps,
                                   .np = shape->np,
                                   .oversubscribe = shape->oversubscribe,
                                   .mapping = &mapping};
    struct plan *plan = plan_create(&request, err);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    mapping_destroy(&mapping);
    return plan;
}

/* What holds for every plan, whatever its mapping. */
static void check(const struct plan *plan)
{
    int seen = 0, last_first = -1;
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        assert_true(node->local_size > 0);
        assert_true(node->ranks[0] > last_first); /* in the order of the lowest ranks */
        last_first = node->ranks[0];
        for (int l = 0; l < node->local_size; l++, seen++) {
            int rank = node->ranks[l];
            assert_in_range(rank, 0, plan->size - 1);
            assert_true(l == 0 || rank > node->ranks[l - 1]);
            assert_int_equal(plan->ranks[rank].rank, rank);
            assert_int_equal(plan->ranks[rank].node, n);
            assert_int_equal(plan->ranks[rank].local_rank, l);
            assert_in_range(plan->ranks[rank].cross_rank, 0, plan->ranks[rank].cross_size - 1);
        }
    }
    assert_int_equal(seen, plan->size);
    assert_int_equal(plan->ranks[0].node, 0);
}

/* `hosts`: that of each rank, with blanks between them. */
static void expect(const struct shape *shape, const char *hosts)
{
    struct error err = ERROR_INIT;
    struct plan *plan = make(shape, &err);
    if (plan == NULL)
        fail_msg("%s", err.text);
    check(plan);
    struct buf got = BUF_INIT(1 << 20);
    for (int r = 0; r < plan->size; r++)
        buf_printf(&got, "%s%s", r > 0 ? " " : "", plan->nodes[plan->ranks[r].node].name);
    assert_string_equal(buf_text(&got), hosts);
    buf_destroy(&got);
    plan_destroy(plan);
}

static void expect_refusal(const struct shape *shape, int status, const char *text)
{
    struct error err = ERROR_INIT;
    struct plan *plan = make(shape, &err);
    if (plan != NULL)
        fail_msg("%s was planned", shape->hosts);
    assert_int_equal(err.status, status);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    assert_null(strchr(err.text, '\n'));
}

#define SHAPE(...) (&(struct shape){.map_by = __VA_ARGS__})

static void test_node(void **state)
{
    (void)state;
    expect(SHAPE("node", NULL, "a:2,b:2", 0), "a b a b");
    expect(SHAPE("node", NULL, "a:2,b:2", 3), "a b a");
    expect(SHAPE("node", NULL, "a:4,b:1", 5), "a b a a a");
    expect(SHAPE("node", NULL, "a:1,b:3,c:2", 0), "a b c b c b");
    expect(SHAPE("NODE", NULL, "a,b,c", 2), "a b");
    expect(SHAPE("node", NULL, "a:1,b:2,a:1", 0), "a b a b");
    expect(SHAPE("node", NULL, "a:5", 0), "a a a a a");
    /* the next round begins when all slots are taken */
    expect(SHAPE("node", NULL, "a:2,b:1", 5, true), "a b a a b");
    expect(SHAPE("node:OVERSUBSCRIBE", NULL, "a,b", 5), "a b a b a");
    expect_refusal(SHAPE("node", NULL, "a:2,b:2", 5), STATUS_NO_SLOTS,
                   "4 slots found (a: 2, b: 2)");
    expect_refusal(SHAPE("node:NOOVERSUBSCRIBE", NULL, "a", 2), STATUS_NO_SLOTS, "1 slot found");
}

static void test_the_numbers_of_a_round(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct plan *plan = make(SHAPE("node", NULL, "a:3,b:1", 4), &err);
    assert_non_null(plan); /* a b a a */
    static const int local[] = {0, 0, 1, 2}, cross[] = {0, 1, 0, 0}, size[] = {2, 2, 1, 1};
    for (int r = 0; r < 4; r++) {
        assert_int_equal(plan->ranks[r].local_rank, local[r]);
        assert_int_equal(plan->ranks[r].cross_rank, cross[r]);
        assert_int_equal(plan->ranks[r].cross_size, size[r]);
    }
    assert_false(plan_is_by_blocks(plan));
    assert_int_equal(plan->nodes[0].local_size, 3);
    assert_int_equal(plan->nodes[0].slots, 3);
    assert_int_equal(plan->nodes[1].slots, 1);
    plan_destroy(plan);
}

static void test_ppr(void **state)
{
    (void)state;
    expect(SHAPE("ppr:2:node", NULL, "a:4,b:4"), "a a b b");
    expect(SHAPE("ppr:2:node", NULL, "a:2,b:2,c:2", 3), "a a b");
    expect(SHAPE("ppr:1:NODE", NULL, "a:4,b:4"), "a b");
    /* nobody has said how many slots there are, so ppr does */
    expect(SHAPE("ppr:3:node", NULL, "a,b"), "a a a b b b");
    expect(SHAPE("ppr:2:node", NULL, "a:1,b:2", 0, true), "a a b b");
    expect_refusal(SHAPE("ppr:2:node", NULL, "a:2,b:1"), STATUS_NO_SLOTS,
                   "--map-by ppr puts 2 ranks on b, which has 1 slot; give it more slots, or "
                   "--oversubscribe");
    expect_refusal(SHAPE("ppr:2:node", NULL, "a:4,b:4", 5), STATUS_USAGE,
                   "ppr:2:node has room for 4 ranks on 2 hosts, but 5 are wanted");
    expect_refusal(SHAPE("ppr:10000000:node", NULL, "a,b"), STATUS_USAGE, "more than the");
}

static void test_slots_of_open_hosts(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct plan *plan = make(SHAPE("ppr:3:node", NULL, "a,b:8"), &err);
    assert_non_null(plan);
    assert_int_equal(plan->nodes[0].slots, 3);
    assert_int_equal(plan->nodes[1].slots, 8);
    plan_destroy(plan);
}

static void test_seq(void **state)
{
    (void)state;
    expect(SHAPE("seq", NULL, "a,b,a"), "a b a");
    expect(SHAPE("seq", NULL, "b,a,b,b", 3), "b a b");
    expect(SHAPE("seq", NULL, "a:4,b:4"), "a b"); /* an entry is one rank, whatever its slots */
    expect(SHAPE("seq", NULL, "n[1-3],n2"), "n1 n2 n3 n2");
    expect(SHAPE("seq", NULL, "a,b,a", 7, true), "a b a a b a a");
    expect_refusal(SHAPE("seq", NULL, "a:4,b:4", 3), STATUS_NO_SLOTS,
                   "3 ranks wanted, but --map-by seq starts one for each of the 2 entries");
}

static void test_numa(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    expect(SHAPE("numa", NULL, "a:2,b:2"), "a a b b");
    struct plan *plan = make(SHAPE("numa", NULL, "a:2"), &err);
    assert_true(plan->round_numa);
    plan_destroy(plan);
    plan = make(SHAPE("slot", NULL, "a:2"), &err);
    assert_false(plan->round_numa);
    plan_destroy(plan);
}

static void test_rankfile(void **state)
{
    (void)state;
    expect(SHAPE(NULL, "a,b,a,a", "a:4,b:4"), "a b a a");
    expect(SHAPE(NULL, "b,b,a", "a,b", 3), "b b a");
    expect(SHAPE(NULL, "+n1,+n0,+n0", "a:2,b:2"), "b a a");
    expect_refusal(SHAPE(NULL, "a,b,a,a", "a:2,b:2"), STATUS_NO_SLOTS,
                   "ranks puts 3 ranks on a, which has 2 slots");
    expect(SHAPE(NULL, "a,b,a,a", "a:2,b:2", 0, true), "a b a a");
    expect_refusal(SHAPE(NULL, "a,c", "a:2,b:2"), STATUS_USAGE,
                   "ranks:2: rank 1 is to run on c, which is not among the 2 hosts");
    expect_refusal(SHAPE(NULL, "a,+n2", "a:2,b:2"), STATUS_USAGE,
                   "rank 1 is to run on +n2, but the last of the job's 2 hosts is +n1");
    expect_refusal(SHAPE(NULL, "a,b", "a:2,b:2", 4), STATUS_USAGE,
                   "ranks has places for 2 ranks, but 4 are wanted");
    expect_refusal(SHAPE(NULL, "a,b", "a:2,b:2", 1), STATUS_USAGE, "but 1 is wanted");
}

static void test_max_slots(void **state)
{
    (void)state;
    expect(SHAPE(NULL, NULL, "a:1,b:1", 5, true, "a", 2), "a a b b b");
    expect(SHAPE("node", NULL, "a:1,b:1", 5, true, "a", 2), "a b a b b");
    expect(SHAPE(NULL, NULL, "a:2,b:1", 7, true, "a", 3), "a a a b b b b");
    expect(SHAPE(NULL, NULL, "a:1,b:1", 2, true, "b", 1), "a b");
    expect_refusal(SHAPE(NULL, NULL, "a:1", 3, true, "a", 2), STATUS_NO_SLOTS,
                   "3 ranks wanted, but max_slots limits the hosts to 2 even with");
    expect_refusal(SHAPE(NULL, NULL, "a", 3, true, "a", 1), STATUS_NO_SLOTS,
                   "3 ranks wanted, but max_slots limits the hosts to 1 even with");
    expect_refusal(SHAPE("node", NULL, "a:1", 3, true, "a", 2), STATUS_NO_SLOTS,
                   "limits the hosts to 2");
    expect_refusal(SHAPE("ppr:3:node", NULL, "a:1,b:1", 0, true, "b", 2), STATUS_NO_SLOTS,
                   "puts 3 ranks on b, which has at most 2 slots; use more hosts");
    expect_refusal(SHAPE(NULL, "b,b,b", "a:1,b:1", 0, true, "b", 2), STATUS_NO_SLOTS,
                   "ranks puts 3 ranks on b, which has at most 2 slots");
    /* a limit holds where nobody said a slot count, too */
    expect_refusal(SHAPE(NULL, "b,b,b", "a,b", 0, false, "b", 2), STATUS_NO_SLOTS, "at most 2");
}

static void test_words(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct mapping mapping = {.rule = MAP_SLOT};
    assert_int_equal(mapping_parse("ppr:2:node:PE=4", &mapping, &err), 0);
    assert_int_equal(mapping.rule, MAP_PPR);
    assert_int_equal(mapping.per_node, 2);
    assert_int_equal(mapping.cpus_per_proc, 4);
    mapping = (struct mapping){.rule = MAP_SLOT};
    assert_int_equal(mapping_parse("node:pe=2,oversubscribe", &mapping, &err), 0);
    assert_int_equal(mapping.rule, MAP_NODE);
    assert_int_equal(mapping.cpus_per_proc, 2);
    assert_true(mapping.oversubscribe);
    mapping = (struct mapping){.rule = MAP_SLOT};
    assert_int_equal(mapping_parse(":OVERSUBSCRIBE", &mapping, &err), 0);
    assert_int_equal(mapping.rule, MAP_SLOT);
    assert_true(mapping.oversubscribe);
}

static void test_bad_words(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "socket",
                                        "core",
                                        "nodes",
                                        "slot ",
                                        "ppr",
                                        "ppr:",
                                        "ppr:2",
                                        "ppr:2:",
                                        "ppr:0:node",
                                        "ppr:-1:node",
                                        "ppr:+1:node",
                                        "slot:PE=+1",
                                        "ppr:x:node",
                                        "ppr:2:socket",
                                        "ppr:2:core",
                                        "ppr:99999999999:node",
                                        "slot:PE",
                                        "slot:PE=",
                                        "slot:PE=0",
                                        "slot:PE=x",
                                        "slot:SPAN",
                                        "slot:",
                                        "seq:file=x",
                                        "node:PE=2:",
                                        "\x1b[31m",
                                        "rankfile:file=x",
                                        "slot:PE=100001",
                                        "ppr:2:node:PE=4 ",
                                        "nodeaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct mapping mapping = {.rule = MAP_SLOT};
        struct error err = ERROR_INIT;
        if (mapping_parse(texts[i], &mapping, &err) == 0)
            fail_msg("'%s' was taken", texts[i]);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_non_null(strstr(err.text, "expected"));
        assert_null(strchr(err.text, '\x1b'));
    }
}

/* The number of ranks on each host can be said beforehand: what is dealt is what is there. */
static void test_rules_agree_on_random_hosts(void **state)
{
    (void)state;
    uint32_t random = 20261121;
    for (int round = 0; round < 300; round++) {
        struct buf hosts = BUF_INIT(4096);
        int total = 0;
        random = random * 1664525u + 1013904223u;
        int count = 1 + (int)(random >> 28);
        for (int i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            int slots = 1 + (int)(random >> 29);
            total += slots;
            buf_printf(&hosts, "%sh%d:%d", i > 0 ? "," : "", i, slots);
        }
        random = random * 1664525u + 1013904223u;
        int np = 1 + (int)((random >> 16) % (uint32_t)(3 * total));
        for (int rule = 0; rule < 2; rule++) {
            struct error err = ERROR_INIT;
            struct plan *plan =
                make(SHAPE(rule == 0 ? "slot" : "node", NULL, buf_text(&hosts), np, true), &err);
            assert_non_null(plan);
            check(plan);
            for (int n = 0; n < plan->node_count; n++) {
                const struct plan_node *node = &plan->nodes[n];
                int full = np / total;
                assert_in_range(node->local_size, full * node->slots, (full + 1) * node->slots);
            }
            plan_destroy(plan);
        }
        buf_destroy(&hosts);
    }
}

/* Quadratic behaviour would run into the test's time limit. */
static void test_a_million_ranks(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const struct shape shapes[] = {
        {"node", NULL, "n[1-100000]:10", 1000000, false, NULL, 0},
        {"node", NULL, "a:900000,n[1-99999]:1", 999000, false, NULL, 0},
        {"node", NULL, "a:1,n[1-99999]:1", 1000000, true, NULL, 0},
        {"ppr:10:node", NULL, "n[1-100000]:10", 0, false, NULL, 0},
        {"slot", NULL, "n[1-100000]:1", 1000000, true, NULL, 0}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct plan *plan = make(&shapes[i], &err);
        if (plan == NULL)
            fail_msg("%s", err.text);
        check(plan);
        plan_destroy(plan);
    }
}

static void test_a_million_ranks_of_a_rankfile(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct host_list hosts = {0};
    struct mapping mapping = {.rule = MAP_LIST};
    struct buf file = BUF_INIT(1 << 28);
    for (int rank = 0; rank < 1000000; rank++)
        buf_printf(&file, "rank %d=n%d\n", rank, rank % 50000 + 1);
    assert_int_equal(hosts_parse("n[1-50000]:20", &hosts, &err), 0);
    assert_int_equal(rankfile_parse(buf_text(&file), file.length, "ranks", &mapping.list, &err), 0);
    int *host_of AUTO_FREE = mapping_assign(&mapping, &hosts, 1000000, false, &err);
    assert_non_null(host_of);
    for (int rank = 0; rank < 1000000; rank++)
        assert_true(host_of[rank] == rank % 50000);
    mapping_destroy(&mapping);
    hosts_destroy(&hosts);
    buf_destroy(&file);
}

/* All hosts but one have reached their limits early. */
static void test_a_million_ranks_beside_limits(void **state)
{
    (void)state;
    struct mapping mapping = {.rule = MAP_NODE};
    struct host_list hosts = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse("a:1,n[1-99999]:1", &hosts, &err), 0);
    for (size_t i = 1; i < hosts.count; i++)
        hosts.items[i].max_slots = 1;
    for (int rule = 0; rule < 2; rule++) {
        mapping.rule = rule == 0 ? MAP_NODE : MAP_SLOT;
        int *host_of AUTO_FREE = mapping_assign(&mapping, &hosts, 1000000, true, &err);
        assert_non_null(host_of);
        int on_a = 0;
        for (int r = 0; r < 1000000; r++)
            on_a += host_of[r] == 0;
        assert_int_equal(on_a, 1000000 - 99999);
    }
    hosts_destroy(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_the_numbers_of_a_round),
        cmocka_unit_test(test_ppr),
        cmocka_unit_test(test_slots_of_open_hosts),
        cmocka_unit_test(test_seq),
        cmocka_unit_test(test_numa),
        cmocka_unit_test(test_rankfile),
        cmocka_unit_test(test_max_slots),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_bad_words),
        cmocka_unit_test(test_rules_agree_on_random_hosts),
        cmocka_unit_test(test_a_million_ranks),
        cmocka_unit_test(test_a_million_ranks_of_a_rankfile),
        cmocka_unit_test(test_a_million_ranks_beside_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
