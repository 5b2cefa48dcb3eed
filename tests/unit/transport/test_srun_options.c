/* SPDX-License-Identifier: Apache-2.0 */
/* What srun can do, as the --help of several versions tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "transport/srun/process.h"

/* Lines as Slurm prints them; other lines of the same help are left out. */
static const char slurm_22_05[] =
    "Usage: srun [OPTIONS(0)... [executable(0) [args(0)...]]]\n"
    "Parallel run options:\n"
    "  -D, --chdir=path            change remote current working directory\n"
    "      --export=env_vars|NONE  environment variables passed to launcher with\n"
    "  -i, --input=in              location of stdin redirection\n"
    "  -J, --job-name=jobname      name of job\n"
    "  -k, --no-kill               do not kill job on node failure\n"
    "  -K, --kill-on-bad-exit      kill the job if any task terminates with a\n"
    "      --mpi=type              type of MPI being used\n"
    "      --ntasks-per-node=n     number of tasks to invoke on each node\n"
    "      --overlap               Allow other steps to overlap this step\n"
    "  -W, --wait=sec              seconds to wait after first task exits\n"
    "      --mem=MB                minimum amount of real memory\n"
    "      --mem-per-cpu=MB        maximum amount of real memory per allocated\n"
    "                              --mem >= --mem-per-cpu if --mem is specified.\n"
    "  -w, --nodelist=hosts...     request a specific list of hosts\n";

static const char slurm_with_affinity[] =
    "  -w, --nodelist=hosts...     request a specific list of hosts\n"
    "      --cpu-bind=             Bind tasks to CPUs\n"
    "                              (see \"--cpu-bind=help\" for options)\n"
    "      --overlap[=force]       Allow other steps to overlap this step\n";

static const char slurm_17_11[] =
    "  -w, --nodelist=hosts...     request a specific list of hosts\n"
    "      --cpu_bind=             Bind tasks to CPUs\n"
    "      --mpi=type              type of MPI being used\n"
    "      --mem-per-cpu=MB        maximum amount of real memory per allocated\n"
    "  -W, --wait=sec              seconds to wait after first task exits\n";

static void test_of_slurm_22_05(void **state)
{
    struct srun_options options;
    (void)state;
    assert_true(srun_options_parse(slurm_22_05, &options));
    for (int i = 0; i < SRUN_OPTIONS; i++)
        assert_int_equal(options.has[i], i != SRUN_CPU_BIND && i != SRUN_CPU_BIND_OLD);
}

static void test_binding(void **state)
{
    struct srun_options options;
    (void)state;
    assert_true(srun_options_parse(slurm_with_affinity, &options));
    assert_true(options.has[SRUN_CPU_BIND]);
    assert_false(options.has[SRUN_CPU_BIND_OLD]);
    assert_true(options.has[SRUN_OVERLAP]);
    assert_false(options.has[SRUN_WAIT]);
}

static void test_of_slurm_17_11(void **state)
{
    struct srun_options options;
    (void)state;
    assert_true(srun_options_parse(slurm_17_11, &options));
    assert_true(options.has[SRUN_CPU_BIND_OLD]);
    assert_false(options.has[SRUN_CPU_BIND]);
    assert_false(options.has[SRUN_OVERLAP]);
    assert_false(options.has[SRUN_MEM]); /* --mem-per-cpu is another one */
    assert_true(options.has[SRUN_MPI]);
}

static void test_no_help(void **state)
{
    static const char *const texts[] = {"",
                                        "srun: fatal: Could not establish a configuration source\n",
                                        "--overlap",
                                        "--",
                                        "--nodelist-of-something --overlap",
                                        "a--nodelist"};
    struct srun_options options;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(&options, 1, sizeof(options));
        assert_false(srun_options_parse(texts[i], &options));
        for (int j = 0; j < SRUN_OPTIONS; j++)
            assert_false(options.has[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_slurm_22_05),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_of_slurm_17_11),
        cmocka_unit_test(test_no_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
