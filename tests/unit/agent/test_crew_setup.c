/* SPDX-License-Identifier: Apache-2.0 */
/* What PREPARE makes of a node: its interfaces, and the environment on another machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "agent/crew_setup.h"
#include "base/mem.h"
#include "io/loop.h"

/* No kernel has routes that start at these: the choice falls back on what the driver said. */
static struct node_address addresses[] = {
    {.iface = (char *)"lo", .text = (char *)"127.0.0.1", .prefix = 8, .up = true},
    {.iface = (char *)"docker0", .text = (char *)"203.0.113.1", .prefix = 24, .up = true},
    {.iface = (char *)"eth7", .text = (char *)"198.51.100.1", .prefix = 25, .up = true},
    {.iface = (char *)"ib7", .text = (char *)"198.51.100.201", .prefix = 25, .up = true}};

static const struct node_facts facts = {.hostname = "node2",
                                        .cpus_allowed = 4,
                                        .addresses = addresses,
                                        .address_count = sizeof(addresses) / sizeof(addresses[0])};

struct bench {
    struct loop *loop;
    struct post post;
    struct mpi_host *mpi;
    struct crew_config config;
    struct crew_setup setup;
    struct worker_vars *vars;
};

/* The second node of three, with one rank, as the driver would say it. */
static Hvdrun__Prepare *prepare_of(const char *interfaces, bool with_addresses, bool remote)
{
    char *argv[] = {(char *)"/bin/true"};
    char *hosts[] = {(char *)"a", (char *)"b", (char *)"c"};
    char *told[] = {(char *)"192.0.2.77", (char *)"198.51.100.201", (char *)"192.0.2.78"};
    char *env[] = {(char *)"HOME=/home/of/the/driver", (char *)"CREW_SETUP_TEST=passed",
                   (char *)"PATH=/driver/bin", (char *)"SLURM_GTIDS=0"};
    uint32_t ranks[] = {1, 1, 1};
    Hvdrun__App app = HVDRUN__APP__INIT;
    Hvdrun__Worker worker = HVDRUN__WORKER__INIT;
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    Hvdrun__App *apps[] = {&app};
    Hvdrun__Worker *workers[] = {&worker};
    app.argv = argv;
    app.n_argv = 1;
    app.mpi = (char *)"none";
    worker.rank = worker.seat = 1;
    message.size = 3;
    message.local_size = 1;
    message.node_index = 1;
    message.host = hosts[1];
    message.hosts = hosts;
    message.host_ranks = ranks;
    message.n_hosts = message.n_host_ranks = 3;
    message.apps = apps;
    message.workers = workers;
    message.n_apps = message.n_workers = 1;
    message.base_env = env;
    message.n_base_env = 4;
    message.interfaces = (char *)interfaces;
    message.addresses = told;
    message.n_addresses = with_addresses ? 3 : 0;
    message.remote = remote;
    size_t size = hvdrun__prepare__get_packed_size(&message);
    uint8_t *bytes AUTO_FREE = mem_alloc(size);
    hvdrun__prepare__pack(&message, bytes);
    return hvdrun__prepare__unpack(NULL, size, bytes);
}

static void bench_prepare(struct bench *bench)
{
    struct error err = ERROR_INIT;
    *bench = (struct bench){.loop = loop_create(&err)};
    post_init(&bench->post, NULL);
    bench->mpi = mpi_host_create(bench->loop, &bench->post);
    bench->config = (struct crew_config){.post = &bench->post,
                                         .epoch = 1,
                                         .facts = &facts,
                                         .mpi = bench->mpi,
                                         .modules = modules_create("/nonexistent"),
                                         .job_id = "job"};
}

static void bench_fill(struct bench *bench, Hvdrun__Prepare *prepare,
                       const struct worker_env_rank *rank)
{
    static const struct mpi_job_ops ops;
    struct error err = ERROR_INIT;
    if (crew_setup_fill(&bench->setup, &bench->config, prepare, &ops, NULL, &err) < 0)
        fail_msg("%s", err.text);
    Hvdrun__Start start = HVDRUN__START__INIT;
    start.master_addr = (char *)"192.0.2.77";
    start.master_port = 29400;
    crew_setup_env(&bench->setup, &start);
    bench->vars = worker_env_rank(bench->setup.env, rank);
}

