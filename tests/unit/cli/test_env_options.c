/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_fixture.h"

#include "cli/sources.h"
#include "model/env/rank_variables.h"

static int apply(char *const *env, struct settings *settings, struct strv *warnings,
                 struct error *err)
{
    *err = (struct error)ERROR_INIT;
    *warnings = (struct strv)STRV_INIT;
    settings_init(settings);
    return env_options_apply(env, settings, warnings, err);
}

static void test_values(void **state)
{
    (void)state;
    static char *env[] = {"HVDRUN_NP=4",
                          "HVDRUN_FUSION_THRESHOLD_MB=16",
                          "HVDRUN_STDIN=none",
                          "HVDRUN_AUTOTUNE=no",
                          "HVDRUN_NETWORK_INTERFACES=eth0,eth1",
                          "HVDRUN_LABEL=",
                          "PATH=/bin",
                          "NOT_AN_ASSIGNMENT",
                          "HVDRUN_NO_ENV=1",
                          NULL};
    struct settings settings;
    struct strv warnings;
    struct error err;
    assert_int_equal(apply(env, &settings, &warnings, &err), 0);
    assert_int_equal(settings.np, 4);
    assert_int_equal(settings.fusion_threshold_mb, 16);
    assert_int_equal(settings.stdin_, SET_RANK_NONE);
    assert_int_equal(settings.autotune, 0);
    assert_int_equal(settings.network_interfaces.count, 2);
    assert_true(settings.no_env);
    assert_false(settings_is_set(&settings, OPT_label));
    assert_int_equal(warnings.count, 0);
    settings_destroy(&settings);
}

/* horovodrun's own variables count, ours are stronger wherever they stand. */
static void test_horovod_names(void **state)
{
    (void)state;
    static char *env[] = {"HVDRUN_START_TIMEOUT=5", "HOROVOD_START_TIMEOUT=60",
                          "HOROVOD_ELASTIC_TIMEOUT=70", "HOROVOD_RANK=1", NULL};
    struct settings settings;
    struct strv warnings;
    struct error err;
    assert_int_equal(apply(env, &settings, &warnings, &err), 0);
    assert_int_equal(settings.start_timeout, 5000);
    assert_int_equal(settings.elastic_timeout, 70000);
    assert_string_equal(settings_place(&settings, OPT_elastic_timeout), "HOROVOD_ELASTIC_TIMEOUT");
    settings_destroy(&settings);
}

static void test_bad_value(void **state)
{
    (void)state;
    static char *env[] = {"HVDRUN_NP=many", NULL};
    struct settings settings;
    struct strv warnings;
    struct error err;
    assert_int_equal(apply(env, &settings, &warnings, &err), -1);
    assert_string_equal(err.text, "HVDRUN_NP: 'many' is not a whole number");
    assert_int_equal(err.status, STATUS_USAGE);
    settings_destroy(&settings);
}

static void test_unknown(void **state)
{
    (void)state;
    static char *env[] = {"HVDRUN_TIMOUT=5",     "HVDRUN_QQQQQQQQ=1", "HVDRUN_HELP=1",
                          "HVDRUN_RANK=0",       "HVDRUN_JOB_ID=7",   "HVDRUN_DEADLINE_FILE=/x",
                          "HVDRUN_LOCAL_SIZE=2", "HVDRUN_SOURCE=/x",  NULL};
    struct settings settings;
    struct strv warnings;
    struct error err;
    assert_int_equal(apply(env, &settings, &warnings, &err), 0);
    assert_int_equal(warnings.count, 3);
    assert_string_equal(warnings.items[0],
                        "the variable HVDRUN_TIMOUT is not an option of hvdrun: did "
                        "you mean 'HVDRUN_TIMEOUT'?");
    assert_string_equal(warnings.items[1],
                        "the variable HVDRUN_QQQQQQQQ is not an option of hvdrun");
    strv_destroy(&warnings);
    settings_destroy(&settings);
}

/* A hvdrun inside a worker of another one: no variable of the worker is an option, and each is
 * known so that it is no warning. */
static void test_worker_names(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const char *name = rank_variables[i].name;
        assert_int_equal(option_of_variable(name, strlen(name)), OPT_TOTAL);
        if (strncmp(name, "HVDRUN_", 7) != 0)
            continue;
        seen++;
        if (!option_variable_is_reserved(name, strlen(name)))
            fail_msg("%s is not in the list of reserved names", name);
    }
    assert_true(seen >= 5);
    for (int i = 0; i < OPT_TOTAL; i++) {
        char variable[OPTION_NAME_MAX];
        option_variable((enum option_id)i, variable);
        if (option_variable_is_reserved(variable, strlen(variable)))
            fail_msg("%s is an option and reserved", variable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_horovod_names),
        cmocka_unit_test(test_bad_value),    cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_worker_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
