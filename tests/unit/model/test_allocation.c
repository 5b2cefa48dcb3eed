/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other schedulers, as their manuals describe their variables and files, and what the user
 * names against what was given.
 */
#include "allocation_fixture.h"
#include "model/hosts/entry.h"

#define PBS "PBS_JOBID=814.head\nPBS_NODEFILE=/var/spool/pbs/aux/814\n"
#define LSF "LSB_JOBID=815\n"
#define SGE "JOB_ID=816\nPE_HOSTFILE=/opt/sge/spool/816/pe_hostfile\n"
#define POD "KUBERNETES_SERVICE_HOST=10.0.0.1\n"

static void test_pbs(void **state)
{
    (void)state;
    static const struct expected_allocation cases[] = {
        {"select=2:ncpus=4:mpiprocs=2", PBS, "n1.cluster\nn1.cluster\nn2.cluster\nn2.cluster\n",
         "n1.cluster:2 n2.cluster:2", 0},
        {"nodes in turn, blanks, no last newline", PBS "PBS_NP=3\n", "a\r\n b \n\na", "a:2 b:1", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_case(&cases[i], ALLOCATION_PBS);
    expect_refused(PBS, "a\nb c\n", ALLOCATION_PBS, "/var/spool/pbs/aux/814:2: 'b c'",
                   "not a host name");
    expect_refused(PBS, "\n# nothing\n", ALLOCATION_PBS, "/var/spool/pbs/aux/814", "no host");
    expect_refused(PBS, "", ALLOCATION_PBS, "/var/spool/pbs/aux/814", "no host");
}

static void test_lsf(void **state)
{
    (void)state;
    static const struct expected_allocation cases[] = {
        {"a file", LSF "LSB_DJOB_HOSTFILE=/tmp/815.hostfile\nLSB_MCPU_HOSTS=z 9\n", "a\na\nb\n",
         "a:2 b:1", 0},
        {"pairs", LSF "LSB_MCPU_HOSTS=hostA 4 hostB 2  hostA 1 \nLSB_HOSTS=z\n", NULL,
         "hostA:5 hostB:2", 0},
        {"names", LSF "LSB_HOSTS= a a b\n", NULL, "a:2 b:1", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_case(&cases[i], ALLOCATION_LSF);
    expect_refused(LSF "LSB_MCPU_HOSTS=a 4 b\n", NULL, ALLOCATION_LSF, "LSB_MCPU_HOSTS", "'b'");
    expect_refused(LSF "LSB_MCPU_HOSTS=a b\n", NULL, ALLOCATION_LSF, "LSB_MCPU_HOSTS", "'b'");
    expect_refused(LSF "LSB_MCPU_HOSTS=a +4\n", NULL, ALLOCATION_LSF, "LSB_MCPU_HOSTS", "'+4'");
    expect_refused(LSF "LSB_MCPU_HOSTS=a 0\n", NULL, ALLOCATION_LSF, "LSB_MCPU_HOSTS", "'0'");
    expect_refused(LSF "LSB_MCPU_HOSTS=a\001 4\n", NULL, ALLOCATION_LSF, "LSB_MCPU_HOSTS", "host");
    expect_refused(LSF "LSB_HOSTS=a -x\n", NULL, ALLOCATION_LSF, "LSB_HOSTS", "'-x'");
    expect_refused(LSF "LSB_HOSTS=  \n", NULL, ALLOCATION_LSF, "LSB_HOSTS", "no host");
}

static void test_sge(void **state)
{
    (void)state;
    static const struct expected_allocation cases[] = {
        {"two queues of one host", SGE "RESTARTED=0\n",
         "n1.cluster 4 all.q@n1.cluster UNDEFINED\nn2.cluster 2 all.q@n2.cluster <NULL>\n"
         "n1.cluster 1 gpu.q@n1.cluster 0,0\n",
         "n1.cluster:5 n2.cluster:2", 0},
    };
    expect_case(&cases[0], ALLOCATION_SGE);
    expect_refused(SGE, "a\n", ALLOCATION_SGE, "pe_hostfile:1: 'a'", "slot count");
    expect_refused(SGE, "a 2 q U\nb x q U\n", ALLOCATION_SGE, "pe_hostfile:2", "'x'");
    expect_refused(SGE "RESTARTED=yes\n", "a 2 q U\n", ALLOCATION_SGE, "RESTARTED", "'yes'");
    struct allocation got;
    struct error err;
    assert_int_equal(parse_case(SGE "RESTARTED=1\n", "a 2\n", ALLOCATION_SGE, &got, &err), 0);
    assert_int_equal(got.restart_count, 1);
    assert_string_equal(got.job_id, "816");
    allocation_destroy(&got);
}

static void test_kubernetes(void **state)
{
    (void)state;
    static const struct expected_allocation cases[] = {
        {"Open MPI", "K_MPI_JOB_ROLE=launcher\nOMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile\n",
         "pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2\n",
         "pi-worker-0.pi.default.svc:2 pi-worker-1.pi.default.svc:2", 0},
        {"Intel MPI", POD "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile\n", "a-worker-0.a:4\n",
         "a-worker-0.a:4", 0},
        {"MPICH, no count", POD "HYDRA_HOST_FILE=/etc/mpi/hostfile\n", "a\nb\n", "a:1? b:1?", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_case(&cases[i], ALLOCATION_KUBERNETES);
    expect_refused(POD "HYDRA_HOST_FILE=/etc/mpi/hostfile\n", "a slots=x\n", ALLOCATION_KUBERNETES,
                   "/etc/mpi/hostfile:1", "'x'");
    /* a user's own default hostfile is no allocation */
    AUTO_STRV struct strv env = STRV_INIT;
    const char *file = NULL;
    env_of("OMPI_MCA_orte_default_hostfile=/home/ann/hosts\nHYDRA_HOST_FILE=x\n", &env);
    assert_int_equal(allocation_detect(strv_items(&env), &file), ALLOCATION_NONE);
    assert_null(file);
}

/* Slurm's own qsub sets PBS's variables too. */
static void test_two_at_once(void **state)
{
    (void)state;
    AUTO_STRV struct strv env = STRV_INIT;
    const char *file = NULL;
    env_of(PBS "SLURM_JOB_ID=1\nSLURM_JOB_NODELIST=a\n" SGE, &env);
    assert_int_equal(allocation_detect(strv_items(&env), &file), ALLOCATION_SLURM);
    assert_null(file);
    assert_true(allocation_has(ALLOCATION_PBS, strv_items(&env), &file));
    assert_string_equal(file, "/var/spool/pbs/aux/814");
    assert_true(allocation_has(ALLOCATION_SGE, strv_items(&env), &file));
    assert_false(allocation_has(ALLOCATION_LSF, strv_items(&env), &file));
    assert_null(file);
    assert_false(allocation_has(ALLOCATION_NONE, strv_items(&env), &file));
    assert_string_equal(allocation_name(ALLOCATION_LSF), "LSF");
    assert_string_equal(allocation_name(ALLOCATION_NONE), "none");
    assert_non_null(strstr(allocation_needs(ALLOCATION_SLURM), "SLURM_JOB_NODELIST"));
}

static void test_a_nul_byte(void **state)
{
    (void)state;
    static const char bytes[] = "a\0b\n";
    char *const env[] = {(char *)"PBS_JOBID=1", (char *)"PBS_NODEFILE=f", NULL};
    struct allocation got = {.kind = ALLOCATION_NONE};
    struct error err = ERROR_INIT;
    assert_int_equal(
        allocation_parse(ALLOCATION_PBS, env, "f", bytes, sizeof(bytes) - 1, &got, &err), -1);
    assert_non_null(strstr(err.text, "f is not a text file"));
    allocation_destroy(&got);
}

/* The user's list against an allocation: the list afterwards, or the error. */
static void expect_checked(const char *lines, const char *file, const char *wanted,
                           bool oversubscribe, const char *expected)
{
    AUTO_STRV struct strv env = STRV_INIT;
    struct allocation got = {.kind = ALLOCATION_NONE};
    struct host_list hosts = {.count = 0};
    struct error err = ERROR_INIT;
    const char *path = NULL;
    env_of(lines, &env);
    enum allocation_kind kind = allocation_detect(strv_items(&env), &path);
    assert_int_equal(allocation_parse(kind, strv_items(&env), path, file,
                                      file == NULL ? 0 : strlen(file), &got, &err),
                     0);
    assert_int_equal(hosts_parse(wanted, &hosts, &err), 0);
    int result = allocation_check(&got, &hosts, oversubscribe, &err);
    char *text AUTO_FREE = result == 0 ? hosts_of(&hosts) : mem_strdup(err.text);
    if (result == 0 ? strcmp(text, expected) != 0 : strstr(text, expected) == NULL)
        fail_msg("%s: '%s', expected '%s'", wanted, text, expected);
    if (result < 0)
        assert_int_equal(err.status, STATUS_USAGE);
    hosts_destroy(&hosts);
    allocation_destroy(&got);
}

static void test_check(void **state)
{
    (void)state;
    static const char job[] = "SLURM_JOB_ID=812\nSLURM_JOB_NODELIST=node[1-6]\nSLURM_NTASKS=12\n"
                              "SLURM_TASKS_PER_NODE=2(x6)\nSLURMD_NODENAME=node3\n";
    expect_checked(job, NULL, "node2:1,node4", false, "node2:1 node4:2");
    expect_checked(job, NULL, "node2,node2", false, "node2:2?");
    expect_checked(job, NULL, "localhost", false, "localhost:2");
    expect_checked(job, NULL, "localhost:1,node3:1", false, "localhost:1 node3:1");
    expect_checked(job, NULL, "localhost:1,node3:2", false, "node3: 3 slots wanted, but ");
    expect_checked(job, NULL, "node2:3", true, "node2:3");
    expect_checked(job, NULL, "node2:3", false,
                   "node2: 3 slots wanted, but Slurm job 812 (node1, ");
    expect_checked(job, NULL, "node2:3", false, "has only 2 there; ask for fewer");
    expect_checked(job, NULL, "node2,node7:1,x", false,
                   "not in Slurm job 812 (node1, node2, node3, node4 and 2 more): node7, x; ");
    expect_checked(job, NULL, "x[1-9]", false, ": x1, x2, x3, x4 and 5 more; ");
    expect_checked(job, NULL, "node2.cluster", false, "not in Slurm job 812");
    expect_checked("SLURM_JOB_ID=8\nSLURM_JOB_NODELIST=node1\n", NULL, "localhost", false,
                   "not in Slurm job 8 (node1): localhost; ");
    /* elsewhere hosts are known by longer and shorter names */
    expect_checked(PBS, "n1.cluster\nn2.cluster\n", "N1,n2.cluster:1", false, "N1:1 n2.cluster:1");
    expect_checked(PBS, "n1\n", "n1.other", false, "n1.other:1");
    expect_checked(PBS, "n1.cluster\n", "n1.other", false, "not in PBS job 814.head (n1.cluster)");
    expect_checked(PBS, "10.0.0.1\n", "10.0.0.2", false, "not in PBS job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pbs),         cmocka_unit_test(test_lsf),
        cmocka_unit_test(test_sge),         cmocka_unit_test(test_kubernetes),
        cmocka_unit_test(test_two_at_once), cmocka_unit_test(test_a_nul_byte),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
