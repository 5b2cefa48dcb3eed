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

static int pci(void *of, struct nvml_pci *out)
{
    (void)of;
    memset(out->text, 'y', sizeof(out->text)); /* likewise */
    return fails_with;
}

static int temperature(void *of, int sensor, unsigned *out)
{
    (void)of;
    *out = 41;
    return sensor == 0 ? fails_with : NVML_NOT_SUPPORTED;
}

static int reasons(void *of, uint64_t *out)
{
    (void)of;
    *out = 0x48;
    return fails_with;
}

static int not_supported(void *of, uint64_t *out)
{
    (void)of, (void)out;
    return NVML_NOT_SUPPORTED;
}

/* This GPU does not count the corrected errors of its whole life. */
static int ecc_errors(void *of, int type, int counter, uint64_t *out)
{
    (void)of;
    *out = (uint64_t)(10 * type + counter + 1);
    return type == NVML_ECC_CORRECTED && counter == NVML_ECC_AGGREGATE ? NVML_NOT_SUPPORTED
                                                                       : fails_with;
}

static int remapped_rows(void *of, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                         unsigned *failed)
{
    (void)of;
    *corrected = 1, *uncorrected = 2, *pending = 1, *failed = 0;
    return fails_with;
}

static int name(void *of, char *text, unsigned size)
{
    (void)of;
    memset(text, 'N', size); /* without an end */
    return fails_with;
}

/* 3 links, of which 2 are up. */
static int link_state(void *of, unsigned link, int *is_up)
{
    (void)of;
    *is_up = link != 1;
    return link < 3 ? fails_with : NVML_NOT_SUPPORTED;
}

static const struct nvml whole = {.device = device,
                                  .uuid = uuid,
                                  .pci = pci,
                                  .name = name,
                                  .link = link_state,
                                  .temperature = temperature,
                                  .reasons = reasons,
                                  .ecc_errors = ecc_errors,
                                  .remapped_rows = remapped_rows};

static int begin(void **state)
{
    (void)state;
    fails_with = NVML_SUCCESS;
    return 0;
}

static void test_all(void **state)
{
    (void)state;
    struct gpu_health gpu;
    gpu_health_read(&whole, 3, &gpu);
    assert_int_equal(gpu.index, 3);
    assert_int_equal(strlen(gpu.uuid), sizeof(gpu.uuid) - 1);
    assert_int_equal(strlen(gpu.pci), sizeof(gpu.pci) - 1);
    assert_true(gpu.has_temperature && gpu.celsius == 41);
    assert_true(gpu.has_reasons && gpu.reasons == 0x48);
    assert_true(gpu.has_ecc);
    assert_int_equal(gpu.ecc[NVML_ECC_CORRECTED][NVML_ECC_VOLATILE], 1);
    assert_true(gpu.ecc[NVML_ECC_CORRECTED][NVML_ECC_AGGREGATE] == GPU_ECC_UNKNOWN);
    assert_int_equal(gpu.ecc[NVML_ECC_UNCORRECTED][NVML_ECC_VOLATILE], 11);
    assert_int_equal(gpu.ecc[NVML_ECC_UNCORRECTED][NVML_ECC_AGGREGATE], 12);
    assert_true(gpu.has_rows && gpu.rows_corrected == 1 && gpu.rows_uncorrected == 2);
    assert_true(gpu.rows_pending);
    assert_false(gpu.rows_failed);
    assert_int_equal(strlen(gpu.name), sizeof(gpu.name) - 1);
    assert_int_equal(gpu.links, 3);
    assert_int_equal(gpu.links_up, 2);
    assert_int_equal(gpu.trouble, 0);
}

static void expect_nothing(const struct gpu_health *gpu, int trouble)
{
    assert_false(gpu->has_temperature || gpu->has_reasons || gpu->has_ecc || gpu->has_rows);
    assert_string_equal(gpu->uuid, "");
    assert_string_equal(gpu->pci, "");
    assert_string_equal(gpu->name, "");
    assert_int_equal(gpu->links, 0);
    assert_int_equal(gpu->trouble, trouble);
}

static void test_errors(void **state)
{
    (void)state;
    const struct nvml bare = {.device = device};
    struct gpu_health gpu;
    gpu_health_read(&bare, 0, &gpu);
    expect_nothing(&gpu, 0);
    gpu_health_read(&whole, 7, &gpu);
    expect_nothing(&gpu, NVML_GPU_IS_LOST);
    fails_with = NVML_NOT_SUPPORTED;
    gpu_health_read(&whole, 0, &gpu);
    expect_nothing(&gpu, 0);
    fails_with = NVML_RESET_REQUIRED;
    gpu_health_read(&whole, 0, &gpu);
    expect_nothing(&gpu, NVML_RESET_REQUIRED);
}

/* An older library has another name for it, and a newer one may have both. */
static void test_the_older_name(void **state)
{
    (void)state;
    struct gpu_health gpu;
    struct nvml older = whole;
    older.reasons = NULL;
    older.reasons_old = reasons;
    gpu_health_read(&older, 0, &gpu);
    assert_true(gpu.has_reasons && gpu.reasons == 0x48);
    older.reasons = not_supported;
    gpu_health_read(&older, 0, &gpu);
    assert_true(gpu.has_reasons && gpu.reasons == 0x48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all, begin),
        cmocka_unit_test_setup(test_errors, begin),
        cmocka_unit_test_setup(test_the_older_name, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
