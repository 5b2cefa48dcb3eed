/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/env/rank_variables.h"
#include "model/settings/option.h"

/* A worker's variable must never be read as an option by a launcher inside the worker. */
static void test_names(void **state)
{
    (void)state;
    size_t own = 0;
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const char *name = rank_variables[i].name;
        assert_int_equal(option_of_variable(name, strlen(name)), OPT_TOTAL);
        assert_ptr_equal(rank_variable_find(name, strlen(name)), &rank_variables[i]);
        assert_int_equal(rank_variables[i].when == INHERITED,
                         strncmp(name, "SLURM_", 6) == 0 || strncmp(name, "PBS_", 4) == 0);
        own += strncmp(name, "HVDRUN_", 7) == 0;
    }
    assert_int_equal(own, 11);
    assert_non_null(rank_variable_find("RANK=5", 4));
    assert_null(rank_variable_find("RANKS", 5));
    assert_null(rank_variable_find("RAN", 3));
    assert_null(rank_variable_find("OMP_NUM_THREADS", 15));
    assert_true(rank_variable_is_firm("RANK", 4));
    assert_false(rank_variable_is_firm("LOCAL_RANK=0", 10));
    assert_false(rank_variable_is_firm("OMP_NUM_THREADS", 15));
}

static void test_kinds_of_mpi(void **state)
{
    (void)state;
    const struct rank_variable always = {.when = ALWAYS}, inherited = {.when = INHERITED};
    const struct rank_variable pmix = {.when = PMIX}, pmi1 = {.when = PMI1};
    const enum mpi_kind kinds[] = {MPI_NONE, MPI_PMIX, MPI_PMI1};
    for (size_t i = 0; i < 3; i++) {
        assert_true(rank_variable_applies(&always, kinds[i]));
        assert_true(rank_variable_applies(&inherited, kinds[i]));
        assert_int_equal(rank_variable_applies(&pmix, kinds[i]), kinds[i] == MPI_PMIX);
        assert_int_equal(rank_variable_applies(&pmi1, kinds[i]), kinds[i] == MPI_PMI1);
    }
}

static void test_names_that_differ(void **state)
{
    static const char *const differ[] = {"HVDRUN_",
                                         "HVDRUN_X",
                                         "PMI",
                                         "PMIX_RANK",
                                         "OMPI_X",
                                         "SLURM_JOB_ID",
                                         "SLURMD",
                                         "MPI_X",
                                         "JSM_X",
                                         "RANK",
                                         "LOCAL_RANK",
                                         "RANKS",
                                         "MY_RANK_X",
                                         "HOSTNAME",
                                         "XHOSTNAMEX",
                                         "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                         "JAX_PROCESS_ID",
                                         "KUBEFLOW_TRAINER_SERVER_TOKEN",
                                         "KUBEFLOW_TRAINER_SERVER_URL",
                                         "NCCL_RAS_ADDR",
                                         "TORCHELASTIC_ERROR_FILE",
                                         "TORCH_FR_DUMP_TEMP_FILE",
                                         "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"};
    static const char *const same[] = {"",
                                       "HVDRUN",
                                       "XPMI",
                                       "OMPI",
                                       "slurm_x",
                                       "XMPI_X",
                                       "JSM",
                                       "RAN",
                                       "rank",
                                       "HOST",
                                       "JAX_PROCESS_I",
                                       "PATH",
                                       "JAX_PROCESS_IDS",
                                       "XNCCL_RAS_ADDR",
                                       "NCCL_RAS_ADDR_",
                                       "NCCL_DEBUG"};
    (void)state;
    for (size_t i = 0; i < sizeof(differ) / sizeof(differ[0]); i++)
        assert_true(env_differs_by_rank(differ[i]));
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        assert_false(env_differs_by_rank(same[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_kinds_of_mpi),
        cmocka_unit_test(test_names_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
