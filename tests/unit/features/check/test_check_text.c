/* SPDX-License-Identifier: Apache-2.0 */
/* What a check prints: whole texts, and its JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "features/check/check.h"
#include "features/check/check_fixture.h"

#define TEXT_LIMIT ((size_t)4 << 20)

static void expect_text(const struct check_world *world, bool brief, const char *wanted)
{
    struct check_findings findings = {.count = 0};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    check_judge(&world->result, &findings);
    check_text(&world->result, &findings, brief, &text);
    check_findings_clear(&findings);
    assert_string_equal(buf_text(&text), wanted);
}

static void test_all_is_well(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 2);
    expect_text(&world, false,
                "HOST  STATE  HOST KEY  ADDRESS   IFACE  CPUS  MEMORY  GPUS    CLOCK  TMP   SHM\n"
                "c0    ok     known     10.0.0.1  eth0     64    256G     8  +0.2 ms  50G  4.0G\n"
                "c1    ok     known     10.0.0.2  eth0     64    256G     8  +0.2 ms  50G  4.0G\n"
                "on all hosts: hvdrun 9.9.9, x86_64, Some Linux 7, kernel 6.1.0, PMIx 4.2.2, "
                "hwloc API 2.9,\n"
                "  nofile 1024, nproc unlimited, memlock 8.0M\n"
                "network: 2 of 2 connections between hosts succeeded, in 0.10 to 0.11 ms\n"
                "2 hosts: 2 ok\n");
    expect_text(&world, true, "");
    world_close(&world);
}

static void test_what_differs_and_what_fails(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 4);
    world_fail(&world, 3, "connect", "connection refused by 10.0.0.4: is sshd running on port 22?");
    world_set(&world.result.hosts[1].facts->pmix, "OpenPMIx 5.0.1");
    world_break(&world, 0, 2, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED);
    world.result.hosts[0].facts->folders[0]->noexec = true;
    world.result.hosts[2].facts->folders[0]->noexec = true;
    world.result.hosts[2].clock_ns = -INT64_C(75000000000);
    world.result.hosts[1].clock_ns = 10;
    expect_text(
        &world, false,
        "HOST  STATE    HOST KEY  ADDRESS   IFACE  CPUS  MEMORY  GPUS    CLOCK  TMP   SHM\n"
        "c0    problem  known     10.0.0.1  eth0     64    256G     8  +0.2 ms  50G  4.0G\n"
        "c1    warning  known     10.0.0.2  eth0     64    256G     8  <0.1 ms  50G  4.0G\n"
        "c2    warning  known     10.0.0.3  eth0     64    256G     8  -75.0 s  50G  4.0G\n"
        "c3    connect\n"
        "on all hosts: hvdrun 9.9.9, x86_64, Some Linux 7, kernel 6.1.0, hwloc API 2.9, nofile "
        "1024,\n"
        "  nproc unlimited, memlock 8.0M\n"
        "PMIx: 4.2.2 (c0 c2), 5.0.1 (c1)\n"
        "network: 5 of 6 connections between hosts succeeded, in 0.10 to 0.17 ms\n"
        "problem: c3: connect: connection refused by 10.0.0.4: is sshd running on port 22?\n"
        "problem: c0: it cannot reach c2 at 10.0.0.3, although the other direction works: refused: "
        "most likely a firewall rejects the connection; open all TCP ports between the hosts, or "
        "choose an open network with --network-interfaces\n"
        "warning: c0, c2: /tmp is mounted noexec, so no program can run from it: set TMPDIR to a "
        "folder that allows it\n"
        "warning: c2: its clock is 75.0 s behind the clock of this machine: times in logs cannot "
        "be compared, and certificates may look expired; run chrony or another NTP client there\n"
        "warning: c1: PMIx library: OpenPMIx 5.0.1 here, OpenPMIx 4.2.2 (PMIx Standard: 4.2) "
        "on other hosts: MPI programs need the same version on all hosts\n"
        "4 hosts: 0 ok, 2 with warnings, 2 with problems; a job would not run\n");
    world_close(&world);
}

static void test_speeds(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 3);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    for (size_t i = 0; i < world.result.link_count; i++) {
        world.result.links[i].bytes = 250000000 * (i + 1);
        world.result.links[i].transfer_us = 200000;
    }
    world.result.links[5].bytes = 0; /* c2 to c1 was not measured */
    check_text_network(&world.result, &text);
    assert_non_null(strstr(buf_text(&text), "Gbit/s of one TCP connection, sent by the host on the "
                                            "left:\n"
                                            "            c0      c1      c2\n"
                                            "c0           -    10.0    20.0\n"
                                            "c1        30.0       -    40.0\n"
                                            "c2        50.0       -       -\n"));
    world_close(&world);
}

