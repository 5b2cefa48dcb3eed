/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/load.h"

static const char *const *variables; /* of the test: name, value, ..., NULL */

static char *get(const char *name)
{
    for (const char *const *at = variables; *at != NULL; at += 2)
        if (strcmp(*at, name) == 0)
            return (char *)at[1];
    return NULL;
}

struct test_case {
    int size;
    const char *address;
    const char *values[7];
    const char *expected; /* the engine, or a part of the error */
};

static void check(const struct test_case *one, enum hvd_status expected)
{
    struct engine_setup setup = {.place.size = one->size, .address = one->address};
    struct error err = ERROR_INIT;
    const char *name = "";
    variables = one->values;
    assert_int_equal(engine_choose(&setup, get, &name, &err), expected);
    if (expected == HVD_OK)
        assert_string_equal(name, one->expected);
    else
        assert_non_null(strstr(err.text, one->expected));
}

static void test_choices(void **state)
{
    (void)state;
    static const struct test_case cases[] = {
        {0, NULL, {NULL}, "self"},
        {1, NULL, {NULL}, "self"},
        {4, "a", {NULL}, "gloo"},
        {4, "a", {"HOROVOD_CONTROLLER", "gloo"}, "gloo"},
        {4, "a", {"HOROVOD_CONTROLLER", "Gloo", "HOROVOD_CPU_OPERATIONS", "GLOO"}, "gloo"},
        {4, "a", {"HOROVOD_CPU_OPERATIONS", "gloo"}, "gloo"},
        {4, "a", {"HOROVOD_CONTROLLER", "mpi"}, "mpi"},
        {4, "a", {"HOROVOD_CPU_OPERATIONS", "mpi"}, "mpi"},
        {4, NULL, {"HOROVOD_CONTROLLER", "mpi"}, "mpi"},
        {0, NULL, {"HOROVOD_CONTROLLER", "mpi"}, "mpi"},
        {0, NULL, {"HOROVOD_CONTROLLER", "gloo"}, "self"},
        {1, "a", {"HOROVOD_CONTROLLER", "gloo"}, "self"},
        {1, "a", {NULL}, "self"},
        {0, NULL, {"HOROVOD_CONTROLLER", ""}, "self"},
        {0, NULL, {"OMPI_COMM_WORLD_SIZE", "4"}, "mpi"},
        {0, NULL, {"PMIX_RANK", "0"}, "mpi"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i], HVD_OK);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct test_case cases[] = {
        {4, "a", {"HOROVOD_CONTROLLER", "ccl"}, "HOROVOD_CONTROLLER is 'ccl'"},
        {4, "a", {"HOROVOD_CPU_OPERATIONS", "ccl"}, "HOROVOD_CPU_OPERATIONS is 'ccl'"},
        {4,
         "a",
         {"HOROVOD_CONTROLLER", "mpi", "HOROVOD_CPU_OPERATIONS", "gloo"},
         "HOROVOD_CONTROLLER is mpi and HOROVOD_CPU_OPERATIONS is gloo"},
        {4, NULL, {"HOROVOD_CONTROLLER", "gloo"}, "HOROVOD_GLOO_RENDEZVOUS_ADDR is not set"},
        {4, NULL, {NULL}, "HOROVOD_SIZE is 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i], HVD_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
