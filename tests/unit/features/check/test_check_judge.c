/* SPDX-License-Identifier: Apache-2.0 */
/* What a check makes of its facts: each fault alone, and none where all is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/check/check_fixture.h"

#define SECOND_NS INT64_C(1000000000)

struct bench {
    struct check_world world;
    struct check_findings findings;
};

static int open_bench(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    world_make(&bench->world, 4);
    *state = bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    check_findings_clear(&bench->findings);
    world_close(&bench->world);
    free(bench);
    return 0;
}

static void judge(struct bench *bench)
{
    check_findings_clear(&bench->findings);
    check_judge(&bench->world.result, &bench->findings);
}

static void expect_count(const struct bench *bench, size_t fatal, size_t warnings)
{
    bool right = bench->findings.count == fatal + warnings;
    for (size_t i = 0; !right && i < bench->findings.count; i++)
        print_message("%d %s\n", bench->findings.items[i].host, bench->findings.items[i].text);
    assert_int_equal(check_findings_count(&bench->findings, true), fatal);
    assert_int_equal(check_findings_count(&bench->findings, false), warnings);
}

/* The `index`th finding is about this host and says this. */
static void expect_at(const struct bench *bench, size_t index, int host, bool fatal,
                      const char *part)
{
    assert_true(index < bench->findings.count);
    const struct check_finding *finding = &bench->findings.items[index];
    assert_int_equal(finding->host, host);
    assert_int_equal(finding->fatal, fatal);
    assert_int_equal(finding->pair, strstr(finding->text, "it cannot reach c") != NULL ||
                                        strstr(finding->text, "a transfer to") != NULL);
    if (strstr(finding->text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, finding->text);
}

/* One finding in all. */
static void expect_one(struct bench *bench, int host, bool fatal, const char *part)
{
    judge(bench);
    expect_count(bench, fatal ? 1 : 0, fatal ? 0 : 1);
    expect_at(bench, 0, host, fatal, part);
}

static Hvdrun__Facts *facts_of(struct bench *bench, int host)
{
    return bench->world.result.hosts[host].facts;
}

static void test_all_is_well(void **state)
{
    struct bench *bench = *state;
    judge(bench);
    expect_count(bench, 0, 0);
}

static void test_unreached(void **state)
{
    struct bench *bench = *state;
    world_fail(&bench->world, 2, "auth", "no key was accepted");
    expect_one(bench, 2, true, "auth: no key was accepted");
}

/* No clock of a host may make ours overflow. */
static void test_absurd_clocks(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[1];
    static const uint64_t absurd[] = {0, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            host->facts->wall_ns = absurd[i];
            host->facts->mono_ns = absurd[k];
            check_host_clock(host, INT64_C(1) << 60, -(INT64_C(1) << 59));
            assert_true(i > 0 || host->clock_ns < 0);
            assert_true(i == 0 || k > 0 || host->clock_ns > 0);
            judge(bench);
        }
    }
}

static void test_clock(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[1];
    host->clock_ns = SECOND_NS; /* not more than one */
    judge(bench);
    expect_count(bench, 0, 0);
    host->clock_ns = 3 * SECOND_NS + SECOND_NS / 5;
    expect_one(bench, 1, false, "its clock is 3.2 s ahead of the clock of this machine");
    host->clock_ns = -3600 * SECOND_NS;
    expect_one(bench, 1, false, "its clock is 3600.0 s behind the clock of this machine");
    host->clock_error_ns = 3600 * SECOND_NS; /* who knows? */
    judge(bench);
    expect_count(bench, 0, 0);
    host->clock_error_ns = 0;
    host->clock_known = false;
    judge(bench);
    expect_count(bench, 0, 0);
}

static void test_temporary_folder(void **state)
{
    struct bench *bench = *state;
    Hvdrun__CheckFolder *tmp = facts_of(bench, 0)->folders[0];
    tmp->free_bytes = (uint64_t)3 << 20;
    expect_one(bench, 0, false, "/tmp has only 3.0M left: free some");
    tmp->free_bytes = 0;
    expect_one(bench, 0, false, "/tmp is full: free some");
    tmp->free_bytes = GIB;
    tmp->noexec = true;
    expect_one(bench, 0, false, "mounted noexec");
    tmp->noexec = false;
    world_set(&tmp->problem, "cannot make it (TMPDIR names the place)");
    expect_one(bench, 0, false, "cannot make it"); /* most programs run without one */
}