static void test_speeds_of_many(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 12);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    for (size_t i = 0; i < world.result.link_count; i++) {
        world.result.links[i].bytes = 1250000 * (i + 1);
        world.result.links[i].transfer_us = 1000000;
    }
    check_text_network(&world.result, &text);
    assert_non_null(strstr(buf_text(&text), "  slowest 0.01, median 0.67, fastest 1.32\n"
                                            "  0.01 from c0 to c1\n"
                                            "  0.02 from c0 to c2\n"));
    world_close(&world);
}

/* Names that are longer than the numbers, and a slow connection. */
static void test_speeds_of_long_names(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 2);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    world.result.hosts[1].name = "machine-1";
    world.result.links[0].bytes = 125000000;
    world.result.links[0].transfer_us = 300000;
    world.result.links[1].bytes = 125000;
    world.result.links[1].transfer_us = 0; /* too short to be measured */
    check_text_network(&world.result, &text);
    assert_non_null(strstr(buf_text(&text), "\n                  c0  machine-1\n"
                                            "c0                 -       3.33\n"
                                            "machine-1     1000.0          -\n"));
    world_close(&world);
}

/* The five slowest of many; no more than there are. */
static void test_number_of_slow_links(void **state)
{
    (void)state;
    for (size_t measured = 3; measured < 8; measured += 4) {
        struct check_world world;
        struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
        size_t lines = 0;
        world_make(&world, 12);
        for (size_t i = 0; i < measured; i++) {
            world.result.links[i].bytes = 1250000 * (i + 1);
            world.result.links[i].transfer_us = 1000000;
        }
        check_text_network(&world.result, &text);
        for (const char *at = buf_text(&text); (at = strstr(at, " from c")) != NULL; at++)
            lines++;
        assert_int_equal(lines, measured < 5 ? measured : 5);
        world_close(&world);
    }
}

/* A single common fact is a line. */
static void test_one_of_a_kind(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 2);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    Hvdrun__Facts *facts = world.result.hosts[1].facts;
    world.hellos[1].version = (char *)"9.9.8";
    world.hellos[1].machine = (char *)"aarch64";
    world_set(&facts->system, "Other Linux");
    world_set(&facts->kernel, "6.2");
    world_set(&facts->pmix, "");
    world_set(&facts->hwloc, "");
    facts->limits[0]->hard = 100;
    facts->limits[1]->hard = 500;
    check_text_facts(&world.result, &text);
    assert_non_null(strstr(buf_text(&text), "on all hosts: memlock 8.0M\n"));
    assert_non_null(strstr(buf_text(&text), "PMIx: 4.2.2 (c0), none (c1)\n"));
    assert_non_null(strstr(buf_text(&text), "nofile: 1024 (c0), 100 (c1)\n"));
    world_close(&world);
}

static void test_one_warning(void **state)
{
    struct check_world world;
    struct check_findings findings = {.count = 0};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    (void)state;
    world_make(&world, 2);
    world.result.hosts[1].facts->folders[0]->noexec = true;
    check_judge(&world.result, &findings);
    check_text(&world.result, &findings, false, &text);
    assert_non_null(strstr(buf_text(&text), "\n2 hosts: 1 ok, 1 with warnings\n"));
    check_findings_clear(&findings);
    world_close(&world);
}

/* Each host has these adapters: their names alone are shown. */
static void add_adapters(struct check_world *world, size_t count)
{
    for (int i = 0; i < world->result.count; i++) {
        Hvdrun__Facts *facts = world->result.hosts[i].facts;
        facts->n_adapters = count;
        facts->adapters = malloc(count * sizeof(char *));
        for (size_t j = 0; j < count; j++)
            facts->adapters[j] = mem_printf("mlx5_%zu InfiniBand", j);
    }
}

static void test_adapters(void **state)
{
    struct check_world world;
    struct check_findings findings = {.count = 0};
    (void)state;
    world_make(&world, 2);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT), json AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    add_adapters(&world, 3);
    check_text_facts(&world.result, &text);
    assert_non_null(strstr(buf_text(&text), "adapters mlx5_0 mlx5_1 mlx5_2,"));
    assert_int_equal(check_json(&world.result, &findings, 0, &json), 0);
    json_t *root = json_loadb(buf_text(&json), json.length, 0, NULL);
    const json_t *host = json_array_get(json_object_get(root, "hosts"), 1);
    const json_t *adapters = json_object_get(host, "adapters");
    assert_int_equal(json_array_size(adapters), 3);
    assert_string_equal(json_string_value(json_array_get(adapters, 2)), "mlx5_2 InfiniBand");
    assert_string_equal(json_string_value(json_object_get(host, "address")), "10.0.0.2");
    assert_string_equal(json_string_value(json_object_get(host, "interface")), "eth0");
    json_decref(root);
    world_close(&world);
    assert_int_equal(world.result.count, 0);
    assert_null(world.result.hosts);
    world_close(&world); /* once more: nothing is left */
}

