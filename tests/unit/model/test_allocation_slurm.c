/* SPDX-License-Identifier: Apache-2.0 */
/* The environments below are those of a real Slurm 22.05, less what says nothing about hosts. */
#include "allocation_fixture.h"
#include "model/allocation/slurm.h"

#define BATCH "SLURM_PROCID=0\nSLURM_LOCALID=0\nSLURM_NODEID=0\nSLURMD_NODENAME=node1\n"
#define TWO "SLURM_JOB_NODELIST=node[1-2]\nSLURM_JOB_NUM_NODES=2\n"

static const struct expected_allocation jobs[] = {
    {"sbatch -N2",
     "SLURM_JOB_ID=1\n" BATCH TWO "SLURM_JOB_CPUS_PER_NODE=1(x2)\nSLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:1 node2:1", 0},
    {"sbatch -n3",
     "SLURM_JOB_ID=2\n" BATCH "SLURM_JOB_NODELIST=node1\nSLURM_JOB_CPUS_PER_NODE=3\n"
     "SLURM_NPROCS=3\nSLURM_NTASKS=3\nSLURM_TASKS_PER_NODE=3\n",
     NULL, "node1:3", 3},
    {"sbatch -n7",
     "SLURM_JOB_ID=3\n" BATCH TWO "SLURM_JOB_CPUS_PER_NODE=4,3\nSLURM_NPROCS=7\nSLURM_NTASKS=7\n"
     "SLURM_TASKS_PER_NODE=4,3\n",
     NULL, "node1:4 node2:3", 7},
    {"sbatch -N2 -c2",
     "SLURM_JOB_ID=4\n" BATCH TWO "SLURM_CPUS_PER_TASK=2\nSLURM_JOB_CPUS_PER_NODE=2(x2)\n"
     "SLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:1 node2:1", 0},
    {"sbatch -n3 -c2",
     "SLURM_JOB_ID=5\n" BATCH TWO "SLURM_CPUS_PER_TASK=2\nSLURM_JOB_CPUS_PER_NODE=4,2\n"
     "SLURM_NPROCS=3\nSLURM_NTASKS=3\nSLURM_TASKS_PER_NODE=2,1\n",
     NULL, "node1:2 node2:1", 3},
    {"sbatch -N4 --ntasks-per-node=2",
     "SLURM_JOB_ID=6\n" BATCH "SLURM_JOB_NODELIST=node[1-4]\nSLURM_JOB_CPUS_PER_NODE=2(x4)\n"
     "SLURM_NPROCS=8\nSLURM_NTASKS=8\nSLURM_NTASKS_PER_NODE=2\nSLURM_TASKS_PER_NODE=2(x4)\n",
     NULL, "node1:2 node2:2 node3:2 node4:2", 8},
    {"sbatch -N3 --exclusive",
     "SLURM_JOB_ID=8\n" BATCH "SLURM_JOB_NODELIST=node[1-3]\nSLURM_JOB_CPUS_PER_NODE=4(x3)\n"
     "SLURM_TASKS_PER_NODE=4(x3)\n",
     NULL, "node1:4 node2:4 node3:4", 0},
    {"sbatch -N3 --exclusive -c3",
     "SLURM_JOB_ID=8\n" BATCH "SLURM_JOB_NODELIST=node[1-3]\nSLURM_JOB_CPUS_PER_NODE=8(x2),2\n"
     "SLURM_CPUS_PER_TASK=3\nSLURM_TASKS_PER_NODE=2(x2),1\n",
     NULL, "node1:2 node2:2 node3:1", 0},
    {"sbatch -n9",
     "SLURM_JOB_ID=10\n" BATCH "SLURM_JOB_NODELIST=node[1-3]\nSLURM_JOB_CPUS_PER_NODE=4(x2),1\n"
     "SLURM_NPROCS=9\nSLURM_NTASKS=9\nSLURM_TASKS_PER_NODE=4(x2),1\n",
     NULL, "node1:4 node2:4 node3:1", 9},
    {"salloc -N2",
     "SLURM_JOB_ID=13\n" TWO "SLURM_JOB_CPUS_PER_NODE=1(x2)\n"
     "SLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:1 node2:1", 0},
    {"salloc -n10, with a shell on the first node",
     "SLURM_JOB_ID=8\n" BATCH TWO "SLURM_JOB_CPUS_PER_NODE=8,2\nSLURM_NPROCS=10\nSLURM_NTASKS=10\n"
     "SLURM_STEP_ID=4294967290\nSLURM_STEP_NODELIST=node1\nSLURM_STEP_NUM_TASKS=1\n"
     "SLURM_STEP_TASKS_PER_NODE=1\nSLURM_TASKS_PER_NODE=8,2\n",
     NULL, "node1:8 node2:2", 10},
    {"srun -n1 --overlap in salloc -N2: the counts of tasks are those of the step",
     "SLURM_JOB_ID=15\n" BATCH TWO "SLURM_JOB_CPUS_PER_NODE=1(x2)\nSLURM_NPROCS=1\n"
     "SLURM_NTASKS=1\nSLURM_STEP_ID=0\nSLURM_STEP_NODELIST=node1\nSLURM_STEP_NUM_TASKS=1\n"
     "SLURM_STEP_TASKS_PER_NODE=1\nSLURM_TASKS_PER_NODE=1\n",
     NULL, "node1:1 node2:1", 0},
    {"in the only worker of a job on two nodes: the counts of tasks are those of the worker's job",
     "SLURM_JOB_ID=15\n" BATCH TWO "SLURM_JOB_CPUS_PER_NODE=1(x2)\nSLURM_NPROCS=1\n"
     "SLURM_NTASKS=1\nHVDRUN_RANK=0\nSLURM_TASKS_PER_NODE=1\n",
     NULL, "node1:1 node2:1", 0},
    {"sbatch -N2 --gpus-per-node=2",
     "SLURM_JOB_ID=1\n" BATCH TWO "SLURM_GPUS_ON_NODE=2\nSLURM_GPUS_PER_NODE=2\n"
     "SLURM_JOB_CPUS_PER_NODE=1(x2)\nSLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:2 node2:2", 0},
    {"sbatch -N2 --gres=gpu:2",
     "SLURM_JOB_ID=4\n" BATCH TWO "SLURM_GPUS_ON_NODE=2\nSLURM_JOB_CPUS_PER_NODE=1(x2)\n"
     "SLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:2 node2:2", 0},
    {"the list of GPUs alone",
     "SLURM_JOB_ID=4\n" BATCH TWO "SLURM_JOB_GPUS=0,2-3\nSLURM_JOB_CPUS_PER_NODE=1(x2)\n"
     "SLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:3 node2:3", 0},
    {"sbatch -n4 --gpus-per-task=1: tasks were asked for",
     "SLURM_JOB_ID=5\n" BATCH "SLURM_JOB_NODELIST=node1\nSLURM_GPUS_ON_NODE=4\n"
     "SLURM_GPUS_PER_TASK=1\nSLURM_JOB_CPUS_PER_NODE=4\nSLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=4\n",
     NULL, "node1:4", 4},
    {"salloc -N2 --gpus-per-node, typed",
     "SLURM_JOB_ID=7\n" TWO "SLURM_GPUS_PER_NODE=a100:2,v100:1\nSLURM_JOB_CPUS_PER_NODE=1(x2)\n"
     "SLURM_TASKS_PER_NODE=1(x2)\n",
     NULL, "node1:3 node2:3", 0},
    {"--gpus=4 evenly",
     "SLURM_JOB_ID=7\n" BATCH TWO "SLURM_GPUS=a100:4\nSLURM_GPUS_ON_NODE=2\n"
     "SLURM_JOB_CPUS_PER_NODE=1(x2)\n",
     NULL, "node1:2 node2:2", 0},
    {"--gpus=4 --ntasks-per-gpu=2 on one node",
     "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=node7\nSLURM_GPUS=4\nSLURM_NTASKS_PER_GPU=2\n"
     "SLURM_JOB_CPUS_PER_NODE=8\n",
     NULL, "node7:8", 0},
    {"no GPUs in spite of the variable",
     "SLURM_JOB_ID=7\n" TWO "SLURM_GPUS_PER_NODE=0\nSLURM_JOB_CPUS_PER_NODE=3(x2)\n", NULL,
     "node1:3 node2:3", 0},
    {"after scontrol has written its script for a resized job",
     "SLURM_JOB_ID=21\nSLURM_JOB_NODELIST=node[1,4]\nSLURM_JOB_CPUS_PER_NODE=4(x2)\n", NULL,
     "node1:4 node4:4", 0},
    {"only --ntasks-per-node is known",
     "SLURM_JOB_ID=21\nSLURM_JOB_NODELIST=node[1,4]\nSLURM_NTASKS_PER_NODE=3\n", NULL,
     "node1:3 node4:3", 0},
    {"nothing but names, in old spelling",
     "SLURM_JOBID=21\nSLURM_NODELIST=r[1-2]n[3-4],gpu[008-010]x,login\n", NULL,
     "r1n3:1 r1n4:1 r2n3:1 r2n4:1 gpu008x:1 gpu009x:1 gpu010x:1 login:1", 0},
};

