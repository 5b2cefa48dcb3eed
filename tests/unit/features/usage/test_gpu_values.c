/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/usage/usage_driver.h"
#include "features/usage/usage_test.h"

static struct gpu_values read_one(Hvdrun__GpuUsage message)
{
    struct gpu_values values;
    gpu_values_read(&message, &values);
    return values;
}

static Hvdrun__GpuUsage full(void)
{
    Hvdrun__GpuUsage message = HVDRUN__GPU_USAGE__INIT;
    message.has_use = message.has_power = message.has_energy = message.has_memory = true;
    message.use_percent = 98;
    message.power_mw = 690500;
    message.energy_mj = 5000;
    message.memory_used_bytes = 400;
    return message;
}

static void test_a_gpu(void **state)
{
    (void)state;
    char longer[100];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    Hvdrun__GpuUsage message = full();
    message.uuid = longer;
    struct gpu_values values = read_one(message);
    assert_int_equal(strlen(values.uuid), sizeof(values.uuid) - 1);
    assert_true(values.power_w > 690.4 && values.power_w < 690.6);
    assert_true(values.use_percent == 98 && values.energy_j == 5 &&
                values.memory_used_bytes == 400);
    assert_null(values.trouble);
    Hvdrun__GpuUsage empty = HVDRUN__GPU_USAGE__INIT;
    values = read_one(empty);
    assert_true(isnan(values.use_percent) && isnan(values.memory_use_percent) &&
                isnan(values.power_w) && isnan(values.energy_j) && isnan(values.memory_bytes) &&
                isnan(values.memory_used_bytes));
    empty.trouble = 15;
    assert_string_equal(read_one(empty).trouble, "is lost");
    empty.trouble = 16;
    assert_string_equal(read_one(empty).trouble, "needs a reset");
    empty.trouble = 999;
    assert_null(read_one(empty).trouble);
}

static void test_a_rank(void **state)
{
    (void)state;
    struct gpu_values gpus[2] = {read_one(full()), read_one(full())};
    uint32_t places[] = {0, 1, 2, UINT32_MAX};
    Hvdrun__RankUsage message = HVDRUN__RANK_USAGE__INIT;
    assert_int_equal(rank_gpus_of(&message, gpus, 2).count, 0);
    message.gpus = places;
    message.n_gpus = 4;
    struct rank_gpus rank = rank_gpus_of(&message, gpus, 2); /* two places are wrong */
    assert_int_equal(rank.count, 2);
    assert_true(rank.use_percent == 98 && rank.power_w == 1381 && rank.energy_j == 10);
    assert_true(isnan(rank.memory_bytes));
    message.has_gpu_memory = true;
    gpus[1].power_w = NAN;
    rank = rank_gpus_of(&message, gpus, 2);
    assert_true(isnan(rank.power_w) && rank.use_percent == 98 && rank.memory_bytes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gpu),
        cmocka_unit_test(test_a_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