static void test_nobody_answers(void **state)
{
    struct check_world world;
    (void)state;
    world_make(&world, 2);
    world_fail(&world, 0, "resolve", "unknown");
    world_fail(&world, 1, "resolve", "unknown");
    expect_text(&world, false,
                "HOST  STATE\n"
                "c0    resolve\n"
                "c1    resolve\n"
                "problem: c0, c1: resolve: unknown\n"
                "2 hosts: 0 ok, 2 with problems; a job would not run\n");
    expect_text(&world, true, "problem: c0, c1: resolve: unknown\n");
    world_close(&world);
}

static void test_sizes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0"},          {999, "999"},        {1000, "1.0K"},
                 {1024, "1.0K"},    {10240, "10K"},      {1023 << 10, "1.0M"},
                 {64 << 20, "64M"}, {UINT64_MAX, "16E"}, {(uint64_t)15 << 40, "15T"}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[16];
        check_size_text(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_json(void **state)
{
    struct check_world world;
    struct check_findings findings = {.count = 0};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    (void)state;
    world_make(&world, 3);
    world_fail(&world, 1, "auth", "no key");
    world_set(&world.result.hosts[2].facts->system, "Latin\xff");
    check_judge(&world.result, &findings);
    assert_int_equal(check_json(&world.result, &findings, 125, &text), 0);
    check_findings_clear(&findings);
    json_t *root = json_loadb(buf_text(&text), text.length, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "status")), 125);
    json_t *hosts = json_object_get(root, "hosts");
    assert_int_equal(json_array_size(hosts), 3);
    json_t *bad = json_array_get(hosts, 1);
    assert_string_equal(json_string_value(json_object_get(bad, "state")), "failed");
    assert_string_equal(json_string_value(json_object_get(bad, "stage")), "auth");
    assert_null(json_object_get(bad, "folders"));
    json_t *limits = json_object_get(json_array_get(hosts, 0), "limits");
    json_t *memlock = json_object_get(limits, "memlock");
    assert_true(json_is_null(json_object_get(memlock, "hard")));
    assert_int_equal(json_integer_value(json_object_get(memlock, "workers")), 8 << 20);
    assert_int_equal(json_array_size(json_object_get(root, "connections")), 2);
    assert_int_equal(json_array_size(json_object_get(root, "findings")), 1);
    json_decref(root);
    world_close(&world);
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* Numbers in the units that their names say; without a transfer there is no speed. */
static void test_json_numbers(void **state)
{
    struct check_world world;
    struct check_findings findings = {.count = 0};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    (void)state;
    world_make(&world, 2);
    world.result.nproc = 500;
    world.result.hosts[1].clock_ns = -1500000000;
    world.result.links[0].bytes = 1;
    world.result.links[0].transfer_us = 2000000;
    world.result.links[1].bytes = 1 << 20;
    world.result.links[1].transfer_us = 0;
    assert_int_equal(check_json(&world.result, &findings, 0, &text), 0);
    json_t *root = json_loadb(buf_text(&text), text.length, 0, NULL);
    const json_t *host = json_array_get(json_object_get(root, "hosts"), 1);
    assert_true(number_of(host, "cpus") == 64);
    assert_true(number_of(host, "cpus_online") == 64);
    assert_true(number_of(host, "memory_bytes") == 256.0 * GIB);
    assert_true(number_of(json_object_get(host, "clock"), "offset_s") == -1.5);
    assert_true(number_of(json_object_get(host, "clock"), "error_s") == 50000 / 1e9);
    const json_t *limits = json_object_get(host, "limits");
    assert_true(number_of(json_object_get(limits, "nofile"), "workers") == 1024);
    assert_true(number_of(json_object_get(limits, "nproc"), "workers") == 500);
    const json_t *slow = json_array_get(json_object_get(root, "connections"), 0);
    assert_true(number_of(slow, "bytes") == 1);
    assert_true(number_of(slow, "seconds") == 2);
    assert_true(number_of(slow, "bits_per_s") == 4);
    assert_true(number_of(slow, "connect_s") == 100 / 1e6);
    const json_t *unknown = json_array_get(json_object_get(root, "connections"), 1);
    assert_true(number_of(unknown, "bits_per_s") == 0);
    json_decref(root);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well),
        cmocka_unit_test(test_what_differs_and_what_fails),
        cmocka_unit_test(test_speeds),
        cmocka_unit_test(test_speeds_of_many),
        cmocka_unit_test(test_nobody_answers),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_speeds_of_long_names),
        cmocka_unit_test(test_number_of_slow_links),
        cmocka_unit_test(test_one_of_a_kind),
        cmocka_unit_test(test_one_warning),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
