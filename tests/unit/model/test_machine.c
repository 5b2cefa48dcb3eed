/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are one machine, and how many ranks use its CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/net/machine.h"

static char *lan_a[] = {(char *)"lo 127.0.0.1/8", (char *)"eth0 10.0.0.1/24"};
static char *lan_b[] = {(char *)"lo 127.0.0.1/8", (char *)"eth0 10.0.0.2/24"};

static struct machine node(const char *boot_id, const char *hostname, char *const *lan,
                           uint32_t allowed)
{
    return (struct machine){.boot_id = boot_id,
                            .hostname = hostname,
                            .interfaces = lan,
                            .interface_count = 2,
                            .cpus_allowed = allowed,
                            .cpus_online = 8};
}

static void expect_ranks(const struct machine *nodes, int count, const int *ranks, const int *want)
{
    int totals[8];
    machine_count_ranks(nodes, ranks, count, totals);
    for (int i = 0; i < count; i++)
        assert_int_equal(totals[i], want[i]);
}

static void expect_first(const struct machine *nodes, int count, const int *want)
{
    int first[8];
    machine_find_first(nodes, count, first);
    for (int i = 0; i < count; i++)
        assert_int_equal(first[i], want[i]);
}

static void test_different_hosts(void **state)
{
    (void)state;
    struct machine nodes[] = {node("k1", "a", lan_a, 8), node("k2", "b", lan_b, 8),
                              node("k3", "a", lan_a, 8)}; /* a clone of the first */
    expect_first(nodes, 3, (const int[]){0, 1, 2});
    expect_ranks(nodes, 3, (const int[]){3, 4, 5}, (const int[]){3, 4, 5});
}

/* Simulated hosts, or two names of one host, also if its CPUs are limited. */
static void test_one_machine(void **state)
{
    (void)state;
    struct machine nodes[] = {node("k2", "b", lan_b, 8), node("k1", "a", lan_a, 2),
                              node("k2", "b", lan_b, 8), node("k1", "a", lan_a, 2)};
    assert_true(machine_same(&nodes[0], &nodes[2]));
    assert_false(machine_same(&nodes[0], &nodes[1]));
    expect_first(nodes, 4, (const int[]){0, 1, 0, 1});
    expect_ranks(nodes, 4, (const int[]){1, 2, 4, 8}, (const int[]){5, 10, 5, 10});
}

static void test_containers(void **state)
{
    (void)state;
    struct machine nodes[] = {node("k1", "c1", lan_a, 8), node("k1", "c2", lan_b, 8),
                              node("k1", "c3", lan_b, 2), node("k1", "c4", lan_a, 2)};
    expect_first(nodes, 4, (const int[]){0, 1, 2, 3});
    expect_ranks(nodes, 4, (const int[]){1, 2, 4, 8}, (const int[]){3, 3, 4, 8});
}

static void test_kernels_that_are_not_known(void **state)
{
    (void)state;
    struct machine nodes[] = {node("", "a", lan_a, 8), node("", "a", lan_a, 8)};
    expect_first(nodes, 2, (const int[]){0, 1});
    expect_ranks(nodes, 2, (const int[]){1, 2}, (const int[]){1, 2});
    assert_true(machine_same(&nodes[0], &nodes[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different_hosts),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_kernels_that_are_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