static void bench_open(struct bench *bench, const char *interfaces, bool with_addresses,
                       bool remote)
{
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 1, .cross_size = 3};
    bench_prepare(bench);
    bench_fill(bench, prepare_of(interfaces, with_addresses, remote), &rank);
}

static void bench_close(struct bench *bench)
{
    worker_vars_destroy(bench->vars);
    crew_setup_destroy(&bench->setup);
    mpi_host_destroy(bench->mpi);
    modules_destroy(bench->config.modules);
    loop_destroy(bench->loop);
}

static void expect(const struct bench *bench, const char *name, const char *value)
{
    AUTO_STRV struct strv env = STRV_INIT;
    strv_copy(&env, worker_vars_items(bench->vars));
    const char *found = strv_env_get(&env, name);
    if ((found == NULL) != (value == NULL) || (found != NULL && strcmp(found, value) != 0))
        fail_msg("%s is %s instead of %s", name, found == NULL ? "unset" : found,
                 value == NULL ? "unset" : value);
}

static void test_several_hosts(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, "", true, false);
    assert_string_equal(bench.setup.route.iface, "ib7");
    assert_string_equal(bench.setup.route.address, "198.51.100.201");
    expect(&bench, "HOROVOD_GLOO_IFACE", "ib7");
    expect(&bench, "GLOO_SOCKET_IFNAME", "ib7");
    expect(&bench, "NCCL_SOCKET_IFNAME", "ib7");
    expect(&bench, "OMPI_MCA_btl_tcp_if_include", NULL);
    expect(&bench, "MASTER_ADDR", "192.0.2.77");
    bench_close(&bench);
    bench_open(&bench, "eth*,ib*", true, false);
    expect(&bench, "HOROVOD_GLOO_IFACE", "ib7");
    expect(&bench, "NCCL_SOCKET_IFNAME", "eth7,ib7");
    expect(&bench, "OMPI_MCA_btl_tcp_if_exclude", NULL);
    bench_close(&bench);
    bench_open(&bench, "!ib7", true, false);
    assert_string_equal(bench.setup.route.address, "198.51.100.1");
    expect(&bench, "NCCL_SOCKET_IFNAME", "eth7");
    bench_close(&bench);
}

/* NCCL needs a driver of GPUs, and a port costs time. */
static void test_the_port_of_nccl(void **state)
{
    (void)state;
    struct bench bench;
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 1, .cross_size = 3};
    struct node_facts with_gpus = facts;
    bench_open(&bench, "", true, false);
    expect(&bench, "NCCL_RAS_ADDR", NULL);
    bench_close(&bench);
    with_gpus.gpu_driver = true;
    bench_prepare(&bench);
    bench.config.facts = &with_gpus;
    bench_fill(&bench, prepare_of("", true, false), &rank);
    char *address AUTO_FREE = mem_printf("localhost:%d", bench.setup.ras_port);
    assert_in_range(bench.setup.ras_port, 1024, 65535);
    expect(&bench, "NCCL_RAS_ADDR", address);
    bench_close(&bench);
}

static void test_a_driver_that_says_no_addresses(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, "", false, false);
    assert_string_equal(bench.setup.route.iface, "lo");
    assert_string_equal(bench.setup.route.address, "127.0.0.1");
    expect(&bench, "HOROVOD_GLOO_IFACE", "lo");
    bench_close(&bench);
    bench_open(&bench, "eth7", false, false);
    expect(&bench, "HOROVOD_GLOO_IFACE", "eth7");
    expect(&bench, "NCCL_SOCKET_IFNAME", "eth7");
    bench_close(&bench);
}

static void test_environment(void **state)
{
    (void)state;
    struct bench bench;
    assert_int_equal(setenv("HOME", "/home/of/this/host", 1), 0);
    assert_int_equal(setenv("CREW_SETUP_TEST", "the agent's", 1), 0);
    assert_int_equal(setenv("CREW_SETUP_OTHER", "the agent's", 1), 0);
    bench_open(&bench, "", true, true);
    expect(&bench, "HOME", "/home/of/this/host");
    expect(&bench, "PATH", "/driver/bin");
    expect(&bench, "CREW_SETUP_TEST", "passed");
    expect(&bench, "CREW_SETUP_OTHER", NULL);
    bench_close(&bench);
    bench_open(&bench, "", true, false);
    expect(&bench, "HOME", "/home/of/the/driver");
    bench_close(&bench);
}

