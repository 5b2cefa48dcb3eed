/* SPDX-License-Identifier: Apache-2.0 */
#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/crew_binding.h"
#include "agent/room_test.h"
#include "base/mem.h"
#include "node/gpus.h"

#define WORKERS 3

/* Workers in slots 0 and 1 of the first program, and in slot 2 of another. */
struct fixture {
    Hvdrun__Worker workers[WORKERS], *list[WORKERS];
    Hvdrun__Prepare prepare;
    struct crew_app items[2];
    struct crew_apps apps;
    struct node_facts facts;
    struct modules *modules;
    struct post post;
    struct crew_config config;
    struct crew_binding binding;
    struct crew_gpus *gpus;
    struct topology machine; /* with three GPUs and two adapters */
    struct buf said;
    struct error err;
};

static void say(void *context, enum log_level level, const char *line)
{
    (void)level;
    buf_printf(context, "%s\n", line);
}

static void describe(const char *synthetic, const char *is_this)
{
    unsetenv("HWLOC_XMLFILE");
    if (synthetic != NULL)
        setenv("HWLOC_SYNTHETIC", synthetic, 1);
    else
        unsetenv("HWLOC_SYNTHETIC");
    if (is_this != NULL)
        setenv("HWLOC_THISSYSTEM", is_this, 1);
    else
        unsetenv("HWLOC_THISSYSTEM");
}

static void add_device(struct device_list *list, enum device_kind kind, const char *name,
                       const char *pci, const char *path)
{
    struct device device = {.kind = kind,
                            .name = mem_strdup(name),
                            .pci = mem_strdup(pci),
                            .path = mem_strdup(path),
                            .number = kind == DEVICE_NIC,
                            .numa = -1};
    device_list_add(list, &device);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.said = BUF_INIT(100000), .err = ERROR_INIT};
    hvdrun__prepare__init(&f.prepare);
    for (uint32_t i = 0; i < WORKERS; i++) {
        hvdrun__worker__init(&f.workers[i]);
        f.workers[i].rank = f.workers[i].slot = i;
        f.workers[i].app = i == 2;
        f.list[i] = &f.workers[i];
    }
    f.prepare.workers = f.list;
    f.prepare.n_workers = f.prepare.local_size = WORKERS;
    f.apps = (struct crew_apps){.items = f.items, .count = 2};
    f.post.log = (struct log){LOG_DEBUG, say, &f.said};
    char *module AUTO_FREE = mem_strdup(HVDRUN_TOPOLOGY_MODULE);
    f.modules = modules_create(dirname(module));
    f.config = (struct crew_config){.post = &f.post, .facts = &f.facts, .modules = f.modules};
    add_device(&f.machine.gpus, DEVICE_NVIDIA, "GPU-a", "0000:11:00.0", "pci0/a/0000:11:00.0");
    add_device(&f.machine.gpus, DEVICE_NVIDIA, "GPU-b", "0000:22:00.0", "pci0/b/0000:22:00.0");
    add_device(&f.machine.gpus, DEVICE_NVIDIA, "GPU-c", "0000:33:00.0", "pci0/c/0000:33:00.0");
    add_device(&f.machine.nics, DEVICE_NIC, "mlx5_0", "0000:12:00.0", "pci0/a/0000:12:00.0");
    add_device(&f.machine.nics, DEVICE_NIC, "mlx5_1", "0000:23:00.0", "pci0/b/0000:23:00.0");
    describe("pack:2 core:2 pu:1", NULL);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    describe(NULL, NULL);
    crew_binding_destroy(&f->binding);
    crew_gpus_destroy(f->gpus);
    crew_gpus_destroy(NULL);
    topology_destroy(&f->machine);
    modules_destroy(f->modules);
    strv_destroy(&f->items[0].env);
    strv_destroy(&f->items[1].env);
    strv_destroy(&f->apps.base_env);
    buf_destroy(&f->said);
    return 0;
}

/* GPUs */

static void make_gpus(struct fixture *f)
{
    f->gpus = crew_gpus_create(&f->prepare, &f->apps, 0, &f->machine);
}

static void expect_words(const struct strv *words, const char *wanted)
{
    struct buf all AUTO_BUF = BUF_INIT(10000);
    for (size_t i = 0; i < words->count; i++)
        buf_printf(&all, "%s%s", i > 0 ? " " : "", words->items[i]);
    assert_string_equal(buf_text(&all), wanted);
}

static void expect_env(struct fixture *f, int worker, const char *own, const char *hints)
{
    AUTO_STRV struct strv first = STRV_INIT, second = STRV_INIT;
    crew_gpus_env(f->gpus, &f->workers[worker], &first, &second);
    expect_words(&first, own);
    expect_words(&second, hints);
}