/* Only some programs need PMIx, unless --mpi=pmix makes it a condition. */
static void test_pmix(void **state)
{
    struct bench *bench = *state;
    Hvdrun__Facts *facts = facts_of(bench, 0);
    Hvdrun__CheckFolder *tmp = facts->folders[0];
    tmp->free_bytes = 0;
    world_set(&facts->pmix_problem, "no space left in /tmp (TMPDIR names the place)");
    expect_one(bench, 0, false,
               "no space left in /tmp (TMPDIR names the place): programs that use");
    world_set(&tmp->problem, "cannot make it (TMPDIR names the place)");
    expect_one(bench, 0, false, "no space left in /tmp");
    bench->world.result.needs_pmix = true;
    expect_one(bench, 0, true, "no space left in /tmp (TMPDIR names the place)");
    tmp->free_bytes = GIB;
    world_set(&tmp->problem, "");
    for (int i = 0; i < bench->world.result.count; i++) {
        world_set(&facts_of(bench, i)->pmix, "");
        world_set(&facts_of(bench, i)->pmix_problem, "");
    }
    world_set(&facts->pmix_problem, "install the package libpmix2");
    expect_one(bench, 0, true, "libpmix2");
    bench->world.result.needs_pmix = false;
    judge(bench);
    expect_count(bench, 0, 0); /* the table shows it */
}

static void test_shared_memory(void **state)
{
    struct bench *bench = *state;
    Hvdrun__CheckFolder *shm = facts_of(bench, 0)->folders[1];
    shm->total_bytes = (uint64_t)64 << 20;
    expect_one(bench, 0, false, "/dev/shm holds only 64M: NCCL");
    shm->total_bytes = 8 * GIB;
    shm->free_bytes = 4096;
    expect_one(bench, 0, false, "/dev/shm has only 4.0K left");
    shm->free_bytes = 0;
    expect_one(bench, 0, false, "/dev/shm is full: remove");
    world_set(&shm->problem, "cannot make it");
    expect_one(bench, 0, false, "cannot make it; MPI");
}

static void test_limits(void **state)
{
    struct bench *bench = *state;
    facts_of(bench, 3)->limits[0]->hard = 256;
    expect_one(bench, 3, false, "may open only 256 files");
    facts_of(bench, 3)->limits[0]->hard = 4096;
    bench->world.result.nofile = 512; /* of our shell: everywhere */
    judge(bench);
    expect_count(bench, 0, 4);
}

static void test_locked_memory(void **state)
{
    struct bench *bench = *state;
    char *adapters[] = {(char *)"mlx5_0:1 ACTIVE 100 Gb/sec (4X EDR)"};
    Hvdrun__Facts *facts = facts_of(bench, 2);
    facts->adapters = adapters;
    facts->n_adapters = 1;
    judge(bench);
    expect_count(bench, 0, 1);
    expect_at(bench, 0, 2, false,
              "lock only 8.0M of memory, but mlx5_0:1 needs an unlimited amount");
    bench->world.result.memlock = UINT64_MAX;
    judge(bench);
    expect_count(bench, 0, 0);
    facts->limits[2]->hard = (uint64_t)64 << 20; /* just enough */
    judge(bench);
    expect_count(bench, 0, 0);
    facts->limits[2]->hard = (uint64_t)1 << 20;
    judge(bench);
    expect_count(bench, 0, 1);
    facts->adapters = NULL;
    facts->n_adapters = 0;
}

static void test_host_key(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[1];
    assert_string_equal(check_host_key(host), "known");
    world_set(&host->login, "key A, host key X SHA256:y, new, added to /home/a/known_hosts");
    assert_string_equal(check_host_key(host), "added");
    judge(bench);
    expect_count(bench, 0, 0);
    world_set(&host->login, "key A, host key X SHA256:y, new, and not remembered: no space");
    assert_string_equal(check_host_key(host), "new");
    expect_one(bench, 1, false, "could not be added to known_hosts");
    mem_free_at(&host->login);
    assert_string_equal(check_host_key(host), "");
}

