/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "model/env/scrub.h"

static void test_dropped_everywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"BASH_FUNC_module%%",
                                        "OLDPWD",
                                        "SSH_CONNECTION",
                                        "SSH_TTY",
                                        "_HOROVOD_SECRET_KEY",
                                        "PMI_RANK",
                                        "PMI_FD",
                                        "PMIX_NAMESPACE",
                                        "PMIX_RANK",
                                        "PMIX_SERVER_URI4",
                                        "PRTE_LAUNCHED",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_UNIVERSE_SIZE",
                                        "OMPI_MCA_orte_hnp_uri",
                                        "OMPI_MCA_ess",
                                        "OMPI_MCA_ess_base_vpid",
                                        "OMPI_MCA_pmix",
                                        "OMPI_MCA_num_procs",
                                        "OMPI_MCA_initial_wdir",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "HYDI_CONTROL_FD",
                                        "MV2_COMM_WORLD_RANK",
                                        "JSM_JSRUN_PORT",
                                        "FLUX_TASK_RANK",
                                        "HOROVOD_RANK",
                                        "HOROVOD_CROSS_SIZE",
                                        "HOROVOD_HOSTNAME",
                                        "HOROVOD_CONTROLLER",
                                        "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                        "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                        "HOROVOD_ELASTIC",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK",
                                        "ROLE_NAME",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "CROSS_RANK",
                                        "LOCAL_SIZE",
                                        "JAX_COORDINATOR_ADDRESS",
                                        "JAX_COORDINATOR_BIND_ADDRESS",
                                        "JAX_PROCESS_ID",
                                        "TF_CONFIG",
                                        "SLURM_PMIX_MAPPING_SERV",
                                        "SLURM_SRUN_COMM_HOST",
                                        "SLURM_PMI_KVS_NO_DUP_KEYS",
                                        "SLURM_STEP_LAUNCHER_PORT",
                                        "SLURM_PTY_WIN_ROW",
                                        "SLURM_CPU_BIND",
                                        "SLURM_CPU_BIND_LIST",
                                        "SLURM_TASK_PID",
                                        "PBS_TASKNUM",
                                        "LSF_PM_TASKID",
                                        "HVDRUN_RANK",
                                        "HVDRUN_LOCAL_SIZE",
                                        "HVDRUN_HOSTNAME",
                                        "HVDRUN_EPOCH",
                                        "HVDRUN_JOB_ID",
                                        "HVDRUN_KEY",
                                        "HVDRUN_NP",
                                        "HVDRUN_TIMEOUT"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (env_scrub_keeps(names[i], true, false) || env_scrub_keeps(names[i], false, false))
            fail_msg("%s is passed on", names[i]);
    }
}

static void test_kept_everywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"PATH",
                                        "TERM",
                                        "LANG",
                                        "LC_ALL",
                                        "TZ",
                                        "LD_LIBRARY_PATH",
                                        "PYTHONPATH",
                                        "VIRTUAL_ENV",
                                        "CONDA_PREFIX",
                                        "CONDA_DEFAULT_ENV",
                                        "HOMEBREW_PREFIX",
                                        "USERS",
                                        "TMPDIRS",
                                        "PWDX",
                                        "OMP_NUM_THREADS",
                                        "OMPI_MCA_btl",
                                        "OMPI_MCA_pml",
                                        "OMPI_MCA_pmix_base_verbose",
                                        "OMPI_MCA_orte_base_help_aggregate",
                                        "PMIX_MCA_gds",
                                        "PRTE_MCA_plm_verbose",
                                        "OMPI_ALLOW_RUN_AS_ROOT",
                                        "NCCL_DEBUG",
                                        "NCCL_SOCKET_IFNAME",
                                        "HOROVOD_FUSION_THRESHOLD",
                                        "HOROVOD_TIMELINE",
                                        "HOROVOD_GLOO_TIMEOUT_SECONDS",
                                        "MPIR_CVAR_CH4_NUM_VCIS",
                                        "RANKS",
                                        "MY_RANK",
                                        "SLURM_JOB_ID",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_JOB_GPUS_X",
                                        "SLURM_RESTART_COUNT",
                                        "PBS_JOBID",
                                        "PBS_NODENUM",
                                        "LSB_JOBID",
                                        "UCX_NET_DEVICES",
                                        "http_proxy",
                                        "no_proxy",
                                        "HVDRUN_TEST_SOMETHING",
                                        "PMIXER",
                                        "DISPLAYS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!env_scrub_keeps(names[i], true, false) || !env_scrub_keeps(names[i], false, false))
            fail_msg("%s is dropped", names[i]);
    }
}

