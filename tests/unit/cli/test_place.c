/* SPDX-License-Identifier: Apache-2.0 */
/* Where the hosts of a job come from, and how many ranks it has. */
#include "cli/place.h"

#include "cli_fixture.h"
#include "model/plan/mapping.h"

static char *const slurm[] = {(char *)"SLURM_JOB_ID=812", (char *)"SLURM_JOB_NODELIST=n[1-2]",
                              (char *)"SLURM_TASKS_PER_NODE=4,3", (char *)"SLURM_NTASKS=7", NULL};
static char *const wide[] = {(char *)"SLURM_JOB_ID=812",
                             (char *)"SLURM_JOB_NODELIST=n[1-2]",
                             (char *)"SLURM_JOB_CPUS_PER_NODE=8(x2)",
                             (char *)"SLURM_NTASKS=4",
                             (char *)"SLURM_STEP_ID=4294967291",
                             NULL};
static char *const bare[] = {NULL};

/* The plan as "n1:4 n2:3 np 7", or the error. The caller frees it. */
static char *planned(const char *text, char *const *env)
{
    struct command_line line;
    struct place place = {.allocated = false};
    struct error err = ERROR_INIT;
    struct buf out = BUF_INIT(4096);
    must_parse(text, NULL, &line);
    struct plan *plan = NULL;
    if (place_open(&line, env, &place, &err) == 0)
        plan = place_plan(&line, &place, false, &err);
    for (int i = 0; plan != NULL && i < plan->node_count; i++)
        buf_printf(&out, "%s:%d ", plan->nodes[i].name, plan->nodes[i].local_size);
    if (plan != NULL)
        buf_printf(&out, "np %d", plan->size);
    else
        buf_printf(&out, "%d %s", err.status, err.text);
    plan_destroy(plan);
    place_close(&place);
    command_line_destroy(&line);
    return buf_take(&out);
}

static void expect(const char *text, char *const *env, const char *expected)
{
    char *got AUTO_FREE = planned(text, env);
    if (strncmp(got, expected, strlen(expected)) != 0)
        fail_msg("'%s': '%s', expected '%s'", text, got, expected);
}

static void test_sources(void **state)
{
    (void)state;
    expect("-np 3 x", bare, "localhost:3 np 3");
    expect("-H a:2,b:1 x", bare, "a:2 b:1 np 3");
    expect("x", slurm, "n1:4 n2:3 np 7");
    expect("-np 5 x", slurm, "n1:4 n2:1 np 5");
    expect("-np 2 x : -np 3 y", slurm, "n1:4 n2:1 np 5");
    expect("--scheduler none -np 2 x", slurm, "localhost:2 np 2");
    expect("--scheduler none -H a:2 x", slurm, "a:2 np 2");
    expect("--scheduler slurm x", slurm, "n1:4 n2:3 np 7");
    expect("-H n2 x", slurm, "n2:3 np 3"); /* the tasks of the job are those of all of its hosts */
}

/* No list of tasks: slots are CPUs, but no more workers than tasks. */
static void test_fewer_tasks_than_slots(void **state)
{
    (void)state;
    expect("x", wide, "n1:4 np 4");
    expect("-np 16 x", wide, "n1:8 n2:8 np 16");
}

static void test_refusals(void **state)
{
    (void)state;
    expect("-np 8 x", slurm, "123 Slurm job 812: not enough slots: 8 ranks wanted, 7 slots found");
    expect("-H n3 x", slurm, "2 not in Slurm job 812 (n1, n2): n3;");
    expect("-H n1:9 x", slurm, "2 n1: 9 slots wanted");
    expect("--scheduler lsf x", slurm, "2 --scheduler: hvdrun does not run in a job of LSF");
    expect("--scheduler slurm x", bare, "2 --scheduler: hvdrun does not run in a job of Slurm");
    expect("-f /nope x", bare, "2 -f: cannot open /nope: No such file or directory");
    expect("--rankfile /nope x", bare,
           "2 --rankfile: cannot open /nope: No such file or directory");
    expect("--stdin 7 x", slurm, "2 --stdin: rank 7 does not exist; the job has ranks 0 to 6");
}

static void test_others_speak_for_us(void **state)
{
    (void)state;
    static char *const second[] = {(char *)"SLURM_JOB_ID=1",  (char *)"SLURM_JOB_NODELIST=a",
                                   (char *)"SLURM_STEP_ID=0", (char *)"SLURM_STEP_NUM_TASKS=2",
                                   (char *)"SLURM_PROCID=1",  NULL};
    char *got AUTO_FREE = planned("x", second);
    assert_string_equal(got, "2 ");
    expect("--scheduler none -np 1 x", second, "localhost:1 np 1");
}

