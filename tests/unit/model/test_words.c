/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/settings/words.h"

static void test_mpi_kinds(void **state)
{
    (void)state;
    assert_string_equal(mpi_kind_name(MPI_AUTO), "auto");
    assert_string_equal(mpi_kind_name(MPI_NONE), "none");
    assert_string_equal(mpi_kind_name(MPI_PMIX), "pmix");
    assert_string_equal(mpi_kind_name(MPI_PMI1), "pmi1");
}

static void test_bind_units(void **state)
{
    (void)state;
    assert_string_equal(bind_unit_name(BIND_NONE), "none");
    assert_string_equal(bind_unit_name(BIND_L3), "l3");
    assert_string_equal(bind_unit_name(BIND_GPU), "gpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_kinds),
        cmocka_unit_test(test_bind_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
