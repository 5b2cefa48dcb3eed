/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and files of MPI libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/settings/mpi_names.h"

static void test_files(void **state)
{
    (void)state;
    assert_true(mpi_names_library("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4"));
    assert_true(mpi_names_library("libmpich.so.12"));
    assert_true(mpi_names_inside("/l/libmpi.so.40"));
    assert_true(mpi_names_inside("/l/openmpi3/mca_pml_ob1.so"));
    assert_true(mpi_names_inside("/l/libuct_ib_mlx5.so.0"));
    assert_false(mpi_names_library("/l/libopen-pal.so.40"));
    assert_false(mpi_names_library("/x/libmpi_solver.so"));
    assert_false(mpi_names_library("/x/libmpi.so/train"));
    assert_false(mpi_names_inside("/x/libmpi_solver.so"));
    assert_false(mpi_names_inside("/x/libucode.so"));
    assert_false(mpi_names_inside("/l/openmpi3/mca_op_avx.so"));
    assert_false(mpi_names_inside("/x/mca_simulation"));
    assert_false(mpi_names_inside(""));
}

static void test_functions(void **state)
{
    (void)state;
    assert_string_equal(mpi_names_call("PMPI_Recv"), "MPI_Recv");
    assert_string_equal(mpi_names_call("MPIX_Start"), "MPIX_Start");
    assert_string_equal(mpi_names_call("pmpi_recv_"), "mpi_recv_");
    assert_null(mpi_names_call("mpi_solve"));
    assert_null(mpi_names_call("MPI_recv"));
    assert_null(mpi_names_call("ompi_wait"));
    assert_null(mpi_names_call(""));
    assert_null(mpi_names_call("P"));
    assert_true(mpi_names_waits("PMPI_Alltoallv") && mpi_names_waits("mpi_recv_"));
    assert_false(mpi_names_waits("MPI_Test") || mpi_names_waits("MPI_Recv_init"));
    assert_true(mpi_names_leaves_job("MPI_File_open") && mpi_names_leaves_job("PMPI_Comm_accept"));
    assert_false(mpi_names_leaves_job("MPI_Barrier"));
    assert_true(mpi_names_meets_job("PMPI_Comm_accept") && !mpi_names_meets_job("MPI_File_open"));
    assert_false(mpi_names_leaves_job("MPI_Comm_disconnect"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
