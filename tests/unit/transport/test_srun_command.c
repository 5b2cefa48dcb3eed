/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the environment of the srun that starts agents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "transport/srun/process.h"

static char *const nodes[] = {(char *)"node1", (char *)"gpu007", NULL};

static char *joined(const struct strv *words)
{
    struct buf text = BUF_INIT(65536);
    for (size_t i = 0; i < words->count; i++)
        buf_printf(&text, "%s%s", i > 0 ? " " : "", words->items[i]);
    return buf_take(&text);
}

static void expect_argv(const struct srun_options *options, const struct strv *arguments,
                        const char *expected)
{
    struct strv argv = STRV_INIT;
    const struct srun_command command = {
        .options = options, .nodes = nodes, .arguments = arguments, .agent_path = "/x/agent"};
    srun_command_argv(&command, &argv);
    char *text = joined(&argv);
    assert_string_equal(text, expected);
    free(text);
    strv_destroy(&argv);
}

static void test_all_options(void **state)
{
    struct srun_options options;
    (void)state;
    for (int i = 0; i < SRUN_OPTIONS; i++)
        options.has[i] = true;
    expect_argv(&options, NULL,
                "srun -N2 -n2 -w node1,gpu007 --ntasks-per-node=1 --export=ALL --overlap "
                "--kill-on-bad-exit=1 --no-kill --wait=0 --mpi=none --cpu-bind=none --mem=0 "
                "--input=none --chdir=/ --job-name=hvdrun-agent /x/agent --dial");
}

static void test_an_old_srun(void **state)
{
    const struct srun_options options = {.has = {[SRUN_CPU_BIND_OLD] = true}};
    const struct srun_options none = {.has = {false}};
    (void)state;
    expect_argv(&options, NULL, "srun -N2 -n2 -w node1,gpu007 --cpu_bind=none /x/agent --dial");
    expect_argv(&none, NULL, "srun -N2 -n2 -w node1,gpu007 /x/agent --dial");
}

/* They come last, so that they win. */
static void test_arguments_of_the_user(void **state)
{
    const struct srun_options options = {.has = {[SRUN_MPI] = true}};
    struct strv arguments = STRV_INIT;
    (void)state;
    strv_add(&arguments, "--bcast=/tmp/agent");
    strv_add(&arguments, "--mpi=pmix");
    expect_argv(&options, &arguments,
                "srun -N2 -n2 -w node1,gpu007 --mpi=none --bcast=/tmp/agent --mpi=pmix /x/agent "
                "--dial");
    strv_destroy(&arguments);
}

static void test_environment(void **state)
{
    static char *const from[] = {(char *)"PATH=/bin",
                                 (char *)"SLURM_NTASKS=8",
                                 (char *)"SLURM_JOB_ID=5",
                                 (char *)"SLURM_NTASKS_PER_NODE=2",
                                 (char *)"SLURM_NPROCS=8",
                                 (char *)"SLURM_TASKS_PER_NODE=2(x4)",
                                 (char *)"SLURM_CPU_BIND=none",
                                 (char *)"SLURM_CPU_BIND_LIST=",
                                 (char *)"TMPDIR=/tmp/of/me",
                                 (char *)"SLURM_GPUS_PER_TASK=1",
                                 (char *)"SLURM_CONF=/etc/s",
                                 (char *)"SLURM_CPUS_PER_TASK=4",
                                 (char *)"SLURM_NNODES=4",
                                 (char *)"SLURM_GPUS_PER_NODE=8",
                                 (char *)"HVDRUN_AGENT_KEY=x",
                                 (char *)"SLURM_MEM_PER_CPU=100",
                                 (char *)"SLURM_STEP_GRES=a",
                                 (char *)"SLURM_STEPMGR=node1",
                                 (char *)"TMPDIRS=kept",
                                 (char *)"no pair",
                                 NULL};
    static char *const addresses[] = {(char *)"10.0.0.1", (char *)"fd00::1", NULL};
    const struct srun_secrets secrets = {
        .addresses = addresses, .port = 4711, .key = "c0ffee", .job_id = "job-1"};
    struct strv env = STRV_INIT;
    (void)state;
    srun_command_env(from, &secrets, &env);
    char *text = joined(&env);
    assert_string_equal(text,
                        "PATH=/bin SLURM_JOB_ID=5 SLURM_CONF=/etc/s SLURM_NNODES=4 "
                        "SLURM_GPUS_PER_NODE=8 SLURM_STEPMGR=node1 TMPDIRS=kept no pair "
                        "HVDRUN_AGENT_DIAL=10.0.0.1:4711,[fd00::1]:4711 HVDRUN_AGENT_KEY=c0ffee "
                        "HVDRUN_AGENT_JOB=job-1");
    free(text);
    strv_destroy(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_options),
        cmocka_unit_test(test_an_old_srun),
        cmocka_unit_test(test_arguments_of_the_user),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