static void test_own_name(void **state)
{
    struct bench *bench = *state;
    world_set(&facts_of(bench, 1)->own_address, "127.0.1.1");
    expect_one(bench, 1, false, "/etc/hosts gives its own name c1 the address 127.0.1.1");
    int count = bench->world.result.count;
    size_t links = bench->world.result.link_count;
    bench->world.result.count = 1; /* alone, nobody is told the address */
    bench->world.result.link_count = 0;
    world_set(&facts_of(bench, 0)->own_address, "127.0.1.1");
    judge(bench);
    expect_count(bench, 0, 0);
    world_set(&facts_of(bench, 0)->own_address, "");
    bench->world.result.count = count;
    bench->world.result.link_count = links;
    bench->world.result.simulated = true;
    judge(bench);
    expect_count(bench, 0, 0);
}

static void test_versions_that_differ(void **state)
{
    struct bench *bench = *state;
    world_set(&facts_of(bench, 2)->pmix, "OpenPMIx 5.0.1");
    expect_one(bench, 2, false, "PMIx library: OpenPMIx 5.0.1 here, OpenPMIx 4.2.2");
    world_set(&facts_of(bench, 2)->pmix, "");
    expect_one(bench, 2, false, "PMIx library: none here, OpenPMIx 4.2.2");
    for (int i = 0; i < 4; i++)
        world_set(&facts_of(bench, i)->pmix, "");
    judge(bench);
    expect_count(bench, 0, 0); /* nobody has one: nothing differs */
}

static void test_odd_machines(void **state)
{
    struct bench *bench = *state;
    bench->world.hellos[3].machine = (char *)"aarch64";
    expect_one(bench, 3, false, "architecture: aarch64 here, x86_64 on other hosts");
    bench->world.hellos[3].machine = (char *)"x86_64";
    bench->world.hellos[0].gpus = 7;
    expect_one(bench, 0, false, "GPUs: 7 here, 8 on other hosts");
    bench->world.hellos[0].gpus = 8;
    world_set(&facts_of(bench, 0)->gpu_driver, "NVIDIA 1.2");
    expect_one(bench, 0, false, "GPU driver: NVIDIA 1.2 here, none on other hosts");
}

static void test_two_names_of_one_machine(void **state)
{
    struct bench *bench = *state;
    Hvdrun__AgentHello *hellos = bench->world.hellos;
    hellos[2].boot_id = hellos[0].boot_id;
    judge(bench);
    expect_count(bench, 0, 0); /* containers on one machine */
    hellos[2].hostname = hellos[0].hostname;
    hellos[2].interfaces = hellos[0].interfaces;
    expect_one(bench, 2, false, "it is the same machine as c0");
    bench->world.result.simulated = true;
    judge(bench);
    expect_count(bench, 0, 0);
}

static void test_network(void **state)
{
    struct bench *bench = *state;
    bench->world.result.network_problem = mem_strdup("c1 has no network interface");
    expect_one(bench, -1, true, "c1 has no network interface");
}

static void test_one_direction(void **state)
{
    struct bench *bench = *state;
    world_break(&bench->world, 1, 3, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    expect_one(
        bench, 1, true,
        "it cannot reach c3 at 10.0.0.4, although the other direction works: no answer within "
        "5 s: most likely a firewall");
    world_break(&bench->world, 3, 1, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED);
    judge(bench);
    expect_count(bench, 2, 0);
    expect_at(bench, 0, 1, true, "it cannot reach c3 at 10.0.0.4: no answer");
    expect_at(bench, 1, 3, true, "it cannot reach c1 at 10.0.0.2: refused");
}

static void test_whole_hosts(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            world_break(&bench->world, i, 2, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED);
    }
    expect_one(bench, 2, true, "none of 3 hosts can reach it at 10.0.0.3: refused");
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            world_break(&bench->world, 2, i, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    }
    expect_one(bench, 2, true, "none of 3 hosts can reach it"); /* all is said by that */
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            world_break(&bench->world, i, 2, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
    }
    expect_one(bench, 2, true, "it cannot reach any of 3 hosts: no answer");
}

