/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loop/knobs.h"

static char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

static void test_defaults(void **state)
{
    (void)state;
    struct knobs knobs;
    struct error err = ERROR_INIT;
    assert_int_equal(knobs_read(&knobs, nothing, &err), HVD_OK);
    assert_int_equal(knobs.cycle_ns, 1000000);
    assert_int_equal(knobs.threshold, 128 << 20);
    assert_int_equal(knobs.capacity, 1024);
    assert_true(knobs.warn_ns == 60000000000);
    assert_int_equal(knobs.give_up_ns, 0);
    assert_false(knobs.tuner.on || knobs.tuner.threshold_fixed || knobs.tuner.cycle_fixed);
    assert_null(knobs.tune_log);
}

static char *several(const char *name)
{
    static const struct {
        const char *name;
        char *value;
    } pairs[] = {{"HOROVOD_CYCLE_TIME", "0.25"},
                 {"HOROVOD_FUSION_THRESHOLD", "0"},
                 {"HOROVOD_CACHE_CAPACITY", "7"},
                 {"HOROVOD_STALL_CHECK_TIME_SECONDS", "2"},
                 {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "3"},
                 {"HOROVOD_AUTOTUNE", "1"},
                 {"HOROVOD_AUTOTUNE_LOG", "log.csv"},
                 {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "0"},
                 {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "0"},
                 {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "7"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return pairs[i].value;
    return NULL;
}

static void test_values(void **state)
{
    (void)state;
    struct knobs knobs;
    struct error err = ERROR_INIT;
    assert_int_equal(knobs_read(&knobs, several, &err), HVD_OK);
    assert_int_equal(knobs.cycle_ns, 250000);
    assert_int_equal(knobs.threshold, 0);
    assert_int_equal(knobs.capacity, 7);
    assert_true(knobs.warn_ns == 2000000000 && knobs.give_up_ns == 3000000000);
    assert_true(knobs.tuner.on && knobs.tuner.threshold_fixed && knobs.tuner.cycle_fixed);
    assert_int_equal(knobs.tuner.warm_up, 0);
    assert_int_equal(knobs.tuner.steps, 1); /* a sample needs one */
    assert_int_equal(knobs.tuner.points, 7);
    assert_string_equal(knobs.tune_log, "log.csv");
}

static char *too_short(const char *name)
{
    return strcmp(name, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS") == 0 ? "3" : NULL;
}

static char *wrong(const char *name)
{
    return strcmp(name, "HOROVOD_CACHE_CAPACITY") == 0 ? "many" : NULL;
}

static void test_errors_name_the_variable(void **state)
{
    (void)state;
    struct knobs knobs;
    struct error err = ERROR_INIT;
    assert_int_equal(knobs_read(&knobs, too_short, &err), HVD_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS is 3"));
    assert_int_equal(knobs_read(&knobs, wrong, &err), HVD_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "HOROVOD_CACHE_CAPACITY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors_name_the_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