static void test_kept_on_this_host_only(void **state)
{
    (void)state;
    static const char *const names[] = {"HOME",
                                        "USER",
                                        "LOGNAME",
                                        "SHELL",
                                        "MAIL",
                                        "PWD",
                                        "_",
                                        "TMP",
                                        "TEMP",
                                        "HOST",
                                        "XDG_SESSION_ID",
                                        "XDG_SESSION_TYPE",
                                        "XDG_VTNR",
                                        "KRB5CCNAME",
                                        "GPG_TTY",
                                        "TMUX_PANE",
                                        "INVOCATION_ID",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "GPU_DEVICE_ORDINAL",
                                        "DISPLAY",
                                        "XAUTHORITY",
                                        "WAYLAND_DISPLAY",
                                        "HOSTNAME",
                                        "TMPDIR",
                                        "XDG_RUNTIME_DIR",
                                        "DBUS_SESSION_BUS_ADDRESS",
                                        "SSH_AUTH_SOCK",
                                        "CUDA_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES",
                                        "ZE_AFFINITY_MASK",
                                        "JOB_COMPLETION_INDEX",
                                        "JOB_INDEX",
                                        "JOBSET_NAME",
                                        "POD_NAME",
                                        "POD_IP",
                                        "POD_IPS",
                                        "POD_UID",
                                        "NODE_NAME",
                                        "HOST_IP",
                                        "PET_NODE_RANK",
                                        "SLURMD_NODENAME",
                                        "SLURM_TOPOLOGY_ADDR_PATTERN",
                                        "SLURM_CPUS_ON_NODE",
                                        "SLURM_GPUS_ON_NODE",
                                        "SLURM_JOB_GPUS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!env_scrub_keeps(names[i], true, false))
            fail_msg("%s is dropped on this host", names[i]);
        if (env_scrub_keeps(names[i], false, false))
            fail_msg("%s is passed to another host", names[i]);
    }
}

/* Dropped wherever the workers are, but named among those of other hosts too (SSH_*). */
static void test_the_session_is_dropped_both_ways(void **state)
{
    (void)state;
    static const char *const names[] = {"BASH_FUNC_ml%%", "OLDPWD", "SSH_CLIENT", "SSH_ASKPASS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(env_scrub_keeps(names[i], false, false));
        assert_false(env_scrub_keeps(names[i], true, false));
    }
    assert_true(env_scrub_keeps("HOME", true, true)); /* --no-env */
    assert_false(env_scrub_keeps("HOME", false, true));
    assert_true(env_scrub_keeps("PATH", false, true));
    assert_false(env_scrub_keeps("TMPDIR", true, true));
}

static void test_for_another_host(void **state)
{
    (void)state;
    char *const passed[] = {(char *)"PATH=/opt/bin:/bin",
                            (char *)"HOME=/home/ann",
                            (char *)"USER=ann",
                            (char *)"TMPDIR=/scratch/ann",
                            (char *)"CUDA_VISIBLE_DEVICES=3",
                            (char *)"DISPLAY=:0",
                            (char *)"PWD=/home/ann/job",
                            (char *)"VIRTUAL_ENV=/home/ann/venv",
                            (char *)"LD_LIBRARY_PATH=/opt/lib",
                            (char *)"EMPTY=",
                            NULL};
    char *const own[] = {(char *)"PATH=/usr/bin",
                         (char *)"HOME=/home/there",
                         (char *)"LOGNAME=root",
                         (char *)"SHELL=/bin/sh",
                         (char *)"XDG_RUNTIME_DIR=/run/user/0",
                         (char *)"ROCR_VISIBLE_DEVICES=0,1",
                         (char *)"LD_LIBRARY_PATH=/image/lib",
                         (char *)"VIRTUAL_ENV=/other",
                         (char *)"SSH_CONNECTION=10.0.0.1 1 10.0.0.2 22",
                         (char *)"DISPLAY=:9",
                         (char *)"PWD=/home/there",
                         (char *)"SECRET=1",
                         (char *)"USER",
                         NULL};
    struct strv out AUTO_STRV = STRV_INIT;
    env_scrub_for_host(passed, own, &out);
    static const char *const expected[] = {"PATH=/opt/bin:/bin",
                                           "VIRTUAL_ENV=/home/ann/venv",
                                           "LD_LIBRARY_PATH=/opt/lib",
                                           "EMPTY=",
                                           "HOME=/home/there",
                                           "LOGNAME=root",
                                           "SHELL=/bin/sh",
                                           "XDG_RUNTIME_DIR=/run/user/0",
                                           "ROCR_VISIBLE_DEVICES=0,1"};
    assert_int_equal(out.count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < out.count; i++)
        assert_string_equal(out.items[i], expected[i]);
}