static void expect_app_env(const struct bench *bench, const char *name, const char *value)
{
    const char *found = strv_env_get(&bench->setup.apps.items[0].env, name);
    assert_non_null(found);
    assert_string_equal(found, value);
}

/* As a list of the message, which it is freed with. */
static char **list_of(const char *one, const char *two)
{
    char **list = mem_array(2, sizeof(char *));
    list[0] = mem_strdup(one);
    list[1] = mem_strdup(two);
    return list;
}

/* Stronger than what the user's shell has, weaker than what the user says for the job. */
static void test_environment_of_the_host(void **state)
{
    (void)state;
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 1, .cross_size = 3};
    struct bench bench;
    Hvdrun__Prepare *prepare = prepare_of("", true, false);
    bench_prepare(&bench);
    prepare->host_env = list_of("CREW_SETUP_TEST=the host's", "CREW_SETUP_APP=the host's");
    prepare->n_host_env = 2;
    prepare->apps[0]->env = list_of("CREW_SETUP_APP=the app's", "CREW_SETUP_MORE=the app's");
    prepare->apps[0]->n_env = 2;
    bench_fill(&bench, prepare, &rank);
    expect(&bench, "CREW_SETUP_TEST", "passed");
    expect_app_env(&bench, "CREW_SETUP_TEST", "the host's");
    expect_app_env(&bench, "CREW_SETUP_APP", "the app's");
    expect_app_env(&bench, "CREW_SETUP_MORE", "the app's");
    bench_close(&bench);
}

