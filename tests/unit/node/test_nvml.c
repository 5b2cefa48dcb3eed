/* SPDX-License-Identifier: Apache-2.0 */
/* A library of NVIDIA that says what the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/nvml.h"

static int fails_with; /* every function but `device` */
static unsigned processes;

static int count(unsigned *out)
{
    *out = 1000;
    return fails_with;
}

static int device(unsigned index, void **out)
{
    *out = (void *)(uintptr_t)(index + 1);
    return index == 7 ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

static int uuid(void *of, char *text, unsigned size)
{
    (void)of;
    memset(text, 'x', size); /* without an end */
    return fails_with;
}

static int utilization(void *of, struct nvml_utilization *out)
{
    (void)of;
    *out = (struct nvml_utilization){98, 22};
    return fails_with;
}

static int power(void *of, unsigned *out)
{
    (void)of;
    *out = 690500;
    return fails_with;
}

static int memory(void *of, struct nvml_memory *out)
{
    (void)of;
    *out = (struct nvml_memory){1000, 600, 400};
    return fails_with;
}

static int energy(void *of, uint64_t *out)
{
    (void)of;
    *out = 5000;
    return fails_with;
}

static int list(void *of, unsigned *room, struct nvml_process *out)
{
    (void)of;
    for (unsigned i = 0; i < processes && i < *room; i++)
        out[i] = (struct nvml_process){.pid = 100 + i, .memory = NVML_MEMORY_UNKNOWN};
    bool fits = processes <= *room;
    *room = processes;
    return fits ? fails_with : NVML_INSUFFICIENT_SIZE;
}

static int no_list(void *of, unsigned *room, struct nvml_process *out)
{
    (void)of, (void)room, (void)out;
    return NVML_FUNCTION_NOT_FOUND;
}

static const struct nvml whole = {.count = count,
                                  .device = device,
                                  .uuid = uuid,
                                  .utilization = utilization,
                                  .power = power,
                                  .memory = memory,
                                  .energy = energy,
                                  .processes = list};

static int begin(void **state)
{
    (void)state;
    fails_with = NVML_SUCCESS;
    processes = 2;
    return 0;
}

static void test_all(void **state)
{
    (void)state;
    struct gpu_usage usage;
    gpu_usage_read(&whole, 3, true, &usage);
    assert_int_equal(usage.index, 3);
    assert_int_equal(strlen(usage.uuid), sizeof(usage.uuid) - 1);
    assert_true(usage.has_use && usage.use.gpu == 98 && usage.use.memory == 22);
    assert_true(usage.has_power && usage.power_mw == 690500);
    assert_true(usage.has_memory && usage.memory.used == 400);
    assert_true(usage.has_energy && usage.energy_mj == 5000);
    assert_true(usage.process_count == 2);
    assert_int_equal(usage.processes[1].pid, 101);
    assert_int_equal(usage.trouble, 0);
    gpu_usage_read(&whole, 3, false, &usage);
    assert_false(usage.has_energy);
    assert_int_equal(gpu_usage_count(&whole), GPUS_MAX);
}

static void expect_nothing(const struct gpu_usage *usage, int trouble)
{
    assert_false(usage->has_use || usage->has_power || usage->has_memory || usage->has_energy);
    assert_string_equal(usage->uuid, "");
    assert_int_equal(usage->process_count, 0);
    assert_int_equal(usage->trouble, trouble);
}

static void test_errors(void **state)
{
    (void)state;
    const struct nvml bare = {.count = count, .device = device};
    struct gpu_usage usage;
    gpu_usage_read(&bare, 0, true, &usage);
    expect_nothing(&usage, 0);
    gpu_usage_read(&whole, 7, true, &usage);
    expect_nothing(&usage, NVML_GPU_IS_LOST);
    fails_with = NVML_NOT_SUPPORTED;
    gpu_usage_read(&whole, 0, true, &usage);
    expect_nothing(&usage, 0);
    fails_with = NVML_RESET_REQUIRED;
    gpu_usage_read(&whole, 0, true, &usage);
    expect_nothing(&usage, NVML_RESET_REQUIRED);
    assert_int_equal(gpu_usage_count(&whole), 0);
}

/* Too many for the buffer are not known; an older function has the same list. */
static void test_processes(void **state)
{
    (void)state;
    struct gpu_usage usage;
    processes = GPU_PROCESSES_MAX;
    gpu_usage_read(&whole, 0, true, &usage);
    assert_int_equal(usage.process_count, GPU_PROCESSES_MAX);
    processes = GPU_PROCESSES_MAX + 1;
    gpu_usage_read(&whole, 0, true, &usage);
    assert_int_equal(usage.process_count, 0);
    struct nvml older = whole;
    processes = 1;
    older.processes = no_list;
    older.processes_v2 = list;
    gpu_usage_read(&older, 0, true, &usage);
    assert_int_equal(usage.process_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all, begin),
        cmocka_unit_test_setup(test_errors, begin),
        cmocka_unit_test_setup(test_processes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