static void expect_near(const struct fixture *f, size_t slot, const char *wanted)
{
    char *near AUTO_FREE = crew_gpus_of(f->gpus, slot);
    assert_string_equal(near, wanted);
}

static void test_nothing_asks_for_gpus(void **state)
{
    struct fixture *f = *state;
    f->prepare.bind = BIND_CORE;
    make_gpus(f);
    assert_null(f->gpus);
    expect_env(f, 0, "", "");
    f->prepare.bind = BIND_GPU;
    make_gpus(f);
    assert_non_null(f->gpus);
}

static void test_gpus_for_each(void **state)
{
    struct fixture *f = *state;
    f->prepare.gpus_per_proc = 1;
    make_gpus(f);
    assert_int_equal(f->machine.gpus.count, 0); /* they are taken */
    assert_int_equal(f->machine.nics.count, 0);
    assert_int_equal(crew_gpus_seen(f->gpus)->count, 3);
    assert_int_equal(crew_gpus_check(f->gpus, 3, &f->err), 0);
    expect_env(f, 0, "CUDA_VISIBLE_DEVICES=0", "");
    expect_env(f, 1, "CUDA_VISIBLE_DEVICES=1", "");
    assert_int_equal(crew_gpus_check(f->gpus, 4, &f->err), -1);
    assert_int_equal(f->err.status, 123);
    assert_string_equal(f->err.text,
                        "--gpus-per-proc 1: 4 workers need 4 GPUs and this host shows 3; start "
                        "fewer workers on it, or check its CUDA_VISIBLE_DEVICES");
}

/* The two of a worker, as often as there are some; adapters are named by -x and by --nic-hints. */
static void test_several_gpus_for_each(void **state)
{
    struct fixture *f = *state;
    f->prepare.gpus_per_proc = 2;
    f->prepare.nic_hints = true;
    make_gpus(f);
    expect_near(f, 0, "0,1");
    expect_near(f, 1, "2,3");
    expect_near(f, 2, "1,2");
    expect_env(f, 0, "CUDA_VISIBLE_DEVICES=0,1",
               "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1");
}

/* The third program sees fewer GPUs than the first. */
static void test_gpus_of_another_program(void **state)
{
    struct fixture *f = *state;
    f->prepare.gpus_per_proc = 1;
    strv_add(&f->items[0].env, "CUDA_VISIBLE_DEVICES=2,0,1");
    strv_add(&f->items[1].env, "CUDA_VISIBLE_DEVICES=1,2");
    make_gpus(f);
    assert_int_equal(crew_gpus_check(f->gpus, 3, &f->err), -1);
    assert_string_equal(f->err.text,
                        "--gpus-per-proc 1: 3 workers need 3 GPUs and this host shows 2; start "
                        "fewer workers on it, or check its CUDA_VISIBLE_DEVICES");
    expect_env(f, 0, "CUDA_VISIBLE_DEVICES=2", "");
    expect_env(f, 2, "", "");
    f->workers[2].slot = 1;
    assert_int_equal(crew_gpus_check(f->gpus, 2, &f->err), 0);
    expect_env(f, 2, "CUDA_VISIBLE_DEVICES=2", "");
}

static void test_hidden_gpus(void **state)
{
    struct fixture *f = *state;
    f->prepare.gpus_per_proc = 2;
    strv_add(&f->apps.base_env, "CUDA_VISIBLE_DEVICES=-1");
    make_gpus(f);
    assert_int_equal(crew_gpus_check(f->gpus, 1, &f->err), -1);
    assert_int_equal(f->err.status, 123);
    assert_string_equal(f->err.text, "--gpus-per-proc 2: no GPU was found on this host, or "
                                     "CUDA_VISIBLE_DEVICES hides all");
    assert_null(crew_gpus_of(f->gpus, 0));
}

/* Without --gpus-per-proc a worker is near one GPU, and sees all of them. */
static void test_near_gpus(void **state)
{
    struct fixture *f = *state;
    f->prepare.nic_hints = true;
    make_gpus(f);
    assert_int_equal(crew_gpus_check(f->gpus, 100, &f->err), 0);
    expect_near(f, 1, "1");
    expect_near(f, 4, "1");
    expect_env(f, 1, "", "NCCL_IB_HCA==mlx5_1:1 UCX_NET_DEVICES=mlx5_1:1");
    f->prepare.nic_hints = false;
    expect_env(f, 1, "", "");
}

static void test_no_adapter_is_near(void **state)
{
    struct fixture *f = *state;
    f->prepare.nic_hints = true;
    device_list_destroy(&f->machine.nics);
    f->machine.nics = (struct device_list){0};
    make_gpus(f);
    expect_env(f, 0, "", "");
}