/* Can a crew start with so many open files? `readers`: workers with a pipe as stdin. */
static bool fits(rlim_t files, size_t readers)
{
    static const struct mpi_job_ops ops;
    struct error err = ERROR_INIT;
    struct rlimit before, few;
    struct bench bench;
    Hvdrun__Prepare *prepare = prepare_of("", true, false);
    bench_prepare(&bench);
    prepare->stdin_seats = mem_array(readers + 1, sizeof(uint32_t));
    prepare->n_stdin_seats = readers;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){files, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int result = crew_setup_fill(&bench.setup, &bench.config, prepare, &ops, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    bench.vars = NULL;
    bench_close(&bench);
    return result == 0;
}

static void test_open_files(void **state)
{
    (void)state;
    rlim_t least = 3;
    while (!fits(least, 0))
        least++;
    assert_false(fits(least, 10));
    assert_false(fits(least + 9, 10));
    assert_true(fits(least + 10, 10));
}

/* In an elastic job a new worker joins two on its node that go on: no MPI for it, and ranks and
 * sizes of the whole node, of which PREPARE names only the new worker. */
static void test_a_worker_that_joins(void **state)
{
    (void)state;
    struct bench bench;
    Hvdrun__Prepare *prepare = prepare_of("", true, false);
    static const struct worker_env_rank rank = {
        .rank = 2, .local_rank = 1, .slot = 2, .cross_rank = 1, .cross_size = 2};
    bench_prepare(&bench);
    bench.config.mpi = NULL;
    bench.config.epoch = 7;
    prepare->size = 5;
    prepare->host_ranks[1] = 3;
    prepare->local_size = 3;
    prepare->workers[0]->rank = 2;
    prepare->workers[0]->seat = 8;
    prepare->workers[0]->local_rank = 1;
    prepare->workers[0]->slot = 2;
    prepare->elastic = true;
    prepare->restart_count = 4;
    prepare->max_restarts = 9;
    prepare->app_sizes = mem_alloc(sizeof(uint32_t));
    prepare->app_sizes[0] = 5;
    prepare->n_app_sizes = 1;
    memcpy(prepare->apps[0]->mpi, "pmix", 5); /* as long as "none" */
    bench_fill(&bench, prepare, &rank);
    assert_int_equal(bench.setup.apps.kinds[0], MPI_NONE);
    expect(&bench, "HVDRUN_EPOCH", "7");
    expect(&bench, "HVDRUN_SLOT", "2");
    expect(&bench, "HOROVOD_ELASTIC", "1");
    expect(&bench, "HOROVOD_LOCAL_RANK", "1");
    expect(&bench, "LOCAL_WORLD_SIZE", "3");
    expect(&bench, "WORLD_SIZE", "5");
    expect(&bench, "SLURM_GTIDS", "1,2,3");
    expect(&bench, "TORCHELASTIC_RESTART_COUNT", "4");
    expect(&bench, "TORCHELASTIC_MAX_RESTARTS", "9");
    assert_int_equal(bench.setup.apps.np[0], 5);
    char *folder = mem_strdup(runtime_dir_path(bench.setup.runtime_dir));
    char *deadline = mem_printf("%s/deadline", folder);
    char *error_file = mem_printf("%s/error.7.2.json", folder);
    expect(&bench, "HVDRUN_DEADLINE_FILE", deadline);
    expect(&bench, "TORCHELASTIC_ERROR_FILE", error_file);
    free(folder);
    free(deadline);
    free(error_file);
    bench_close(&bench);
}

/* Two nodes of the job are one machine with 4 CPUs. */
static void test_ranks_of_other_nodes_use_the_cpus_too(void **state)
{
    (void)state;
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 1, .cross_size = 3};
    static const struct {
        uint32_t cpu_ranks;
        const char *threads, *yields;
    } cases[] = {{0, "4", NULL}, {1, "4", NULL}, {2, "2", NULL}, {4, "1", NULL}, {5, "1", "1"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench bench;
        Hvdrun__Prepare *prepare = prepare_of("", true, false);
        prepare->cpu_ranks = cases[i].cpu_ranks;
        bench_prepare(&bench);
        bench_fill(&bench, prepare, &rank);
        expect(&bench, "OMP_NUM_THREADS", cases[i].threads);
        expect(&bench, "OMPI_MCA_mpi_yield_when_idle", cases[i].yields);
        bench_close(&bench);
    }
}

/* A world of three ranks that begins on the second node. The ranks of the first one meet elsewhere.
 */
static void test_a_world_that_was_spawned(void **state)
{
    (void)state;
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 0, .cross_size = 2};
    for (int spawned = 0; spawned < 2; spawned++) {
        struct bench bench;
        Hvdrun__Prepare *prepare = prepare_of("", true, false);
        prepare->first_seat = spawned ? 4 : 0;
        prepare->host_ranks[0] = 0;
        prepare->host_ranks[1] = prepare->local_size = 2;
        bench_prepare(&bench);
        bench.config.mpi = NULL;
        bench.config.rendezvous_port = 4567;
        bench.config.line_address = "line";
        bench_fill(&bench, prepare, &rank);
        expect(&bench, "GROUP_RANK", "0");
        expect(&bench, "GROUP_WORLD_SIZE", "2");
        expect(&bench, "SLURM_GTIDS", "0,1");
        assert_string_equal(bench.setup.node_names, "b,c");
        expect(&bench, "HOROVOD_GLOO_RENDEZVOUS_ADDR", spawned ? NULL : "127.0.0.1");
        expect(&bench, "HOROVOD_GLOO_RENDEZVOUS_PORT", spawned ? NULL : "4567");
        expect(&bench, "HVDRUN_LINE", spawned ? NULL : "line");
        expect(&bench, "MASTER_ADDR", spawned ? NULL : "192.0.2.77");
        expect(&bench, "MASTER_PORT", spawned ? NULL : "29400");
        bench_close(&bench);
    }
}

static int fill_without(const char *program, const char *wdir, bool runs, struct bench *bench)
{
    static const struct mpi_job_ops ops;
    struct error err = ERROR_INIT;
    Hvdrun__Prepare *prepare = prepare_of("", true, false);
    bench_prepare(bench);
    bench->config.mpi = NULL;
    free(prepare->apps[0]->argv[0]);
    prepare->apps[0]->argv[0] = mem_strdup(program);
    prepare->apps[0]->wdir = mem_strdup(wdir);
    for (size_t i = 0; !runs && i < prepare->n_workers; i++)
        hvdrun__worker__free_unpacked(prepare->workers[i], NULL);
    if (!runs) {
        prepare->host_ranks[0] = 2;
        prepare->host_ranks[1] = prepare->local_size = 0;
        prepare->n_workers = 0;
    }
    return crew_setup_fill(&bench->setup, &bench->config, prepare, &ops, NULL, &err);
}

