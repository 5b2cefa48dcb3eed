/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of srun and slurmstepd as Slurm 22.05 prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "transport/exec/words.h"
#include "transport/srun/process.h"

/* "node1 node2|what is said", or "" */
static void expect_about(const char *line, const char *expected)
{
    struct strv nodes = STRV_INIT;
    struct buf text = BUF_INIT(65536);
    const char *said = srun_complaint_about(line, &nodes);
    for (size_t i = 0; said != NULL && i < nodes.count; i++)
        buf_printf(&text, "%s%s", i > 0 ? " " : "", nodes.items[i]);
    if (said != NULL)
        buf_printf(&text, "|%s", said);
    assert_string_equal(buf_text(&text), expected);
    buf_destroy(&text);
    strv_destroy(&nodes);
}

static void test_about(void **state)
{
    (void)state;
    expect_about("srun: error: node2: task 0: Exited with exit code 2",
                 "node2|task 0: Exited with exit code 2");
    expect_about("srun: error: node[1-2,07]: tasks 0-2: Killed",
                 "node1 node2 node07|tasks 0-2: Killed");
    expect_about("srun: error: a1,b[2-3]: tasks 0-2: Killed", "a1 b2 b3|tasks 0-2: Killed");
    expect_about("srun: error: b[2-3],a1: tasks 0-2: Killed", "b2 b3 a1|tasks 0-2: Killed");
    expect_about("srun: error: Node failure on node3", "node3|Node failure on node3");
    expect_about("srun: error: Task launch for StepId=5.0 failed on node node3: Communication "
                 "connection failure",
                 "node3|Task launch for StepId=5.0 failed on node node3: Communication connection "
                 "failure");
    expect_about("hvdrun-agent: cannot dial back from node3: cannot reach hvdrun",
                 "node3|cannot reach hvdrun");
    expect_about("hvdrun-agent: cannot dial back from n1: a: b", "n1|a: b");
}

static void test_about_nobody(void **state)
{
    static const char *const lines[] = {
        "",
        "srun: error: Unable to create step for job 5: Invalid job id specified",
        "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)",
        "srun: error: : task 0: Killed",
        "srun: error: node[3-1]: task 0: Killed",
        "srun: error: node[1-: task 0: Killed",
        "srun: error: two words: task 0: Killed",
        "srun: error: Node failure on ",
        "node2: task 0: Exited with exit code 2",
        "hvdrun-agent: cannot dial back from ",
        "srun: error: node[1-999999999999]: task 0: Killed"};
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        expect_about(lines[i], "");
}

static void test_is_end(void **state)
{
    (void)state;
    assert_true(srun_complaint_is_end("srun: forcing job termination"));
    assert_true(srun_complaint_is_end(
        "slurmstepd: error: *** STEP 12.0 ON node1 CANCELLED AT 2026-11-21T11:31:00 ***"));
    assert_true(srun_complaint_is_end(
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."));
    assert_false(srun_complaint_is_end("srun: error: node2: task 0: Killed"));
}

static void expect_known(const char *text, const char *part, const char *expected_line)
{
    char line[256];
    const char *why = srun_complaint_find(text, line, sizeof(line));
    assert_non_null(why);
    if (strstr(why, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, why);
    assert_string_equal(line, expected_line);
}

static void test_is_node_failure(void **state)
{
    (void)state;
    assert_true(srun_complaint_is_node_failure("Node failure on node3"));
    assert_false(srun_complaint_is_node_failure("tasks 0-2: Killed"));
}

static void test_find(void **state)
{
    char line[64];
    (void)state;
    expect_known("srun: error: node2: task 0: Exited with exit code 2\n"
                 "slurmstepd: error: execve(): /x/hvdrun-agent: No such file or directory\n",
                 "--bcast",
                 "slurmstepd: error: execve(): /x/hvdrun-agent: No such file or directory");
    expect_known("slurmstepd: error: execve(): Permission denied\n", "noexec",
                 "slurmstepd: error: execve(): Permission denied");
    expect_known("srun: error: Unable to create step for job 5: Requested node configuration is "
                 "not available\n",
                 "scontrol",
                 "srun: error: Unable to create step for job 5: Requested node configuration is "
                 "not available");
    expect_known("srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are "
                 "busy)",
                 "--overlap",
                 "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are "
                 "busy)");
    assert_null(srun_complaint_find("srun: error: something else\n", line, sizeof(line)));
    assert_null(srun_complaint_find("", line, sizeof(line)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_about),  cmocka_unit_test(test_about_nobody),
        cmocka_unit_test(test_is_end), cmocka_unit_test(test_is_node_failure),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