static void test_jobs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        expect_case(&jobs[i], ALLOCATION_SLURM);
}

static void test_what_else_is_said(void **state)
{
    (void)state;
    struct allocation got;
    struct error err;
    int result = parse_case("SLURM_JOB_ID=812\n" BATCH TWO
                            "SLURM_RESTART_COUNT=2\nSLURM_JOB_END_TIME=1795000000\n",
                            NULL, ALLOCATION_SLURM, &got, &err);
    assert_int_equal(result, 0);
    assert_string_equal(got.job_id, "812");
    assert_string_equal(got.here, "node1");
    assert_int_equal(got.restart_count, 2);
    assert_int_equal(got.end_s, 1795000000);
    allocation_destroy(&got);
    /* a login host, or a node that is not of this job */
    result = parse_case("SLURM_JOB_ID=812\n" TWO "SLURMD_NODENAME=node9\n", NULL, ALLOCATION_SLURM,
                        &got, &err);
    assert_int_equal(result, 0);
    assert_null(got.here);
    allocation_destroy(&got);
}

static void test_not_in_a_job(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "SLURM_JOB_ID=1\n", "SLURM_JOB_NODELIST=a\n",
                                        "SLURM_JOB_ID=\nSLURM_JOB_NODELIST=a\n",
                                        "SLURM_JOB_IDX=1\nXSLURM_JOB_NODELIST=a\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        AUTO_STRV struct strv env = STRV_INIT;
        const char *file = "x";
        env_of(lines[i], &env);
        assert_int_equal(allocation_detect(strv_items(&env), &file), ALLOCATION_NONE);
        assert_null(file);
    }
    assert_int_equal(allocation_detect(NULL, &(const char *){NULL}), ALLOCATION_NONE);
}