static void test_a_scheduler_is_kept(void **state)
{
    (void)state;
    char *const job[] = {(char *)"A=1",
                         (char *)"SLURM_JOB_ID=8",
                         (char *)"SLURM_TASK_PID=77",
                         (char *)"PBS_TASKNUM=1",
                         (char *)"SLURM_PROCID=0",
                         (char *)"SLURMX=1",
                         NULL};
    struct strv out AUTO_STRV = STRV_INIT;
    env_scrub(job, true, false, &out);
    assert_null(strv_env_get(&out, "SLURM_TASK_PID"));
    env_scrub_scheduler(job, &out);
    assert_int_equal(out.count, 6); /* each once */
    assert_string_equal(strv_env_get(&out, "SLURM_TASK_PID"), "77");
    assert_string_equal(strv_env_get(&out, "PBS_TASKNUM"), "1");
    env_scrub_scheduler(NULL, &out);
    /* an agent that srun has started knows better, another one nothing */
    char *const ssh[] = {(char *)"B=1", (char *)"SLURM_CONF=/x", NULL};
    env_scrub_own_scheduler(ssh, &out);
    env_scrub_own_scheduler(NULL, &out);
    assert_int_equal(out.count, 6);
    char *const step[] = {(char *)"SLURM_PROCID=3", (char *)"B=1", (char *)"SLURM_JOB_ID=8",
                          (char *)"SLURMX=2", NULL};
    env_scrub_own_scheduler(step, &out);
    assert_int_equal(out.count, 5);
    assert_string_equal(strv_env_get(&out, "SLURM_PROCID"), "3");
    assert_null(strv_env_get(&out, "SLURM_TASK_PID"));
    assert_string_equal(strv_env_get(&out, "SLURMX"), "1");
    assert_string_equal(strv_env_get(&out, "A"), "1");
    assert_null(strv_env_get(&out, "B"));
}

/* A container's image knows where its libraries are; the launcher has no such name. */
static void test_gaps_are_filled(void **state)
{
    (void)state;
    char *const passed[] = {(char *)"PATHS=1", (char *)"LD_LIBRARY_PATH_X=1", NULL};
    char *const own[] = {(char *)"LD_LIBRARY_PATH=/image/lib", (char *)"PATH=/usr/bin", NULL};
    struct strv out AUTO_STRV = STRV_INIT;
    strv_add(&out, "PATH=before"); /* it appends: what is there already says nothing */
    env_scrub_for_host(passed, own, &out);
    assert_int_equal(out.count, 5);
    assert_string_equal(out.items[3], "LD_LIBRARY_PATH=/image/lib");
    assert_string_equal(out.items[4], "PATH=/usr/bin");
    env_scrub_for_host(NULL, NULL, &out);
    assert_int_equal(out.count, 5);
}

static char *const shell[] = {
    (char *)"PATH=/bin", (char *)"RANK=3",   (char *)"EMPTY=",    (char *)"=odd=1",
    (char *)"noequals",  (char *)"LC_ALL=C", (char *)"TMPDIR=/t", (char *)"A_1=x=y",
    (char *)"A_2=z",     (char *)"A=",       (char *)"RANK=4",    NULL};

static void test_scrub(void **state)
{
    (void)state;
    struct strv here AUTO_STRV = STRV_INIT, there AUTO_STRV = STRV_INIT, few AUTO_STRV = STRV_INIT;
    env_scrub(shell, true, false, &here);
    assert_int_equal(here.count, 7);
    assert_string_equal(strv_env_get(&here, "PATH"), "/bin");
    assert_string_equal(strv_env_get(&here, "EMPTY"), "");
    assert_string_equal(strv_env_get(&here, "A_1"), "x=y");
    assert_string_equal(strv_env_get(&here, "TMPDIR"), "/t");
    env_scrub(shell, false, false, &there);
    assert_int_equal(there.count, 6);
    assert_null(strv_env_get(&there, "TMPDIR"));
    env_scrub(shell, true, true, &few);
    assert_int_equal(few.count, 2);
    assert_string_equal(few.items[0], "PATH=/bin");
    assert_string_equal(few.items[1], "LC_ALL=C");
    env_scrub(NULL, true, false, &few);
    assert_int_equal(few.count, 2);
}