static void test_slots_that_nobody_said(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char *const *env;
        bool vague;
    } cases[] = {{"-H a x", bare, true},   {"-H a:1,b x", bare, true}, {"-H a:1 x", bare, false},
                 {"-np 2 x", bare, false}, {"x", slurm, false},        {"-H n1 x", slurm, false},
                 {"x", bare, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct command_line line;
        struct place place = {.allocated = false};
        struct error err = ERROR_INIT;
        must_parse(cases[i].text, NULL, &line);
        assert_int_equal(place_open(&line, cases[i].env, &place, &err), 0);
        if (place_is_vague(&place) != cases[i].vague)
            fail_msg("'%s' is %svague", cases[i].text, cases[i].vague ? "not " : "");
        place_close(&place);
        command_line_destroy(&line);
    }
}

static void test_ranks_on_each_host(void **state)
{
    (void)state;
    expect("--map-by ppr:8:node:OVERSUBSCRIBE x", slurm, "n1:8 n2:8 np 16");
    expect("--map-by ppr:cpu:node x", bare, "localhost:");
    expect("--map-by ppr:gpu:node x", slurm, "n1:1 n2:1 np 2"); /* until the hosts have counted */
    expect("-H a:4,b --map-by ppr:auto:node x", bare, "a:4 b:1 np 5");
    expect("-H a,b --map-by ppr:cpu:node x", bare,
           "2 --map-by: hvdrun counts only the GPUs of other hosts, and only for a job that is not "
           "elastic; write the number of ranks on each host");
}

/* There they are the slots. */
static void test_ranks_on_each_host_of_an_elastic_job(void **state)
{
    (void)state;
    expect("--min-np 2 --map-by ppr:8:node:OVERSUBSCRIBE x", slurm, "n1:8 n2:8 np 16");
    expect("--max-restarts 2 --map-by ppr:3:node x", slurm, "n1:3 n2:3 np 6");
    expect("--max-restarts 2 --map-by ppr:3:node x", bare, "localhost:3 np 3");
    expect("--max-restarts 2 --map-by ppr:3:node -H a,b x", bare, "a:3 b:3 np 6");
    expect("--max-restarts 2 --map-by ppr:4:node x", slurm,
           "123 --map-by: 4 ranks do not fit on n2, which has 3 slots; give it more slots");
    expect("--max-restarts 2 --map-by ppr:gpu:node -H a x", bare, "2 --map-by: hvdrun counts only");
}

static void allows(const char *text, const char *expected)
{
    struct command_line line;
    struct error err = ERROR_INIT;
    must_parse(text, NULL, &line);
    int rc = place_check_elastic(&line, &err);
    if (rc != (expected[0] == '\0' ? 0 : -1) || strstr(err.text, expected) == NULL)
        fail_msg("'%s': '%s', expected '%s'", text, err.text, expected);
    command_line_destroy(&line);
}

static void test_mappings_of_an_elastic_job(void **state)
{
    (void)state;
    allows("--min-np 2 --map-by slot x", "");
    allows("--min-np 2 --map-by ppr:2:node:OVERSUBSCRIBE x", "");
    allows("--min-np 2 --map-by node x", "use --map-by slot or ppr:N:node (with --cpus-per-proc");
    allows("--min-np 2 --map-by ppr:2:node:PE=2 x", "use --map-by slot or ppr:N:node");
    allows("--host-discovery-script s --slots-per-host 2 --map-by ppr:2:node x", "");
    allows("--host-discovery-script s --slots-per-host 3 --map-by ppr:2:node x",
           "use --map-by slot with --slots-per-host");
    allows("--host-discovery-script s --map-by ppr:gpu:node x", "use --map-by slot with --slots");
    allows("--host-discovery-script s --map-by ppr:2:node x", "use --map-by slot with --slots-per");
}

/* Until the hosts are there, all that may take part are in the plan. */
static void test_a_late_plan_has_all_hosts(void **state)
{
    (void)state;
    struct command_line line;
    struct place place = {.allocated = false};
    struct error err = ERROR_INIT;
    must_parse("-np 8 -H a,b x", NULL, &line);
    assert_int_equal(place_open(&line, bare, &place, &err), 0);
    struct plan *plan = place_plan(&line, &place, true, &err);
    assert_non_null(plan);
    assert_int_equal(plan->node_count, 2);
    assert_int_equal(plan->size, 8);
    assert_false(place.request.oversubscribe); /* the later one is strict */
    assert_int_equal(place.request.np, 8);
    plan_destroy(plan);
    place_close(&place);
    command_line_destroy(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_fewer_tasks_than_slots),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_others_speak_for_us),
        cmocka_unit_test(test_slots_that_nobody_said),
        cmocka_unit_test(test_a_late_plan_has_all_hosts),
        cmocka_unit_test(test_ranks_on_each_host),
        cmocka_unit_test(test_ranks_on_each_host_of_an_elastic_job),
        cmocka_unit_test(test_mappings_of_an_elastic_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
