/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/setup.h"

static const char *const *variables; /* of the test: name, value, name, value, ..., NULL */

static char *get(const char *name)
{
    for (const char *const *at = variables; *at != NULL; at += 2)
        if (strcmp(*at, name) == 0)
            return (char *)at[1];
    return NULL;
}

static enum hvd_status read_all(const char *const *values, struct engine_setup *setup,
                                struct error *err)
{
    variables = values;
    return setup_read(setup, get, err);
}

static void test_nothing(void **state)
{
    (void)state;
    struct engine_setup setup;
    struct error err = ERROR_INIT;
    const char *const none[] = {"HOROVOD_SIZE", "", NULL};
    assert_int_equal(read_all(none, &setup, &err), HVD_OK);
    assert_int_equal(setup.place.size, 0);
    assert_null(setup.address);
    assert_null(setup.interface);
    assert_int_equal(setup.timeout_ms, 30000);
}

static void test_everything(void **state)
{
    (void)state;
    struct engine_setup setup;
    struct error err = ERROR_INIT;
    const char *const all[] = {"HOROVOD_RANK",
                               "5",
                               "HOROVOD_SIZE",
                               "8",
                               "HOROVOD_LOCAL_RANK",
                               "1",
                               "HOROVOD_LOCAL_SIZE",
                               "4",
                               "HOROVOD_CROSS_RANK",
                               "1",
                               "HOROVOD_CROSS_SIZE",
                               "2",
                               "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                               "192.0.2.1",
                               "HOROVOD_GLOO_RENDEZVOUS_PORT",
                               "4000",
                               "HOROVOD_GLOO_IFACE",
                               "eth0",
                               "HOROVOD_GLOO_TIMEOUT_SECONDS",
                               "7",
                               "HOROVOD_MPI_THREADS_DISABLE",
                               "1",
                               NULL};
    assert_int_equal(read_all(all, &setup, &err), HVD_OK);
    const struct engine_place place = {5, 8, 1, 4, 1, 2};
    assert_memory_equal(&setup.place, &place, sizeof place);
    assert_string_equal(setup.address, "192.0.2.1");
    assert_int_equal(setup.port, 4000);
    assert_string_equal(setup.interface, "eth0");
    assert_int_equal(setup.timeout_ms, 7000);
    assert_true(setup.mpi_threads_disabled);
}

static void test_one_host_if_nothing_is_said(void **state)
{
    (void)state;
    struct engine_setup setup;
    struct error err = ERROR_INIT;
    const char *const two[] = {"HOROVOD_RANK", "1", "HOROVOD_SIZE", "2", NULL};
    assert_int_equal(read_all(two, &setup, &err), HVD_OK);
    const struct engine_place place = {1, 2, 1, 2, 0, 1};
    assert_memory_equal(&setup.place, &place, sizeof place);
}

static void test_errors_name_the_variable(void **state)
{
    (void)state;
    static const struct {
        const char *values[7];
        const char *text;
    } cases[] = {
        {{"HOROVOD_RANK", "2", "HOROVOD_SIZE", "2"}, "HOROVOD_RANK is 2"},
        {{"HOROVOD_RANK", "0"}, "HOROVOD_RANK is set and HOROVOD_SIZE is not"},
        {{"HOROVOD_SIZE", "2"}, "HOROVOD_SIZE is set and HOROVOD_RANK is not"},
        {{"HOROVOD_RANK", "x", "HOROVOD_SIZE", "2"}, "HOROVOD_RANK: "},
        {{"HOROVOD_RANK", "-1", "HOROVOD_SIZE", "2"}, "HOROVOD_RANK: "},
        {{"HOROVOD_RANK", "0", "HOROVOD_SIZE", "0"}, "HOROVOD_SIZE: "},
        {{"HOROVOD_GLOO_TIMEOUT_SECONDS", "0"}, "HOROVOD_GLOO_TIMEOUT_SECONDS: "},
        {{"HOROVOD_GLOO_RENDEZVOUS_PORT", "65536"}, "HOROVOD_GLOO_RENDEZVOUS_PORT: "},
        {{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "a"}, "HOROVOD_GLOO_RENDEZVOUS_PORT is not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct engine_setup setup;
        struct error err = ERROR_INIT;
        assert_int_equal(read_all(cases[i].values, &setup, &err), HVD_ERR_ARGUMENT);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_one_host_if_nothing_is_said),
        cmocka_unit_test(test_errors_name_the_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
