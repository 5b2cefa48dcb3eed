/* SPDX-License-Identifier: Apache-2.0 */
/* What a check makes of GPUs: hosts that are well, of which each test spoils some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/check/check.h"
#include "features/check/check_fixture.h"

#define HOSTS 3
#define GPUS 8
#define MEMORY (80 * GIB)

struct bench {
    struct check_world world;
    struct check_findings findings;
};

static Hvdrun__GpuHealth *new_gpu(int host, int index)
{
    Hvdrun__GpuHealth *gpu = malloc(sizeof(*gpu));
    hvdrun__gpu_health__init(gpu);
    gpu->index = (uint32_t)index;
    gpu->uuid = mem_printf("GPU-%d-%d", host, index);
    gpu->name = mem_strdup("NVIDIA H100");
    gpu->has_temperature = gpu->has_reasons = gpu->has_memory = true;
    gpu->celsius = 30 + (uint32_t)index;
    gpu->reasons = 0x5; /* idle, at the power cap */
    gpu->memory_bytes = MEMORY;
    gpu->memory_used_bytes = GIB;
    gpu->links = gpu->links_up = 18;
    gpu->n_ecc_errors = 4;
    gpu->ecc_errors = calloc(4, sizeof(*gpu->ecc_errors));
    gpu->ecc_errors[0] = 5; /* corrected ones, and those of long ago, say nothing */
    gpu->ecc_errors[3] = 7;
    return gpu;
}

static void give_gpus(struct check_host *host, int number, int count)
{
    Hvdrun__GpuHealths *gpus = malloc(sizeof(*gpus));
    hvdrun__gpu_healths__init(gpus);
    gpus->library = true;
    gpus->n_gpus = (size_t)count;
    gpus->gpus = mem_array((size_t)count, sizeof(*gpus->gpus));
    for (int i = 0; i < count; i++)
        gpus->gpus[i] = new_gpu(number, i);
    host->gpus = gpus;
}

static void give_test(struct check_host *host, int number)
{
    struct buf text AUTO_BUF = BUF_INIT(4096);
    buf_puts(&text, "torch 2.11.0\nnccl 2.28.9\n");
    for (int i = 0; i < GPUS; i++)
        buf_printf(&text, "speed GPU-%d-%d %d 3000 55\n", number, i, 680 + i);
    buf_puts(&text, "reduce 8 300.5\n");
    gpu_test_read(buf_text(&text), text.length, &host->gpu_test);
}