static void test_rubbish(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
    } bad[] = {
        {"SLURM_JOB_ID", "12a"},
        {"SLURM_JOB_ID", "-1"},
        {"SLURM_JOB_ID", "123456789012"},
        {"SLURM_JOB_NODELIST", "node[1-"},
        {"SLURM_JOB_NODELIST", "node[2-1]"},
        {"SLURM_JOB_NODELIST", "node[1-999999]"},
        {"SLURM_JOB_NODELIST", "(null)"},
        {"SLURM_JOB_NODELIST", ","},
        {"SLURM_JOB_NODELIST", "a,,b"},
        {"SLURM_JOB_NODELIST", "-oProxyCommand=x"},
        {"SLURM_JOB_NODELIST", "a b"},
        {"SLURM_JOB_NODELIST", "a\001b"},
        {"SLURM_NTASKS", "0"},
        {"SLURM_NTASKS", "many"},
        {"SLURM_NTASKS", "99999999999999999999"},
        {"SLURM_NTASKS_PER_NODE", "2x"},
        {"SLURM_TASKS_PER_NODE", "2(x3"},
        {"SLURM_TASKS_PER_NODE", "2(x1)"},
        {"SLURM_TASKS_PER_NODE", "2(x3)"},
        {"SLURM_TASKS_PER_NODE", "1,2,"},
        {"SLURM_STEP_ID", "batch"},
        {"SLURM_RESTART_COUNT", "-1"},
        {"SLURM_JOB_END_TIME", "Unknown"},
        {"SLURM_JOB_END_TIME", "9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *lines AUTO_FREE =
            mem_printf("%s=%s\nSLURM_JOB_ID=1\n" TWO "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2(x2)\n",
                       bad[i].name, bad[i].value);
        expect_refused(lines, NULL, ALLOCATION_SLURM, bad[i].name, "'");
    }
    static const struct {
        const char *name, *value;
    } bad_without_tasks[] = {
        {"SLURM_GPUS_PER_NODE", "a100:"},
        {"SLURM_GPUS_PER_NODE", "2,"},
        {"SLURM_GPUS_PER_NODE", "99999,99999"},
        {"SLURM_GPUS_ON_NODE", "x"},
        {"SLURM_GPUS", "-4"},
        {"SLURM_JOB_GPUS", "0-"},
        {"SLURM_NTASKS_PER_GPU", "0"},
        {"SLURM_CPUS_PER_TASK", "0"},
        {"SLURM_JOB_CPUS_PER_NODE", "8"},
        {"SLURM_JOB_CPUS_PER_NODE", "8(y2)"},
        {"SLURM_JOB_CPUS_PER_NODE", "2000000,1"},
        {"SLURM_JOB_CPUS_PER_NODE", "1(x99999999999)"},
    };
    for (size_t i = 0; i < sizeof(bad_without_tasks) / sizeof(bad_without_tasks[0]); i++) {
        char *lines AUTO_FREE = mem_printf("%s=%s\nSLURM_JOB_ID=1\n" TWO, bad_without_tasks[i].name,
                                           bad_without_tasks[i].value);
        expect_refused(lines, NULL, ALLOCATION_SLURM, bad_without_tasks[i].name, "'");
    }
}