/* A host that no rank runs on may lack the program and the folder. */
static void test_programs_of_other_hosts(void **state)
{
    (void)state;
    static const char *const lacks[][2] = {{"/no/such/program", ""}, {"/bin/true", "/no/such"}};
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        assert_int_equal(fill_without(lacks[i][0], lacks[i][1], true, &bench), -1);
        bench_close(&bench);
        assert_int_equal(fill_without(lacks[i][0], lacks[i][1], false, &bench), 0);
        assert_string_equal(bench.setup.apps.items[0].path, lacks[i][0]);
        bench_close(&bench);
    }
}

/* Two programs of two MPI families, on a host that runs a rank or none. */
static void test_mpi_of_programs_of_other_hosts(void **state)
{
    (void)state;
    for (int runs = 0; runs < 2; runs++) {
        struct error err = ERROR_INIT;
        struct crew_apps apps;
        struct post post;
        Hvdrun__Prepare *prepare = prepare_of("", true, false),
                        *other = prepare_of("", true, false);
        Hvdrun__App *both[] = {prepare->apps[0], other->apps[0]}, **own = prepare->apps;
        free(both[0]->mpi);
        free(both[1]->mpi);
        both[0]->mpi = mem_strdup("pmix");
        both[1]->mpi = mem_strdup("pmi1");
        prepare->apps = both;
        prepare->n_apps = 2;
        size_t workers = prepare->n_workers;
        prepare->n_workers = runs == 0 ? 0 : workers;
        post_init(&post, NULL);
        assert_int_equal(crew_apps_fill(&apps, prepare, true, &post.log, &err), -runs);
        assert_int_equal(strstr(err.text, "must use the same MPI") != NULL, runs);
        crew_apps_destroy(&apps);
        prepare->apps = own;
        prepare->n_apps = 1;
        prepare->n_workers = workers;
        hvdrun__prepare__free_unpacked(prepare, NULL);
        hvdrun__prepare__free_unpacked(other, NULL);
    }
}

static Hvdrun__Limit *limit_of(int resource, uint64_t soft)
{
    Hvdrun__Limit *limit = mem_alloc(sizeof(*limit));
    hvdrun__limit__init(limit);
    limit->resource = (uint32_t)resource;
    limit->soft = soft;
    return limit;
}

/* Workers inherit ours: only the limits of the user that are others cost each of them something. */
static void test_limits(void **state)
{
    (void)state;
    struct bench bench;
    struct rlimit files, core;
    static const struct worker_env_rank rank = {.rank = 1, .cross_rank = 1, .cross_size = 3};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    Hvdrun__Prepare *prepare = prepare_of("", true, false);
    prepare->limits = mem_alloc(3 * sizeof(*prepare->limits));
    prepare->limits[0] = limit_of(RLIMIT_CORE, core.rlim_cur);
    prepare->limits[1] = limit_of(RLIMIT_NOFILE, files.rlim_cur - 1);
    prepare->limits[2] = limit_of(-1, 7); /* the child says that this node has none such */
    prepare->n_limits = 3;
    bench_prepare(&bench);
    bench_fill(&bench, prepare, &rank);
    assert_int_equal(bench.setup.limit_count, 2);
    assert_int_equal(bench.setup.limits[0].resource, RLIMIT_NOFILE);
    assert_true(bench.setup.limits[0].soft == files.rlim_cur - 1);
    assert_int_equal(bench.setup.limits[1].resource, -1);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_several_hosts),
        cmocka_unit_test(test_the_port_of_nccl),
        cmocka_unit_test(test_a_driver_that_says_no_addresses),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_environment_of_the_host),
        cmocka_unit_test(test_open_files),
        cmocka_unit_test(test_a_worker_that_joins),
        cmocka_unit_test(test_ranks_of_other_nodes_use_the_cpus_too),
        cmocka_unit_test(test_a_world_that_was_spawned),
        cmocka_unit_test(test_programs_of_other_hosts),
        cmocka_unit_test(test_mpi_of_programs_of_other_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