static void test_specs(void **state)
{
    (void)state;
    struct strv out AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(env_spec_apply("X=1=2", shell, &out, &err), 1);
    assert_string_equal(strv_env_get(&out, "X"), "1=2");
    assert_int_equal(env_spec_apply("X=", shell, &out, &err), 1);
    assert_string_equal(strv_env_get(&out, "X"), "");
    assert_int_equal(env_spec_apply("RANK", shell, &out, &err), 1); /* though it is scrubbed */
    assert_string_equal(strv_env_get(&out, "RANK"), "3");
    assert_int_equal(env_spec_apply("A", shell, &out, &err), 1);
    assert_string_equal(strv_env_get(&out, "A"), "");
    assert_int_equal(env_spec_apply("noequals", shell, &out, &err), 0);
    assert_int_equal(env_spec_apply("MISSING", shell, &out, &err), 0);
    assert_int_equal(out.count, 3);
    assert_int_equal(env_spec_apply("A_*", shell, &out, &err), 2);
    assert_string_equal(strv_env_get(&out, "A_2"), "z");
    assert_int_equal(env_spec_apply("ZZ*", shell, &out, &err), 0);
    assert_int_equal(env_spec_apply("", shell, &out, &err), -1);
    assert_int_equal(env_spec_apply("=x", shell, &out, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.text, "'=x'"));
}

static int parse(const char *text, struct strv *out, struct error *err)
{
    return env_file_parse(text, strlen(text), "my.env", out, err);
}

static void test_env_file(void **state)
{
    (void)state;
    struct strv out AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    const char text[] = "# comment\n"
                        "\n"
                        "PLAIN=value\n"
                        "  export SHELL_STYLE=yes  \n"
                        "SPACES =\n" /* replaced below: see the errors */
                        "";
    assert_int_equal(parse(text, &out, &err), -1);
    assert_string_equal(err.text, "my.env:5: expected NAME=value");
    assert_string_equal(strv_env_get(&out, "SHELL_STYLE"), "yes");
    assert_int_equal(parse("A=1 # one\r\nB='x # \"y\\n'\nC=\"a\\tb\\\"\\$\\x\" # c\nD=\nE=a b  \n"
                           "F=a#b\nG=#c\nexport\tH=\"\"\nA=2",
                           &out, &err),
                     0);
    static const char *const expected[][2] = {
        {"A", "2"},   {"B", "x # \"y\\n"}, {"C", "a\tb\"$\\x"}, {"D", ""},
        {"E", "a b"}, {"F", "a#b"},        {"G", ""},           {"H", ""}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(strv_env_get(&out, expected[i][0]), expected[i][1]);
    assert_int_equal(env_file_parse(NULL, 0, "my.env", &out, &err), 0);
}

static void test_env_file_errors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"A=1\nno value here\n", "my.env:2: expected NAME=value"},
        {"A='open\nB=1\n", "my.env:1: the quote is never closed"},
        {"A=\"open\\\"", "my.env:1: the quote is never closed"},
        {"=x\n", "my.env:1: expected NAME=value"},
        {"1A=x\n", "my.env:1: expected NAME=value"},
        {"A B=x\n", "my.env:1: expected NAME=value"},
        {"export\n", "my.env:1: expected NAME=value"},
        {"\n\nA='x' y\n",
         "my.env:3: there is text after the value (put the whole value in quotes)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strv out AUTO_STRV = STRV_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(parse(cases[i][0], &out, &err), -1);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(err.status, STATUS_USAGE);
    }
    struct strv out AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(env_file_parse("A=1\nB=\0x\n", 9, "my.env", &out, &err), -1);
    assert_string_equal(err.text, "my.env:2: the line holds a NUL byte");
    size_t size = (2u << 20);
    char *big = malloc(size);
    memset(big, 'A', size);
    assert_int_equal(env_file_parse(big, size, "my.env", &out, &err), -1);
    assert_string_equal(err.text, "my.env:1: the line is longer than 1 MiB");
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropped_everywhere),
        cmocka_unit_test(test_kept_everywhere),
        cmocka_unit_test(test_kept_on_this_host_only),
        cmocka_unit_test(test_the_session_is_dropped_both_ways),
        cmocka_unit_test(test_for_another_host),
        cmocka_unit_test(test_a_scheduler_is_kept),
        cmocka_unit_test(test_gaps_are_filled),
        cmocka_unit_test(test_scrub),
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_env_file),
        cmocka_unit_test(test_env_file_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
