/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of --gpu-free, and GPUs that keep it or do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/gpu_free/gpu_free.h"

#define MIB ((uint64_t)1 << 20)

static void test_limit(void **state)
{
    (void)state;
    struct gpu_free_limit limit;
    assert_int_equal(gpu_free_parse("90%", &limit, NULL), 0);
    assert_true(limit.percent == 90 && limit.limit_ms == 60000);
    assert_int_equal(gpu_free_parse("99.5%:250ms", &limit, NULL), 0);
    assert_true(limit.percent == 99.5 && limit.limit_ms == 250);
    const char *const wrong[] = {"", "%", "90", "90:1s", "0%", "-1%", "nan%", "90%:-1s", "90%:61m"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(gpu_free_parse(wrong[i], &limit, NULL), -1);
}

static void expect_lacks(Hvdrun__GpuHealth *gpu, double percent, const char *expected)
{
    Hvdrun__GpuHealths gpus = HVDRUN__GPU_HEALTHS__INIT;
    struct buf out AUTO_BUF = BUF_INIT(4096);
    gpus.gpus = &gpu;
    gpus.n_gpus = 1;
    assert_true(gpu_free_lacks(&gpus, "b", percent, &out) == (expected[0] != '\0'));
    assert_string_equal(buf_text(&out), expected);
}

static void test_memory(void **state)
{
    (void)state;
    Hvdrun__GpuHealth gpu = HVDRUN__GPU_HEALTH__INIT;
    Hvdrun__GpuProcess small = HVDRUN__GPU_PROCESS__INIT, large = HVDRUN__GPU_PROCESS__INIT;
    Hvdrun__GpuProcess *processes[] = {&small, &large};
    gpu.index = 3;
    gpu.memory_bytes = 1000 * MIB;
    gpu.memory_used_bytes = 400 * MIB;
    expect_lacks(&gpu, 100, ""); /* not known */
    gpu.has_memory = true;
    expect_lacks(&gpu, 60, "");
    expect_lacks(&gpu, 61,
                 "GPU 3 of b has only 60 % of its memory free: 400 MiB are in use, and hvdrun "
                 "cannot see by which process");
    small.pid = 1;
    large.pid = 2;
    gpu.processes = processes;
    gpu.n_processes = 2;
    expect_lacks(&gpu, 61,
                 "GPU 3 of b has only 60 % of its memory free: a process (pid 1, user unknown) "
                 "holds some of it, and 1 more");
    small.has_memory = large.has_memory = true;
    small.memory_bytes = 5 * MIB;
    large.memory_bytes = 300 * MIB;
    large.name = (char *)"python3";
    large.user = (char *)"ann";
    expect_lacks(&gpu, 61,
                 "GPU 3 of b has only 60 % of its memory free: python3 (pid 2, user ann) holds "
                 "300 MiB, and 1 more");
    gpu.memory_bytes = 0; /* nonsense of a driver */
    expect_lacks(&gpu, 100, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
