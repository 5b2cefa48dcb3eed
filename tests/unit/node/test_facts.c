/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/facts.h"

static void test_facts(void **state)
{
    (void)state;
    struct node_facts *facts = node_facts_read();
    char hostname[256] = "";
    struct utsname uts;
    assert_int_equal(gethostname(hostname, sizeof(hostname) - 1), 0);
    assert_int_equal(uname(&uts), 0);
    assert_string_equal(facts->hostname, hostname);
    assert_string_equal(facts->machine, uts.machine);
    assert_int_equal(strlen(facts->boot_id), 36);
    assert_true(facts->memory_bytes > (16u << 20));
    assert_true(facts->cpus_allowed >= 1 && facts->cpus_online >= 1);
    assert_true(facts->cpu_quota >= 0 && facts->gpus >= 0);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_string_equal(facts->limits[0].name, "nofile");
    assert_int_equal(facts->limits[0].hard, limit.rlim_max);
    bool loopback = false;
    for (size_t i = 0; i < facts->address_count; i++) {
        assert_in_range(facts->addresses[i].prefix, 0, facts->addresses[i].ipv6 ? 128 : 32);
        if (strcmp(facts->addresses[i].text, "127.0.0.1") != 0)
            continue;
        loopback = true;
        assert_true(facts->addresses[i].up);
        assert_false(facts->addresses[i].ipv6);
        assert_string_equal(facts->addresses[i].iface, "lo");
        assert_int_equal(facts->addresses[i].prefix, 8);
    }
    assert_true(loopback);
    node_facts_destroy(facts);
    node_facts_destroy(NULL);
}

static void test_affinity_is_seen(void **state)
{
    (void)state;
    size_t size = 0;
    cpu_set_t *before = facts_affinity(&size);
    int first = 0;
    while (!CPU_ISSET_S((size_t)first, size, before))
        first++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    struct node_facts *facts = node_facts_read();
    assert_int_equal(facts->cpus_allowed, 1);
    assert_int_equal(node_facts_cpus(facts), 1);
    node_facts_destroy(facts);
    assert_int_equal(sched_setaffinity(0, size, before), 0);
    free(before);
}

static void test_usable_cpus(void **state)
{
    (void)state;
    struct node_facts facts = {.cpus_allowed = 64};
    assert_int_equal(node_facts_cpus(&facts), 64);
    facts.cpu_quota = 4;
    assert_int_equal(node_facts_cpus(&facts), 4);
    facts.cpu_quota = 100;
    assert_int_equal(node_facts_cpus(&facts), 64);
    facts.cpus_allowed = 0;
    assert_int_equal(node_facts_cpus(&facts), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_affinity_is_seen),
        cmocka_unit_test(test_usable_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