/* What is said of a host is about its own connections, and covers no others. */
static void test_a_host_and_a_pair(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            world_break(&bench->world, 2, i, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED);
    }
    world_break(&bench->world, 0, 2, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    judge(bench);
    expect_count(bench, 2, 0);
    expect_at(bench, 0, 2, true, "it cannot reach any of 3 hosts: refused");
    expect_at(bench, 1, 0, true, "it cannot reach c2 at 10.0.0.3: no answer");
}

static void test_other_outcomes(void **state)
{
    struct bench *bench = *state;
    world_break(&bench->world, 0, 1, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
    expect_one(bench, 0, true, "no route: correct the routes");
    world_break(&bench->world, 0, 1, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    expect_one(bench, 0, true, "another program or machine answers there");
    world_break(&bench->world, 0, 1, HVDRUN__PROBE_OUTCOME__PROBE_BROKEN);
    check_result_find(&bench->world.result, 0, 1)->text = mem_strdup("Connection reset by peer");
    expect_one(bench, 0, true, "Connection reset by peer");
}

static void test_transfer(void **state)
{
    struct bench *bench = *state;
    check_result_find(&bench->world.result, 2, 1)->transfer_problem = mem_strdup("it stood still");
    expect_one(bench, 2, true, "a transfer to c1 failed: it stood still");
}

/* It was lost in the middle: what others saw of it then is no news. */
static void test_links_of_a_lost_host(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[2];
    host->stage = mem_strdup("lost");
    host->why = mem_strdup("no heartbeat for 3.0 s");
    world_break(&bench->world, 0, 2, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    world_break(&bench->world, 2, 1, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
    check_result_find(&bench->world.result, 1, 2)->transfer_problem = mem_strdup("it stood still");
    expect_one(bench, 2, true, "lost: no heartbeat");
}

static void test_a_door_that_does_not_open(void **state)
{
    struct bench *bench = *state;
    bench->world.result.hosts[1].door_problem = mem_strdup("cannot listen on 10.0.0.2");
    expect_one(bench, 1, true, "cannot listen on 10.0.0.2");
}

/* Hundreds of failing pairs are not hundreds of lines. */
static void test_many_pairs(void **state)
{
    struct bench *bench = *state;
    world_close(&bench->world);
    world_make(&bench->world, 10);
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 10; j++) {
            if (i != j && (i + j) % 2 == 0)
                world_break(&bench->world, i, j, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE);
        }
    }
    judge(bench);
    expect_count(bench, 11, 0);
    expect_at(bench, 10, -1, true, "30 more connections failed");
}

/* Fatal ones first, else in the order of the hosts. */
static void test_order(void **state)
{
    struct bench *bench = *state;
    facts_of(bench, 0)->folders[0]->noexec = true;
    world_fail(&bench->world, 1, "connect", "refused");
    world_fail(&bench->world, 3, "resolve", "unknown");
    judge(bench);
    expect_count(bench, 2, 1);
    expect_at(bench, 0, 1, true, "connect");
    expect_at(bench, 1, 3, true, "resolve");
    expect_at(bench, 2, 0, false, "noexec");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        TEST(test_all_is_well),
        TEST(test_unreached),
        TEST(test_absurd_clocks),
        TEST(test_clock),
        TEST(test_temporary_folder),
        TEST(test_pmix),
        TEST(test_shared_memory),
        TEST(test_limits),
        TEST(test_locked_memory),
        TEST(test_host_key),
        TEST(test_own_name),
        TEST(test_versions_that_differ),
        TEST(test_odd_machines),
        TEST(test_two_names_of_one_machine),
        TEST(test_network),
        TEST(test_one_direction),
        TEST(test_whole_hosts),
        TEST(test_a_host_and_a_pair),
        TEST(test_other_outcomes),
        TEST(test_transfer),
        TEST(test_links_of_a_lost_host),
        TEST(test_a_door_that_does_not_open),
        TEST(test_many_pairs),
        TEST(test_order),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
