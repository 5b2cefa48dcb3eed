/* SPDX-License-Identifier: Apache-2.0 */
/* Whose rank a process is, by its environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/mpi_detect.h"
#include "node/room_test.h"

static void expect_launched(const char *environment, size_t length, enum mpi_kind given,
                            bool by_other)
{
    assert_int_equal(mpi_launched_by_other(environment, length, given, "job@1"), by_other);
}

#define ENVIRONMENT(text) text, sizeof(text) /* with the last NUL */

/* A process that was started by another launcher, somewhere below a worker. */
static void test_other_launchers(void **state)
{
    (void)state;
    expect_launched(ENVIRONMENT("A=1\0B=2"), MPI_NONE, false);
    expect_launched(ENVIRONMENT("A=1\0PMIX_NAMESPACE=x\0B=2"), MPI_NONE, true);
    expect_launched(ENVIRONMENT("PMIX_NAMESPACE=job@1"), MPI_PMIX, false);
    expect_launched(ENVIRONMENT("PMIX_NAMESPACE=job@11"), MPI_PMIX, true);
    expect_launched(ENVIRONMENT("PMIX_NAMESPACE=job@1"), MPI_PMI1, true);
    expect_launched(ENVIRONMENT("PMI_RANK=0\0PMI_FD=5"), MPI_PMI1, false);
    expect_launched(ENVIRONMENT("PMI_RANK=0\0PMI_FD=5"), MPI_PMIX, true);
    expect_launched(ENVIRONMENT("PMI_PORT=h:1"), MPI_NONE, true);
    expect_launched(ENVIRONMENT("XPMI_RANK=0\0PMI_RANKS=1\0PMIX_NAMESPACES="), MPI_NONE, false);
    expect_launched("PMI_RANK=0", 3, MPI_NONE, false); /* cut by a limit */
    expect_launched("", 0, MPI_NONE, false);
}

static void test_processes(void **state)
{
    (void)state;
    assert_false(mpi_process_launched_by_other(getpid(), MPI_NONE, ""));
    assert_false(mpi_process_launched_by_other(0, MPI_NONE, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_launchers),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