/* This machine, where the tests run, has no GPU that /proc or /sys lists, unless it has some. */
static void test_gpus_that_only_a_program_knows(void **state)
{
    struct fixture *f = *state;
    struct device_list found;
    gpus_read("", &found);
    size_t count = found.count > 0 ? found.count : 5;
    device_list_destroy(&found);
    f->prepare.gpus_per_proc = 1;
    f->gpus = crew_gpus_create(&f->prepare, &f->apps, 5, NULL);
    assert_int_equal(crew_gpus_seen(f->gpus)->count, count);
}

/* CPUs */

static void fill(struct fixture *f)
{
    if (crew_binding_fill(&f->binding, &f->config, &f->prepare, &f->apps, &f->err) < 0)
        fail_msg("%s", f->err.text);
}

static void test_not_bound(void **state)
{
    struct fixture *f = *state;
    modules_destroy(f->modules); /* nothing is read that nobody asks for */
    f->config.modules = f->modules = modules_create("/nonexistent");
    fill(f);
    assert_null(f->binding.cpus);
    assert_null(f->binding.gpus);
    AUTO_STRV struct strv hints = STRV_INIT;
    crew_binding_env(&f->binding, 0, 0, &f->workers[0], &hints);
    assert_int_equal(hints.count, 0);
    f->prepare.bind = BIND_GPU + 1;
    assert_int_equal(crew_binding_fill(&f->binding, &f->config, &f->prepare, &f->apps, &f->err),
                     -1);
    assert_non_null(strstr(f->err.text, "a binding of unknown kind"));
}

/* A host that no rank runs on, whatever it lacks. */
static void test_no_workers(void **state)
{
    struct fixture *f = *state;
    f->prepare.n_workers = f->prepare.local_size = 0;
    f->prepare.bind = BIND_GPU;
    f->prepare.gpus_per_proc = 1000;
    f->prepare.report_bindings = f->prepare.nic_hints = true;
    fill(f);
    assert_null(f->binding.cpus);
    assert_null(f->binding.gpus);
    assert_int_equal(f->binding.pictures.count, 0);
}

static void expect_pictures(const struct fixture *f, const char *wanted)
{
    struct buf all AUTO_BUF = BUF_INIT(10000);
    for (size_t i = 0; i < f->binding.pictures.count; i++)
        buf_printf(&all, "%s\n", f->binding.pictures.items[i]);
    assert_string_equal(buf_text(&all), wanted);
}

#define LEGEND "; B bound, b partly, . free, x not available\n"

/* Another machine is drawn, and no worker is bound to it. */
static void test_a_described_machine(void **state)
{
    struct fixture *f = *state;
    f->prepare.bind = BIND_CORE;
    f->prepare.report_bindings = true;
    fill(f);
    assert_null(f->binding.cpus);
    assert_string_equal(buf_text(&f->said), "HWLOC_SYNTHETIC or HWLOC_XMLFILE describes another "
                                            "machine: hvdrun does not bind workers\n");
    expect_pictures(f, "2 packages, 1 memory node, 4 cores, 4 CPUs; bound to: core" LEGEND
                       "rank 0  CPUs 0  [B.][..]\n"
                       "rank 1  CPUs 1  [.B][..]\n"
                       "rank 2  CPUs 2  [..][B.]\n");
}

/* The picture alone: nobody is bound, and there is nothing to warn of. */
static void test_a_picture_alone(void **state)
{
    struct fixture *f = *state;
    f->prepare.report_bindings = true;
    fill(f);
    assert_null(f->binding.cpus);
    assert_string_equal(buf_text(&f->said), "");
    assert_int_equal(f->binding.pictures.count, 4);
}

/* A worker is bound by its slot, also where those of an earlier epoch have others. */
static void test_cores_for_each(void **state)
{
    struct fixture *f = *state;
    f->prepare.cpus_per_proc = 2;
    f->prepare.report_bindings = true;
    f->prepare.n_workers = f->prepare.local_size = 1;
    f->workers[0].slot = 1;
    fill(f);
    expect_pictures(f, "2 packages, 1 memory node, 4 cores, 4 CPUs; bound to: core" LEGEND
                       "rank 0  CPUs 2-3  [..][BB]\n");
}

static void test_a_rankfile(void **state)
{
    struct fixture *f = *state;
    f->prepare.report_bindings = true;
    f->workers[0].cpus = (char *)"3";
    f->workers[1].cpus = (char *)"0-1";
    f->workers[2].cpus = (char *)"2";
    fill(f);
    expect_pictures(
        f, "2 packages, 1 memory node, 4 cores, 4 CPUs; bound to: the rankfile's CPUs" LEGEND
           "rank 0  CPUs 3    [..][.B]\n"
           "rank 1  CPUs 0-1  [BB][..]\n"
           "rank 2  CPUs 2    [..][B.]\n");
}