static int open_bench(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    *bench = (struct bench){.findings = {.count = 0}};
    world_make(&bench->world, HOSTS);
    bench->world.result.gpu = true;
    for (int i = 0; i < HOSTS; i++) {
        give_gpus(&bench->world.result.hosts[i], i, GPUS);
        give_test(&bench->world.result.hosts[i], i);
    }
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

static Hvdrun__GpuHealth *gpu_of(struct bench *bench, int host, int index)
{
    return bench->world.result.hosts[host].gpus->gpus[index];
}

static struct gpu_speed *speed_of(struct bench *bench, int host, int index)
{
    return &bench->world.result.hosts[host].gpu_test.speeds[index];
}

static size_t judge(struct bench *bench)
{
    check_findings_clear(&bench->findings);
    check_judge(&bench->world.result, &bench->findings);
    return bench->findings.count;
}

/* One finding, about this host, that begins like this. */
/* For which a job leaves a host out. */
static bool is_about_bad_gpu(const char *text)
{
    const char *const bad[] = {" is lost",   "needs a reset", "bad row",      "ECC error",
                               "NVLinks up", "slow",          "library finds"};
    bool found = false;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        found = found || strstr(text, bad[i]) != NULL;
    return found && strstr(text, "is of model") == NULL && strstr(text, "lower clocks") == NULL;
}

static void expect_one(struct bench *bench, int host, bool fatal, const char *begin)
{
    size_t count = judge(bench);
    for (size_t i = 0; count != 1 && i < count; i++)
        print_message("%d %s\n", bench->findings.items[i].host, bench->findings.items[i].text);
    assert_int_equal(count, 1);
    const struct check_finding *finding = &bench->findings.items[0];
    assert_int_equal(finding->host, host);
    assert_int_equal(finding->fatal, fatal);
    assert_int_equal(finding->bad, is_about_bad_gpu(finding->text));
    if (strncmp(finding->text, begin, strlen(begin)) != 0)
        fail_msg("'%s' does not begin with '%s'", finding->text, begin);
}

static void test_all_is_well(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(judge(bench), 0);
}

static void test_one_host(void **state)
{
    struct bench *bench = *state;
    world_close(&bench->world);
    world_make(&bench->world, 1);
    bench->world.result.gpu = true;
    give_gpus(&bench->world.result.hosts[0], 0, 1);
    bench->world.hellos[0].gpus = 1;
    assert_int_equal(judge(bench), 0);
    gpu_of(bench, 0, 0)->ecc_errors[2] = 1;
    expect_one(bench, 0, false,
               "GPU 0 has had 1 uncorrected ECC error since its driver was loaded (median 1): ");
}

static void test_another_model(void **state)
{
    struct bench *bench = *state;
    world_set(&gpu_of(bench, 1, 3)->name, "NVIDIA A100");
    speed_of(bench, 1, 3)->value[SPEED_COMPUTE] = 250; /* as it should be */
    expect_one(bench, 1, false, "GPU 3 is of model NVIDIA A100, most are of model NVIDIA H100: ");
    world_set(&gpu_of(bench, 1, 3)->name, "");
    assert_int_equal(judge(bench), 0);
}

static void test_errors_of_memory(void **state)
{
    struct bench *bench = *state;
    Hvdrun__GpuHealth *gpu = gpu_of(bench, 2, 5);
    gpu->ecc_errors[2] = 3;
    expect_one(bench, 2, false,
               "GPU 5 has had 3 uncorrected ECC errors since its driver was loaded (median 0): "
               "reset it (nvidia-smi --gpu-reset -i 5)");
    gpu->ecc_errors[2] = UINT64_MAX; /* not known */
    assert_int_equal(judge(bench), 0);
    gpu->remapping_pending = true;
    expect_one(bench, 2, false, "GPU 5 replaces a bad row of its memory at the next reset: ");
    gpu->remapping_failed = true;
    expect_one(bench, 2, false, "GPU 5 could not replace a bad row of its memory: ");
}

static void test_trouble(void **state)
{
    struct bench *bench = *state;
    gpu_of(bench, 0, 1)->trouble = 15;
    expect_one(bench, 0, true, "GPU 1 is lost: reset it (nvidia-smi --gpu-reset -i 1)");
    gpu_of(bench, 0, 1)->trouble = 16;
    expect_one(bench, 0, true, "GPU 1 needs a reset: ");
}

static void test_clocks(void **state)
{
    struct bench *bench = *state;
    Hvdrun__GpuHealth *gpu = gpu_of(bench, 0, 2);
    gpu->celsius = 91;
    expect_one(bench, 0, false, "GPU 2 has 91 degrees Celsius (median 34): check its cooling");
    gpu->reasons = 0xc1;
    expect_one(bench, 0, false,
               "GPU 2 has lower clocks, at 91 degrees Celsius (median 34): hardware thermal "
               "slowdown, hardware power brake slowdown: ");
    gpu->has_temperature = false;
    expect_one(bench, 0, false, "GPU 2 has lower clocks: hardware thermal slowdown, ");
}

static void test_links(void **state)
{
    struct bench *bench = *state;
    gpu_of(bench, 1, 7)->links_up = 16;
    expect_one(bench, 1, false,
               "GPU 7 has 16 NVLinks up (median 18): see nvidia-smi nvlink -s -i 7");
    gpu_of(bench, 1, 7)->links = 0; /* not known */
    assert_int_equal(judge(bench), 0);
}

static void test_held_memory(void **state)
{
    struct bench *bench = *state;
    Hvdrun__GpuHealth *gpu = gpu_of(bench, 0, 0);
    gpu->memory_used_bytes = 40 * GIB;
    expect_one(
        bench, 0, false,
        "GPU 0: 40960 of 81920 MiB of its memory are in use (median 1024), and hvdrun cannot "
        "see by which process: ");
    Hvdrun__GpuProcess *process = malloc(sizeof(*process));
    hvdrun__gpu_process__init(process);
    gpu->processes = malloc(sizeof(*gpu->processes));
    gpu->processes[0] = process;
    gpu->n_processes = 1;
    process->pid = 812;
    process->has_memory = true;
    process->memory_bytes = 39 * GIB;
    expect_one(bench, 0, false,
               "GPU 0: a process (pid 812, user unknown) holds 39936 MiB of its memory (median in "
               "use 1024): ");
    world_set(&process->name, "python3");
    world_set(&process->user, "ann");
    expect_one(bench, 0, false,
               "GPU 0: python3 (pid 812, user ann) holds 39936 MiB of its memory ");
    process->memory_bytes = 30 << 20; /* MPS */
    gpu->memory_used_bytes = GIB;
    assert_int_equal(judge(bench), 0);
}

static void test_slow(void **state)
{
    struct bench *bench = *state;
    struct gpu_speed *speed = speed_of(bench, 2, 4);
    speed->value[SPEED_COMPUTE] = 560;
    assert_int_equal(judge(bench), 0);
    speed->value[SPEED_COMPUTE] = 412;
    expect_one(bench, 2, false, "GPU 4 is slow: 412 TFLOP/s in bf16 (median 68");
    speed->value[SPEED_COMPUTE] = 680;
    speed->value[SPEED_MEMORY] = 1500;
    expect_one(bench, 2, false, "GPU 4 is slow: 1500 GB/s in its memory (median 3000): ");
    speed->value[SPEED_MEMORY] = 3000;
    speed->value[SPEED_HOST] = 30; /* it is far from that memory */
    assert_int_equal(judge(bench), 0);
    speed->value[SPEED_HOST] = 12;
    expect_one(bench, 2, false, "GPU 4 is slow: 12 GB/s from the host's memory (median 55): ");
}

static void test_slow_together(void **state)
{
    struct bench *bench = *state;
    bench->world.result.hosts[1].gpu_test.reduce = 100;
    expect_one(bench, 1, false,
               "an all-reduce of its 8 GPUs is slow: 100 GB/s (median 300): see nvidia-smi topo");
    bench->world.result.hosts[1].gpu_test.reduce_gpus = 2; /* no other host has that */
    assert_int_equal(judge(bench), 0);
}

static void test_versions(void **state)
{
    struct bench *bench = *state;
    world_set(&bench->world.result.hosts[1].gpu_test.nccl, "2.27.1");
    expect_one(bench, 1, false, "NCCL: 2.27.1 here, 2.28.9 on other hosts: ");
    free(bench->world.result.hosts[1].gpu_test.nccl); /* no PyTorch there */
    bench->world.result.hosts[1].gpu_test.nccl = NULL;
    assert_int_equal(judge(bench), 0);
}

/* It may be a good one. */
static void expect_not_bad(struct bench *bench, const char *text)
{
    judge(bench);
    bool found = false;
    for (size_t i = 0; i < bench->findings.count; i++) {
        found = found || strstr(bench->findings.items[i].text, text) != NULL;
        assert_false(bench->findings.items[i].bad);
    }
    assert_true(found);
}

static void test_slow_while_it_is_busy(void **state)
{
    struct bench *bench = *state;
    Hvdrun__GpuHealth *gpu = gpu_of(bench, 1, 2);
    speed_of(bench, 1, 2)->value[SPEED_COMPUTE] = 300;
    bench->world.result.hosts[1].gpu_test.reduce = 100;
    gpu->memory_used_bytes = 20 * GIB;
    expect_not_bad(bench, "GPU 2 is slow: ");
    expect_not_bad(bench, "an all-reduce of its 8 GPUs is slow");
    gpu->memory_used_bytes = GIB;
    gpu->reasons = 0x40; /* heat */
    expect_not_bad(bench, "GPU 2 is slow: ");
    gpu->reasons = 0;
    gpu->celsius = 95;
    expect_not_bad(bench, "GPU 2 is slow: ");
    gpu->celsius = 40;
    judge(bench);
    assert_int_equal(bench->findings.count, 2);
    assert_true(bench->findings.items[0].bad && bench->findings.items[1].bad);
}

/* Beside the others; a host that was not tested has no figure. */
static void test_slow_with_other_hosts(void **state)
{
    struct bench *bench = *state;
    struct check_host *hosts = bench->world.result.hosts;
    for (int i = 0; i < bench->world.result.count; i++) {
        hosts[i].between = 10 + i;
        hosts[i].between_pairs = 2;
    }
    assert_int_equal(judge(bench), 0);
    hosts[1].between = 4;
    expect_one(bench, 1, false, "all-reduces with other hosts are slow: 4.00 GB/s (median ");
    hosts[1].between_pairs = 1; /* the other end may be the slow one */
    judge(bench);
    assert_int_equal(bench->findings.count, 1);
    assert_false(bench->findings.items[0].bad);
    hosts[1].gpu_test.reduce_gpus = 1; /* no other host is like it */
    assert_int_equal(judge(bench), 0);
    hosts[1].gpu_test.reduce_gpus = GPUS;
    hosts[1].between_pairs = 2;
    bench->world.result.simulated = true;
    assert_int_equal(judge(bench), 0);
    bench->world.result.simulated = false;
    hosts[1].between = 0;
    hosts[1].between_problem = mem_strdup("the test did not end within 90 s");
    hosts[1].between_peer = 2;
    expect_one(bench, 1, false, "an all-reduce with c2 failed: the test did not end within 90 s: ");
}

/* Eight of them are visible, which are parts of one GPU. */
static void test_parts_of_a_gpu(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[1];
    hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
    give_gpus(host, 1, 1);
    host->facts->n_gpus = 1;
    host->facts->gpus = mem_alloc(sizeof(char *));
    host->facts->gpus[0] = mem_strdup("NVIDIA H100");
    for (size_t i = 0; i < judge(bench); i++)
        fail_msg("%s", bench->findings.items[i].text);
    free(host->facts->gpus[0]);
    host->facts->n_gpus = 0; /* not known */
    expect_one(bench, 1, false, "NVIDIA's library finds 1 of 8 GPUs: ");
}

static void test_what_is_missing(void **state)
{
    struct bench *bench = *state;
    struct check_host *host = &bench->world.result.hosts[1];
    host->gpu_test_problem = mem_strdup("the test did not end within 120 s");
    expect_one(bench, 1, false, "the test of its GPUs failed: the test did not end within 120 s: ");
    free(host->gpu_test_problem);
    host->gpu_test_problem = NULL;
    hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
    give_gpus(host, 1, GPUS - 1);
    expect_one(bench, 1, false, "NVIDIA's library finds 7 of 8 GPUs: ");
    host->gpus_missing = mem_strdup("NVIDIA's library did not answer in time");
    expect_one(bench, 1, false,
               "some of its GPUs are not checked: NVIDIA's library did not answer in time: ");
    free(host->gpus_missing);
    host->gpus_missing = NULL;
    hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
    give_gpus(host, 1, 0);
    host->gpus->library = false;
    expect_one(bench, 1, false, "its GPUs are not checked: the library of NVIDIA's driver ");
}

static void test_no_gpu_anywhere(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < HOSTS; i++) {
        hvdrun__gpu_healths__free_unpacked(bench->world.result.hosts[i].gpus, NULL);
        give_gpus(&bench->world.result.hosts[i], i, 0);
        bench->world.hellos[i].gpus = 0;
    }
    expect_one(bench, -1, true, "no host has a GPU of NVIDIA: ");
    bench->world.result.hosts[0].gpus_missing = mem_strdup("its agent did not answer in time");
    expect_one(bench, 0, false,
               "some of its GPUs are not checked: its agent did not answer in time");
}

