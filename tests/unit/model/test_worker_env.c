/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The superset, variable by variable, for a plan with unequal nodes that was worked out by hand:
 *
 *   node a: ranks 0 1 2 3   node b: ranks 4 5 6 7   node c: ranks 8 9
 *   apps:   ./first (np 3: ranks 0-2), ./second (np 7: ranks 3-9)
 *
 * Local ranks 0 and 1 exist on three nodes (cross size 3), 2 and 3 on two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "model/env/scrub.h"
#include "model/env/worker.h"

static const int sizes[] = {4, 4, 2};
static const int app_np[] = {3, 7};
static const int node_ranks[] = {4, 5, 6, 7}, node_ranks_of_c[] = {8, 9};

static struct node_env_job job_of_node_b(const struct strv *base, const struct strv *knobs)
{
    return (struct node_env_job){.job_id = "hvdrun-a-77",
                                 .epoch = 3,
                                 .restart_count = 2,
                                 .max_restarts = 5,
                                 .size = 10,
                                 .node_count = 3,
                                 .node_index = 1,
                                 .node_ranks = node_ranks,
                                 .local_size = 4,
                                 .cpu_ranks = 4,
                                 .hostname = "b",
                                 .machine = "x86_64",
                                 .node_sizes = sizes,
                                 .node_names = "a,b,c",
                                 .rendezvous_addr = "127.0.0.1",
                                 .rendezvous_port = 4567,
                                 .iface = "eth0",
                                 .ifaces = "eth0,eth1",
                                 .master_addr = "10.0.0.1",
                                 .master_port = 29400,
                                 .jax_port = 29401,
                                 .runtime_dir = "/run/hvdrun-x",
                                 .deadline_file = "/run/hvdrun-x/deadline",
                                 .line_address = "@0001f",
                                 .cpus_allowed = 9,
                                 .base = base,
                                 .knobs = knobs,
                                 .app_count = 2,
                                 .app_np = app_np};
}

/* Rank 6: node b's third, of the second app; local rank 2 exists on a and b. */
static const struct worker_env_rank rank6 = {.rank = 6,
                                             .local_rank = 2,
                                             .cross_rank = 1,
                                             .cross_size = 2,
                                             .slot = 3,
                                             .mpi = MPI_NONE,
                                             .command = "./second",
                                             .arguments = "-x 1",
                                             .wdir = "/home/u",
                                             .progress_file = "/run/hvdrun-x/progress.6"};

/* The value of a name; fails the test when the name comes twice. */
static const char *value_of(char *const *items, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    for (; *items != NULL; items++) {
        if (strncmp(*items, name, length) == 0 && (*items)[length] == '=') {
            assert_null(found);
            found = *items + length + 1;
        }
    }
    return found;
}

static void assert_no_doubles(char *const *items)
{
    for (; *items != NULL; items++) {
        char *name = mem_strndup(*items, strcspn(*items, "="));
        assert_non_null(value_of(items, name));
        free(name);
    }
}

static size_t count_of(char *const *items)
{
    size_t count = 0;
    while (items[count] != NULL)
        count++;
    return count;
}

struct expected {
    const char *name, *value;
};

static void assert_values(char *const *items, const struct expected *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = value_of(items, list[i].name);
        if (value == NULL && list[i].value != NULL)
            fail_msg("%s is not set", list[i].name);
        if (value != NULL && list[i].value == NULL)
            fail_msg("%s is set to %s", list[i].name, value);
        if (value != NULL && strcmp(value, list[i].value) != 0)
            fail_msg("%s is %s instead of %s", list[i].name, value, list[i].value);
    }
}
#define ASSERT_VALUES(items, list) assert_values((items), (list), sizeof(list) / sizeof((list)[0]))