static void test_too_few_cores(void **state)
{
    struct fixture *f = *state;
    describe("pack:1 core:2 pu:1", NULL);
    f->prepare.bind = BIND_CORE;
    fill(f);
    assert_non_null(strstr(buf_text(&f->said), "2 of 3 workers share their cores with others: "
                                               "hvdrun may use only 2\n"));
    crew_binding_destroy(&f->binding);
    buf_clear(&f->said);
    f->prepare.cpus_per_proc = 3;
    fill(f);
    assert_non_null(strstr(buf_text(&f->said),
                           "--cpus-per-proc 3: a worker has fewer cores, because there are no "
                           "more where it is bound\n"));
    assert_null(strstr(buf_text(&f->said), "share"));
}

/* hwloc says nothing of a description that it cannot read. */
static void test_a_description_that_cannot_be_read(void **state)
{
    static const char lost[] = "hwloc cannot read the description in HWLOC_SYNTHETIC or "
                               "HWLOC_XMLFILE: hvdrun uses the topology of this machine\n";
    struct fixture *f = *state;
    f->prepare.report_bindings = true;
    describe("rubbish", NULL);
    fill(f);
    assert_string_equal(buf_text(&f->said), lost);
    crew_binding_destroy(&f->binding);
    buf_clear(&f->said);
    describe("", NULL); /* as if it were not set */
    fill(f);
    assert_string_equal(buf_text(&f->said), "");
    crew_binding_destroy(&f->binding);
    describe(NULL, NULL);
    setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    fill(f);
    assert_string_equal(buf_text(&f->said), lost);
    crew_binding_destroy(&f->binding);
    buf_clear(&f->said);
    setenv("HWLOC_THISSYSTEM", "1", 1); /* it is about this machine */
    fill(f);
    assert_string_equal(buf_text(&f->said), "");
}

static void expect_threads(struct fixture *f, int cpu_quota, int cpu_ranks, int wanted)
{
    AUTO_STRV struct strv hints = STRV_INIT;
    char *text AUTO_FREE = mem_printf("OMP_NUM_THREADS=%d", wanted);
    crew_binding_env(&f->binding, cpu_quota, cpu_ranks, &f->workers[1], &hints);
    expect_words(&hints, text);
}

/* On this machine, whatever it has. */
static void test_threads(void **state)
{
    struct fixture *f = *state;
    describe(NULL, NULL);
    f->prepare.bind = BIND_CORE;
    fill(f);
    assert_non_null(f->binding.cpus);
    int *threads = f->binding.cpus->threads;
    threads[1] = 8;
    expect_threads(f, 0, 2, 8);
    expect_threads(f, 16, 2, 8);
    expect_threads(f, 15, 2, 7);
    expect_threads(f, 1, 2, 1);
    expect_threads(f, 3, 0, 8);
}

/* The GPUs of the workers are in the picture, and a shortage is an error. */
static void test_gpus_of_bound_workers(void **state)
{
    struct fixture *f = *state;
    f->prepare.gpus_per_proc = 1;
    f->prepare.bind = BIND_CORE;
    f->prepare.report_bindings = true;
    strv_add(&f->apps.base_env, "CUDA_VISIBLE_DEVICES=-1");
    assert_int_equal(crew_binding_fill(&f->binding, &f->config, &f->prepare, &f->apps, &f->err),
                     -1);
    assert_int_equal(f->err.status, 123);
    assert_int_equal(f->binding.pictures.count, 0);
    crew_binding_destroy(&f->binding);
    strv_destroy(&f->apps.base_env);
    strv_add(&f->apps.base_env,
             "CUDA_VISIBLE_DEVICES=5,6,7"); /* no GPU is known: it counts as it is */
    fill(f);
    expect_pictures(f, "2 packages, 1 memory node, 4 cores, 4 CPUs, 3 GPUs; bound to: core" LEGEND
                       "GPU 0: rank 0\nGPU 1: rank 1\nGPU 2: rank 2\n"
                       "rank 0  CPUs 0  GPU 0  [B.][..]\n"
                       "rank 1  CPUs 1  GPU 1  [.B][..]\n"
                       "rank 2  CPUs 2  GPU 2  [..][B.]\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_asks_for_gpus),
        TEST(test_gpus_for_each),
        TEST(test_several_gpus_for_each),
        TEST(test_gpus_of_another_program),
        TEST(test_hidden_gpus),
        TEST(test_near_gpus),
        TEST(test_no_adapter_is_near),
        TEST(test_gpus_that_only_a_program_knows),
        TEST(test_not_bound),
        TEST(test_no_workers),
        TEST(test_a_described_machine),
        TEST(test_a_picture_alone),
        TEST(test_cores_for_each),
        TEST(test_a_rankfile),
        TEST(test_too_few_cores),
        TEST(test_a_description_that_cannot_be_read),
        TEST(test_threads),
        TEST(test_gpus_of_bound_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