static void test_text(void **state)
{
    struct bench *bench = *state;
    struct buf text AUTO_BUF = BUF_INIT(4096);
    check_text_gpus(&bench->world.result, &text);
    assert_string_equal(buf_text(&text),
                        "GPUs: 24 checked, 30 to 37 degrees Celsius\n"
                        "GPU test: 24 tested, 680 to 687 TFLOP/s in bf16, 3000 GB/s in memory, 55 "
                        "GB/s from the host, 300 GB/s in all-reduces\n");
    gpu_test_clear(&bench->world.result.hosts[0].gpu_test);
    gpu_test_read("none it has no PyTorch", 22, &bench->world.result.hosts[0].gpu_test);
    buf_clear(&text);
    check_text_gpus(&bench->world.result, &text);
    assert_non_null(strstr(buf_text(&text), "GPU test: 16 tested, "));
    assert_non_null(strstr(buf_text(&text), "\nGPU test: none on some hosts: it has no PyTorch\n"));
}

/* Whatever a test prints, its lines are read or left out. */
static void test_lines(void **state)
{
    (void)state;
    static const char bad[] = "speed GPU-a 1 2\nspeed GPU-b 1 2 nan\nspeed GPU-c -1 2 3\nspeed\n\n"
                              "speed GPU-d 1 2 1e9\nreduce 1 5\nreduce 2 inf\nreduce\nnothing\n"
                              "speed GPU-e 1 2 3\nspeed GPU-e 4 5 6\ntorch 1\ntorch 2";
    struct gpu_test test;
    gpu_test_read(bad, sizeof(bad) - 1, &test);
    assert_int_equal(test.count, 1);
    assert_true(test.speeds[0].value[SPEED_COMPUTE] == 1);
    assert_ptr_equal(gpu_test_find(&test, "GPU-e"), test.speeds);
    assert_null(gpu_test_find(&test, "GPU-a"));
    assert_int_equal(test.reduce_gpus, 0);
    assert_string_equal(test.torch, "2");
    assert_null(test.nccl);
    gpu_test_clear(&test);
    char *line AUTO_FREE = mem_alloc(5000); /* too long a line */
    memset(line, 'x', 5000);
    memcpy(line, "none ", 5);
    gpu_test_read(line, 5000, &test);
    assert_null(test.none);
    gpu_test_clear(&test);
    gpu_test_read(NULL, 0, &test);
    gpu_test_clear(&test);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_is_well),
        TEST(test_one_host),
        TEST(test_another_model),
        TEST(test_errors_of_memory),
        TEST(test_trouble),
        TEST(test_clocks),
        TEST(test_links),
        TEST(test_held_memory),
        TEST(test_slow),
        TEST(test_slow_together),
        TEST(test_versions),
        TEST(test_slow_while_it_is_busy),
        TEST(test_slow_with_other_hosts),
        TEST(test_parts_of_a_gpu),
        TEST(test_what_is_missing),
        TEST(test_no_gpu_anywhere),
        TEST(test_text),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