/* Slurm gives 3 GPUs of 4 to the first of two nodes, and tells that only there. */
static void test_uneven_gpus(void **state)
{
    (void)state;
    expect_refused("SLURM_JOB_ID=3\n" BATCH TWO "SLURM_GPUS=4\nSLURM_GPUS_ON_NODE=3\n", NULL,
                   ALLOCATION_SLURM, "SLURM_GPUS: 4 GPUs on 2 nodes", "--gpus-per-node");
    expect_refused("SLURM_JOB_ID=3\n" TWO "SLURM_GPUS=4\n", NULL, ALLOCATION_SLURM, "SLURM_GPUS",
                   "--ntasks");
}

static void test_parts(void **state)
{
    (void)state;
    expect_refused("SLURM_JOB_ID=11\nSLURM_HET_SIZE=2\nSLURM_JOB_NODELIST=node1\n"
                   "SLURM_JOB_NODELIST_HET_GROUP_0=node1\n"
                   "SLURM_JOB_NODELIST_HET_GROUP_1=node[2-3]\n",
                   NULL, ALLOCATION_SLURM, "heterogeneous", "--scheduler none");
    expect_refused("SLURM_JOB_ID=18\nSLURM_HET_SIZE=2\nSLURM_JOB_NODELIST_HET_GROUP_0=node1\n",
                   NULL, ALLOCATION_SLURM, "Slurm job 18", "one part");
}

static void test_ten_thousand_nodes(void **state)
{
    (void)state;
    static const struct expected_allocation few[] = {
        {"a step of a range",
         "SLURM_JOB_ID=1\nSLURM_JOB_NODELIST=n[00001-10000]\nSLURM_NTASKS=79999\n"
         "SLURM_TASKS_PER_NODE=8(x9999),7\n",
         NULL, NULL, 79999}};
    struct allocation got;
    struct error err;
    int result = parse_case(few[0].env, NULL, ALLOCATION_SLURM, &got, &err);
    assert_int_equal(result, 0);
    assert_int_equal(got.hosts.count, 10000);
    assert_string_equal(got.hosts.items[9999].name, "n10000");
    assert_int_equal(got.hosts.items[9998].slots, 8);
    assert_int_equal(got.hosts.items[9999].slots, 7);
    assert_int_equal(hosts_slots(&got.hosts), 79999);
    allocation_destroy(&got);
    /* and one name after the other, as arbitrary nodes come */
    struct buf lines AUTO_BUF = BUF_INIT(1 << 20);
    buf_puts(&lines, "SLURM_JOB_ID=1\nSLURM_JOB_CPUS_PER_NODE=2(x10000)\nSLURM_JOB_NODELIST=x0");
    for (int i = 1; i < 10000; i++)
        buf_printf(&lines, ",x%d", 3 * i);
    assert_int_equal(parse_case(buf_text(&lines), NULL, ALLOCATION_SLURM, &got, &err), 0);
    assert_int_equal(got.hosts.count, 10000);
    allocation_destroy(&got);
}

static int twin_of(const char *lines)
{
    AUTO_STRV struct strv env = STRV_INIT;
    env_of(lines, &env);
    return allocation_slurm_twin(strv_items(&env));
}

static void test_twins(void **state)
{
    (void)state;
    assert_int_equal(twin_of("SLURM_STEP_ID=0\nSLURM_STEP_NUM_TASKS=3\nSLURM_PROCID=2\n"), 2);
    assert_int_equal(twin_of("SLURM_STEPID=7\nSLURM_STEP_NUM_TASKS=2\nSLURM_PROCID=0\n"), 0);
    assert_int_equal(twin_of("SLURM_STEP_ID=0\nSLURM_STEP_NUM_TASKS=1\nSLURM_PROCID=0\n"), -1);
    assert_int_equal(twin_of("SLURM_STEP_ID=4294967290\nSLURM_STEP_NUM_TASKS=2\nSLURM_PROCID=1\n"),
                     -1);
    assert_int_equal(twin_of("SLURM_STEP_NUM_TASKS=2\nSLURM_PROCID=1\n"), -1);
    assert_int_equal(twin_of("SLURM_STEP_ID=x\nSLURM_STEP_NUM_TASKS=2\nSLURM_PROCID=1\n"), -1);
    assert_int_equal(twin_of("SLURM_STEP_ID=0\nSLURM_STEP_NUM_TASKS=2\n"), -1);
    assert_int_equal(
        twin_of("HVDRUN_RANK=1\nSLURM_STEP_ID=0\nSLURM_STEP_NUM_TASKS=2\nSLURM_PROCID=1\n"), -1);
    assert_int_equal(twin_of(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_what_else_is_said),
        cmocka_unit_test(test_not_in_a_job),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_uneven_gpus),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_ten_thousand_nodes),
        cmocka_unit_test(test_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