/* What every kind of worker gets. Nothing else: the test counts. */
static const struct expected everybody[] = {
    {"HVDRUN_RANK", "6"},
    {"HVDRUN_SIZE", "10"},
    {"HVDRUN_LOCAL_RANK", "2"},
    {"HVDRUN_LOCAL_SIZE", "4"},
    {"HVDRUN_HOSTNAME", "b"},
    {"HVDRUN_JOB_ID", "hvdrun-a-77"},
    {"HVDRUN_EPOCH", "3"},
    {"HVDRUN_SLOT", "3"}, /* the host's slot 1 is not used */
    {"HVDRUN_DEADLINE_FILE", "/run/hvdrun-x/deadline"},
    {"HVDRUN_PROGRESS_FILE", "/run/hvdrun-x/progress.6"},
    {"HVDRUN_LINE", "@0001f"},
    {"HOROVOD_HOSTNAME", "b"},
    {"HOROVOD_RANK", "6"},
    {"HOROVOD_SIZE", "10"},
    {"HOROVOD_LOCAL_RANK", "2"},
    {"HOROVOD_LOCAL_SIZE", "4"},
    {"HOROVOD_CROSS_RANK", "1"},
    {"HOROVOD_CROSS_SIZE", "2"},
    {"HOROVOD_CONTROLLER", "gloo"},
    {"HOROVOD_CPU_OPERATIONS", "gloo"},
    {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1"},
    {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4567"},
    {"HOROVOD_GLOO_IFACE", "eth0"},
    {"GLOO_SOCKET_IFNAME", "eth0"},
    {"NCCL_SOCKET_IFNAME", "eth0,eth1"},
    {"PYTHONUNBUFFERED", "1"},
    {"PYTHONFAULTHANDLER", "1"},
    {"RANK", "6"},
    {"WORLD_SIZE", "10"},
    {"LOCAL_RANK", "2"},
    {"LOCAL_WORLD_SIZE", "4"},
    {"GROUP_RANK", "1"},
    {"GROUP_WORLD_SIZE", "3"},
    {"ROLE_RANK", "6"},
    {"ROLE_WORLD_SIZE", "10"},
    {"ROLE_NAME", "default"},
    {"MASTER_ADDR", "10.0.0.1"},
    {"MASTER_PORT", "29400"},
    {"TORCHELASTIC_RESTART_COUNT", "2"},
    {"TORCHELASTIC_MAX_RESTARTS", "5"},
    {"TORCHELASTIC_RUN_ID", "hvdrun-a-77"},
    {"TORCHELASTIC_ERROR_FILE", "/run/hvdrun-x/error.3.6.json"},
    {"OMPI_MCA_orte_tmpdir_base", "/run/hvdrun-x"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
    {"CROSS_RANK", "1"},
    {"CROSS_SIZE", "3"},
    {"LOCAL_SIZE", "4"},
    {"JAX_COORDINATOR_ADDRESS", "10.0.0.1:29401"},
    {"JAX_PROCESS_ID", "6"},
    {"JAX_NUM_PROCESSES", "10"},
    {"OMPI_COMM_WORLD_RANK", "6"},
    {"OMPI_COMM_WORLD_SIZE", "10"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "2"},
    {"MPI_LOCALRANKID", "2"},
    {"MPI_LOCALNRANKS", "4"},
    {"OMP_NUM_THREADS", "2"}, /* 9 CPUs for 4 ranks */
    {"PWD", "/home/u"},
};
#define EVERYBODY (sizeof(everybody) / sizeof(everybody[0]))

static void test_superset(void **state)
{
    (void)state;
    struct node_env_job job = job_of_node_b(NULL, NULL);
    struct node_env *env = node_env_create(&job);
    struct worker_vars *vars = worker_env_rank(env, &rank6);
    char *const *items = worker_vars_items(vars);
    assert_no_doubles(items);
    ASSERT_VALUES(items, everybody);
    assert_int_equal(count_of(items), EVERYBODY);
    static const struct expected absent[] = {{"TORCHELASTIC_USE_AGENT_STORE", NULL},
                                             {"HOROVOD_ELASTIC", NULL},
                                             {"PMI_RANK", NULL},
                                             {"PRTE_LAUNCHED", NULL},
                                             {"JSM_JSRUN_PORT", NULL},
                                             {"SLURM_PROCID", NULL},
                                             {"OMPI_MCA_mpi_yield_when_idle", NULL},
                                             {"TF_CONFIG", NULL},
                                             {"CUDA_VISIBLE_DEVICES", NULL}};
    ASSERT_VALUES(items, absent);
    char *file = worker_env_error_file(&job, 6);
    assert_string_equal(file, value_of(items, "TORCHELASTIC_ERROR_FILE"));
    free(file);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

/* The last rank of the job, on the small node, as another env of the same process. */
static void test_small_node(void **state)
{
    (void)state;
    struct node_env_job job = job_of_node_b(NULL, NULL);
    job.node_index = 2;
    job.node_ranks = node_ranks_of_c;
    job.local_size = job.cpu_ranks = 2;
    job.hostname = "c";
    job.cpus_allowed = 1;
    struct node_env *env = node_env_create(&job);
    const struct worker_env_rank rank9 = {
        .rank = 9, .local_rank = 1, .cross_rank = 2, .cross_size = 3};
    struct worker_vars *vars = worker_env_rank(env, &rank9);
    static const struct expected expected[] = {
        {"HOROVOD_RANK", "9"},       {"HOROVOD_LOCAL_RANK", "1"}, {"HOROVOD_LOCAL_SIZE", "2"},
        {"HOROVOD_CROSS_RANK", "2"}, {"HOROVOD_CROSS_SIZE", "3"}, {"HOROVOD_HOSTNAME", "c"},
        {"GROUP_RANK", "2"},         {"CROSS_RANK", "2"},         {"LOCAL_WORLD_SIZE", "2"},
        {"OMP_NUM_THREADS", "1"},    {"MPI_LOCALNRANKS", "2"}};
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_pmix_kind(void **state)
{
    (void)state;
    struct node_env_job job = job_of_node_b(NULL, NULL);
    struct node_env *env = node_env_create(&job);
    char *const extra[] = {(char *)"PMIX_NAMESPACE=hvdrun-a-77@1", (char *)"PMIX_RANK=6",
                           (char *)"PRTE_LAUNCHED=yes", (char *)"rubbish", NULL};
    struct worker_env_rank rank = rank6;
    rank.mpi = MPI_PMIX;
    rank.extra = extra;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    char *const *items = worker_vars_items(vars);
    static const struct expected pmix[] = {{"OMPI_UNIVERSE_SIZE", "10"},
                                           {"OMPI_WORLD_SIZE", "10"},
                                           {"OMPI_WORLD_LOCAL_SIZE", "4"},
                                           {"OMPI_NUM_APP_CTX", "2"},
                                           {"OMPI_APP_CTX_NUM_PROCS", "3 7"},
                                           {"OMPI_FIRST_RANKS", "0 3"},
                                           {"OMPI_FILE_LOCATION", "/run/hvdrun-x"},
                                           {"OMPI_COMMAND", "./second"},
                                           {"OMPI_ARGV", "-x 1"},
                                           {"OMPI_MCA_num_procs", "10"},
                                           {"OMPI_MCA_initial_wdir", "/home/u"},
                                           {"OMPI_MCA_cpu_type", "x86_64"},
                                           {"OMPI_MCA_num_restarts", "2"},
                                           {"JSM_JSRUN_PORT", "1"},
                                           /* the PMIx room has the last word */
                                           {"PRTE_LAUNCHED", "yes"},
                                           {"PMIX_NAMESPACE", "hvdrun-a-77@1"},
                                           {"PMIX_RANK", "6"}};
    assert_no_doubles(items);
    ASSERT_VALUES(items, everybody);
    ASSERT_VALUES(items, pmix);
    assert_int_equal(count_of(items), EVERYBODY + sizeof(pmix) / sizeof(pmix[0]));
    for (size_t i = 0; items[i] != NULL; i++)
        assert_int_not_equal(strncmp(items[i], "PMI_", 4), 0);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_pmi1_kind(void **state)
{
    (void)state;
    struct node_env_job job = job_of_node_b(NULL, NULL);
    struct node_env *env = node_env_create(&job);
    char *const extra[] = {(char *)"PMI_FD=7", NULL};
    struct worker_env_rank rank = rank6;
    rank.mpi = MPI_PMI1;
    rank.extra = extra;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    char *const *items = worker_vars_items(vars);
    static const struct expected pmi[] = {{"PMI_RANK", "6"}, {"PMI_SIZE", "10"}, {"PMI_FD", "7"}};
    ASSERT_VALUES(items, pmi);
    assert_int_equal(count_of(items), EVERYBODY + 3);
    for (size_t i = 0; items[i] != NULL; i++)
        assert_int_not_equal(strncmp(items[i], "PMIX_", 5), 0);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_mpi_controller(void **state)
{
    (void)state;
    struct strv base AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT;
    strv_add(&base, "HOROVOD_CPU_OPERATIONS=gloo");
    struct node_env_job job = job_of_node_b(&base, NULL);
    job.mpi_controller = true;
    job.elastic = true;
    struct node_env *env = node_env_create(&job);
    struct worker_vars *vars = worker_env_rank(env, &rank6);
    static const struct expected expected[] = {{"HOROVOD_CONTROLLER", "mpi"},
                                               {"HOROVOD_CPU_OPERATIONS", NULL},
                                               {"HOROVOD_GLOO_RENDEZVOUS_ADDR", NULL},
                                               {"HOROVOD_GLOO_RENDEZVOUS_PORT", NULL},
                                               {"HOROVOD_ELASTIC", "1"},
                                               {"HOROVOD_RANK", "6"}};
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    /* even the user's word does not make the mix that crashes */
    strv_add(&user, "HOROVOD_CPU_OPERATIONS=gloo");
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    vars = worker_env_rank(env, &rank);
    assert_null(value_of(worker_vars_items(vars), "HOROVOD_CPU_OPERATIONS"));
    worker_vars_destroy(vars);
    strv_env_set(&user, "HOROVOD_CPU_OPERATIONS", "ccl");
    vars = worker_env_rank(env, &rank);
    assert_string_equal(value_of(worker_vars_items(vars), "HOROVOD_CPU_OPERATIONS"), "ccl");
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_precedence(void **state)
{
    (void)state;
    struct strv base AUTO_STRV = STRV_INIT, knobs AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT;
    static const char *const inherited[] = {"A=base",
                                            "A=second",
                                            "B=base",
                                            "C=base",
                                            "HOROVOD_CYCLE_TIME=9",
                                            "RANK=0",
                                            "ROLE_NAME=outer",
                                            "OMP_NUM_THREADS=16",
                                            "MASTER_ADDR=old",
                                            "NCCL_SOCKET_IFNAME=ib0",
                                            "HOROVOD_CPU_OPERATIONS=ccl",
                                            "PATH=/bin",
                                            "rubbish",
                                            "=C:=x",
                                            "PYTHONUNBUFFERED="};
    for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
        strv_add(&base, inherited[i]);
    strv_add(&knobs, "HOROVOD_CYCLE_TIME=5");
    strv_add(&knobs, "B=knob");
    static const char *const given[] = {"B=user",         "RANK=99",      "MASTER_PORT=1",
                                        "HVDRUN_SIZE=2",  "NEW=1",        "NEW=2",
                                        "SLURM_PROCID=5", "LOCAL_RANK=0", "ROLE_NAME=trainer"};
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        strv_add(&user, given[i]);
    struct node_env_job job = job_of_node_b(&base, &knobs);
    struct node_env *env = node_env_create(&job);
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    char *const *items = worker_vars_items(vars);
    static const struct expected expected[] = {
        {"A", "base"}, /* getenv() finds the first of two */
        {"B", "user"},
        {"C", "base"},
        {"NEW", "2"},
        {"PATH", "/bin"},
        {"HOROVOD_CYCLE_TIME", "5"},
        {"RANK", "6"},
        {"LOCAL_RANK", "0"}, /* -x wins */
        {"ROLE_NAME", "trainer"},
        {"HVDRUN_LOCAL_RANK", "2"},
        {"TORCHELASTIC_RUN_ID", "hvdrun-a-77"},
        {"HVDRUN_SIZE", "10"},
        {"OMP_NUM_THREADS", "16"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "1"},
        {"NCCL_SOCKET_IFNAME", "ib0"}, /* ours was only chosen, not asked for */
        {"HOROVOD_CPU_OPERATIONS", "gloo"},
        {"PYTHONUNBUFFERED", ""},
        {"SLURM_PROCID", NULL}};
    assert_no_doubles(items);
    ASSERT_VALUES(items, expected);
    for (size_t i = 0; items[i] != NULL; i++)
        assert_true(items[i][0] != '=' && strchr(items[i], '=') != NULL);
    worker_vars_destroy(vars);
    /* the same env serves a rank without the user's variables */
    vars = worker_env_rank(env, &rank6);
    assert_string_equal(value_of(worker_vars_items(vars), "B"), "knob");
    assert_null(value_of(worker_vars_items(vars), "NEW"));
    assert_string_equal(value_of(worker_vars_items(vars), "LOCAL_RANK"), "2");
    worker_vars_destroy(vars);
    node_env_destroy(env);
    job.ifaces_from_flag = true;
    env = node_env_create(&job);
    vars = worker_env_rank(env, &rank);
    assert_string_equal(value_of(worker_vars_items(vars), "NCCL_SOCKET_IFNAME"), "eth0,eth1");
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

/* Hints count only where nobody else has set the name. */
/* The status endpoint is ours only if nothing of another one is there. */
static void test_status(void **state)
{
    (void)state;
    static const char *const others[] = {"", "_URL=theirs", "_TOKEN=theirs", "_CA_CERT=theirs"};
    for (size_t i = 0; i < 2 * sizeof(others) / sizeof(others[0]); i++) {
        AUTO_STRV struct strv base = STRV_INIT, user = STRV_INIT;
        char *pair = mem_printf("KUBEFLOW_TRAINER_SERVER%s", others[i / 2]);
        strv_add_take(i % 2 == 0 ? &base : &user, pair);
        struct node_env_job job = job_of_node_b(&base, NULL);
        struct node_env *env = node_env_create(&job);
        struct worker_env_rank rank = rank6;
        rank.app_env = &user;
        rank.status_url = "http://127.0.0.1:1/progress/1.6";
        rank.status_token = "/run/token";
        struct worker_vars *vars = worker_env_rank(env, &rank);
        char *const *items = worker_vars_items(vars);
        const char *url = value_of(items, "KUBEFLOW_TRAINER_SERVER_URL");
        const char *token = value_of(items, "KUBEFLOW_TRAINER_SERVER_TOKEN");
        if (i < 2) {
            assert_string_equal(url, rank.status_url);
            assert_string_equal(token, rank.status_token);
        } else {
            assert_true(url == NULL || strcmp(url, "theirs") == 0);
            assert_true(token == NULL || strcmp(token, "theirs") == 0);
        }
        worker_vars_destroy(vars);
        node_env_destroy(env);
    }
}

static void test_hints(void **state)
{
    (void)state;
    AUTO_STRV struct strv base = STRV_INIT, user = STRV_INIT;
    strv_add(&base, "NCCL_IB_HCA=theirs");
    strv_add(&user, "UCX_NET_DEVICES=all");
    struct node_env_job job = job_of_node_b(&base, NULL);
    job.bound = true;
    struct node_env *env = node_env_create(&job);
    char *const hints[] = {(char *)"NCCL_IB_HCA=ours",  (char *)"UCX_NET_DEVICES=ours",
                           (char *)"OMP_NUM_THREADS=3", (char *)"RANK=9",
                           (char *)"OTHER=ours",        NULL};
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    rank.hints = hints;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    static const struct expected expected[] = {{"NCCL_IB_HCA", "theirs"},
                                               {"UCX_NET_DEVICES", "all"},
                                               {"OMP_NUM_THREADS", "3"},
                                               {"RANK", "6"},
                                               {"OTHER", "ours"}};
    assert_no_doubles(worker_vars_items(vars));
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    vars = worker_env_rank(env, &rank6); /* who is bound and has no hint has no default either */
    assert_null(value_of(worker_vars_items(vars), "OMP_NUM_THREADS"));
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_slurm_is_rewritten_only_when_inherited(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_PROCID",         "SLURM_LOCALID",
                                        "SLURM_NODEID",         "SLURM_NTASKS",
                                        "SLURM_NPROCS",         "SLURM_NTASKS_PER_NODE",
                                        "SLURM_GTIDS",          "SLURM_STEP_NUM_NODES",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_TASKS_PER_NODE", "SLURM_STEP_NODELIST",
                                        "SLURM_NNODES",         "PBS_NODENUM",
                                        "PBS_VNODENUM"};
    static const struct expected expected[] = {{"SLURM_PROCID", "6"},
                                               {"SLURM_LOCALID", "2"},
                                               {"SLURM_NODEID", "1"},
                                               {"SLURM_NTASKS", "10"},
                                               {"SLURM_NPROCS", "10"},
                                               {"SLURM_NTASKS_PER_NODE", "4"},
                                               {"SLURM_GTIDS", "4,5,6,7"},
                                               {"SLURM_STEP_NUM_NODES", "3"},
                                               {"SLURM_STEP_NUM_TASKS", "10"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2"},
                                               {"SLURM_TASKS_PER_NODE", "4(x2),2"},
                                               {"SLURM_STEP_NODELIST", "a,b,c"},
                                               {"SLURM_NNODES", "3"},
                                               {"PBS_NODENUM", "1"},
                                               {"PBS_VNODENUM", "6"},
                                               {"SLURM_JOB_NUM_NODES", "4"},
                                               {"SLURM_JOB_ID", "812"}};
    struct strv base AUTO_STRV = STRV_INIT;
    strv_add(&base, "SLURM_JOB_ID=812");
    strv_add(&base, "SLURM_JOB_NUM_NODES=4");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        strv_printf(&base, "%s=0", names[i]);
    struct node_env_job job = job_of_node_b(&base, NULL);
    struct node_env *env = node_env_create(&job);
    struct worker_vars *vars = worker_env_rank(env, &rank6);
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    node_env_destroy(env);
    /* what is not known is left out rather than wrong */
    job.node_sizes = NULL;
    job.node_names = NULL;
    env = node_env_create(&job);
    vars = worker_env_rank(env, &rank6);
    assert_null(value_of(worker_vars_items(vars), "SLURM_TASKS_PER_NODE"));
    assert_null(value_of(worker_vars_items(vars), "SLURM_STEP_NODELIST"));
    assert_string_equal(value_of(worker_vars_items(vars), "SLURM_PROCID"), "6");
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void assert_python_path(const char *folder, const char *base_pair, const char *user_pair,
                               const char *expected)
{
    struct strv base AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT, knobs AUTO_STRV = STRV_INIT;
    if (base_pair != NULL)
        strv_add(&base, base_pair);
    if (user_pair != NULL)
        strv_add(&user, user_pair);
    if (folder != NULL)
        strv_printf(&knobs, "HVDRUN_HOROVOD_PATH=%s", folder);
    struct node_env_job job = job_of_node_b(&base, &knobs);
    struct node_env *env = node_env_create(&job);
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    const char *found = value_of(worker_vars_items(vars), "PYTHONPATH");
    assert_string_equal(found == NULL ? "none" : found, expected);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

static void test_python_path(void **state)
{
    (void)state;
    assert_python_path(NULL, NULL, NULL, "none");
    assert_python_path(NULL, "PYTHONPATH=/a", NULL, "/a");
    assert_python_path("/p", NULL, NULL, "/p");
    assert_python_path("/p", "PYTHONPATH=", NULL, "/p");
    assert_python_path("/p", "PYTHONPATH=/a:/b", NULL, "/a:/b:/p");
    assert_python_path("/p", "PYTHONPATH=/a", "PYTHONPATH=/x", "/x:/p");
    assert_python_path("/p", "PYTHONPATH=/a", "PYTHONPATH=", "/p");
    assert_python_path("/p", "PYTHONPATH=/a:/p", NULL, "/a:/p"); /* hvdrun in a job of hvdrun */
    assert_python_path("/p", "PYTHONPATH=/p", NULL, "/p");
    assert_python_path("/p", "PYTHONPATH=/a/p", NULL, "/a/p:/p");
    assert_python_path(NULL, "HVDRUN_HOROVOD_PATH=/p", NULL, "none");
}

static void assert_networks(const struct node_env_job *job, const char *user_pair,
                            const struct expected *expected, size_t count)
{
    struct strv user AUTO_STRV = STRV_INIT;
    if (user_pair != NULL)
        strv_add(&user, user_pair);
    struct node_env *env = node_env_create(job);
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    struct worker_vars *vars = worker_env_rank(env, &rank);
    assert_no_doubles(worker_vars_items(vars));
    assert_values(worker_vars_items(vars), expected, count);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}
#define ASSERT_NETWORKS(job, user_pair, list) \
    assert_networks((job), (user_pair), (list), sizeof(list) / sizeof((list)[0]))

#define TCP_INCLUDE "OMPI_MCA_btl_tcp_if_include"
#define TCP_EXCLUDE "OMPI_MCA_btl_tcp_if_exclude"

/* Open MPI aborts when both of its settings are there, whoever gave them. */
static void test_networks_of_mpi(void **state)
{
    (void)state;
    static const struct expected none[] = {
        {TCP_INCLUDE, NULL}, {TCP_EXCLUDE, NULL}, {"FI_TCP_IFACE", NULL}};
    static const struct expected only[] = {{TCP_INCLUDE, "10.0.0.0/24"},
                                           {TCP_EXCLUDE, NULL},
                                           {"FI_TCP_IFACE", "eth0"},
                                           {"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", "eth0"}};
    static const struct expected off[] = {{TCP_INCLUDE, NULL},
                                          {TCP_EXCLUDE, "127.0.0.0/8,sppp,172.17.0.0/16"},
                                          {"FI_TCP_IFACE", NULL},
                                          {"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", NULL}};
    static const struct expected users_include[] = {{TCP_INCLUDE, "eth7"}, {TCP_EXCLUDE, NULL}};
    static const struct expected users_exclude[] = {{TCP_INCLUDE, NULL}, {TCP_EXCLUDE, "eth7"}};
    struct node_env_job job = job_of_node_b(NULL, NULL);
    ASSERT_NETWORKS(&job, NULL, none);
    job.unfit_subnets = "172.17.0.0/16";
    ASSERT_NETWORKS(&job, NULL, off);
    ASSERT_NETWORKS(&job, TCP_INCLUDE "=eth7", users_include);
    ASSERT_NETWORKS(&job, TCP_EXCLUDE "=eth7", users_exclude);
    job.subnets = "10.0.0.0/24";
    job.ifaces_from_flag = true;
    ASSERT_NETWORKS(&job, NULL, only);
    ASSERT_NETWORKS(&job, TCP_EXCLUDE "=eth7", users_exclude);
    struct strv base AUTO_STRV = STRV_INIT;
    strv_add(&base, TCP_EXCLUDE "=eth7");
    job.base = &base;
    ASSERT_NETWORKS(&job, NULL, users_exclude);
    strv_env_unset(&base, TCP_EXCLUDE);
    strv_add(&base, TCP_INCLUDE "=eth7");
    strv_add(&base, "FI_TCP_IFACE=eth7");
    static const struct expected inherited[] = {
        {TCP_INCLUDE, "eth7"}, {TCP_EXCLUDE, NULL}, {"FI_TCP_IFACE", "eth7"}};
    ASSERT_NETWORKS(&job, NULL, inherited);
}

static void test_folder(void **state)
{
    (void)state;
    struct strv base AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT;
    strv_add(&base, "PWD=/where/the/launcher/is");
    struct node_env_job job = job_of_node_b(&base, NULL);
    struct node_env *env = node_env_create(&job);
    static const char *const cases[][3] = {{"/home/u", NULL, "/home/u"}, /* folder, -x, PWD */
                                           {"/home/u", "PWD=/mine", "/mine"},
                                           {NULL, NULL, "/where/the/launcher/is"},
                                           {"relative", NULL, "/where/the/launcher/is"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct worker_env_rank rank = rank6;
        strv_destroy(&user);
        if (cases[i][1] != NULL)
            strv_add(&user, cases[i][1]);
        rank.wdir = cases[i][0];
        rank.app_env = &user;
        struct worker_vars *vars = worker_env_rank(env, &rank);
        assert_string_equal(value_of(worker_vars_items(vars), "PWD"), cases[i][2]);
        worker_vars_destroy(vars);
    }
    node_env_destroy(env);
}

static void test_what_the_job_does_not_have(void **state)
{
    (void)state;
    struct node_env_job job = {.job_id = "j",
                               .size = 1,
                               .node_count = 1,
                               .local_size = 1,
                               .hostname = "h",
                               .yield_when_idle = true};
    struct node_env *env = node_env_create(&job);
    const struct worker_env_rank rank = {.cross_size = 1, .mpi = MPI_PMIX};
    struct worker_vars *vars = worker_env_rank(env, &rank);
    static const struct expected expected[] = {{"HOROVOD_GLOO_RENDEZVOUS_ADDR", NULL},
                                               {"HOROVOD_GLOO_RENDEZVOUS_PORT", NULL},
                                               {"HOROVOD_GLOO_IFACE", NULL},
                                               {"NCCL_SOCKET_IFNAME", NULL},
                                               {"MASTER_ADDR", NULL},
                                               {"MASTER_PORT", NULL},
                                               {"JAX_COORDINATOR_ADDRESS", NULL},
                                               {"TORCHELASTIC_ERROR_FILE", NULL},
                                               {"OMPI_MCA_orte_tmpdir_base", NULL},
                                               {"OMPI_FILE_LOCATION", NULL},
                                               {"OMPI_COMMAND", NULL},
                                               {"OMP_NUM_THREADS", NULL},
                                               {"no_proxy", NULL},
                                               {"OMPI_MCA_mpi_yield_when_idle", "1"},
                                               {"RANK", "0"}};
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    node_env_destroy(env);
    job.master_addr = "fe80::1";
    job.jax_port = 5;
    env = node_env_create(&job);
    vars = worker_env_rank(env, &rank);
    assert_string_equal(value_of(worker_vars_items(vars), "JAX_COORDINATOR_ADDRESS"),
                        "[fe80::1]:5");
    assert_string_equal(value_of(worker_vars_items(vars), "MASTER_ADDR"), "fe80::1");
    worker_vars_destroy(vars);
    node_env_destroy(env);
    node_env_destroy(NULL);
    worker_vars_destroy(NULL);
}

/* A large environment and many ranks: every rank its own numbers, all others shared. */
static void test_many(void **state)
{
    (void)state;
    struct strv base AUTO_STRV = STRV_INIT;
    for (int i = 0; i < 2000; i++)
        strv_printf(&base, "VARIABLE_%d=%d", i, i);
    struct node_env_job job = job_of_node_b(&base, NULL);
    int ranks[1000];
    for (int i = 0; i < 1000; i++)
        ranks[i] = 4 + i;
    job.local_size = 1000;
    job.node_ranks = ranks;
    struct node_env *env = node_env_create(&job);
    struct worker_vars *vars[1000];
    for (int i = 0; i < 1000; i++) {
        const struct worker_env_rank rank = {.rank = 4 + i, .local_rank = i, .cross_size = 1};
        vars[i] = worker_env_rank(env, &rank);
    }
    for (int i = 0; i < 1000; i += 333) {
        char text[16];
        snprintf(text, sizeof(text), "%d", 4 + i);
        assert_string_equal(value_of(worker_vars_items(vars[i]), "RANK"), text);
        assert_string_equal(value_of(worker_vars_items(vars[i]), "VARIABLE_1999"), "1999");
    }
    for (int i = 0; i < 1000; i++)
        worker_vars_destroy(vars[i]);
    node_env_destroy(env);
}

/* --keep-scheduler-env: as if they were no variables of ours. */
static void test_a_scheduler_is_kept(void **state)
{
    (void)state;
    static const struct expected expected[] = {{"SLURM_PROCID", "0"},
                                               {"SLURM_NTASKS", "5"},
                                               {"SLURM_LOCALID", NULL},
                                               {"PBS_NODENUM", "0"},
                                               {"RANK", "6"}};
    struct strv base AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT;
    strv_add(&base, "SLURM_PROCID=0");
    strv_add(&base, "SLURM_NTASKS=4");
    strv_add(&base, "PBS_NODENUM=0");
    strv_add(&base, "RANK=0");
    strv_add(&user, "SLURM_NTASKS=5");
    struct node_env_job job = job_of_node_b(&base, NULL);
    job.keep_scheduler_env = true;
    struct worker_env_rank rank = rank6;
    rank.app_env = &user;
    struct node_env *env = node_env_create(&job);
    struct worker_vars *vars = worker_env_rank(env, &rank);
    ASSERT_VALUES(worker_vars_items(vars), expected);
    worker_vars_destroy(vars);
    node_env_destroy(env);
}

/* docs/environment.md names every variable. */
static void test_documented(void **state)
{
    (void)state;
    const char *source = getenv("HVDRUN_SOURCE");
    if (source == NULL)
        skip();
    char *path AUTO_FREE = mem_printf("%s/docs/environment.md", source);
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    struct error err = ERROR_INIT;
    assert_int_equal(fd_read_file(path, &text, &err), 0);
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        if (strstr(buf_text(&text), rank_variables[i].name) == NULL)
            fail_msg("docs/environment.md does not name %s", rank_variables[i].name);
    }
    for (size_t i = 0; i < EVERYBODY; i++) {
        if (strstr(buf_text(&text), everybody[i].name) == NULL)
            fail_msg("docs/environment.md does not name %s", everybody[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_superset),
        cmocka_unit_test(test_small_node),
        cmocka_unit_test(test_pmix_kind),
        cmocka_unit_test(test_pmi1_kind),
        cmocka_unit_test(test_mpi_controller),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_slurm_is_rewritten_only_when_inherited),
        cmocka_unit_test(test_python_path),
        cmocka_unit_test(test_networks_of_mpi),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_what_the_job_does_not_have),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_a_scheduler_is_kept),
        cmocka_unit_test(test_documented),
        cmocka_unit_test(test_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
