/* SPDX-License-Identifier: Apache-2.0 */
/* A command about a job in Slurm: where it runs, and the srun that it becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/control_slurm.h"

static bool is_there(char *id, char *node, char *name)
{
    char *const env[] = {id, node, name, NULL};
    return control_slurm_is_there("41", env);
}

static void test_where(void **state)
{
    (void)state;
    char none[] = "HOME=/", id[] = "SLURM_JOB_ID=41", other[] = "SLURM_JOB_ID=4";
    char first[] = "SLURM_NODEID=0", second[] = "SLURM_NODEID=1", name[] = "SLURMD_NODENAME=n";
    assert_true(is_there(id, first, name));
    assert_false(is_there(none, none, none));   /* the login node */
    assert_false(is_there(id, none, none));     /* the same, below salloc */
    assert_false(is_there(id, second, name));   /* a worker on another node */
    assert_false(is_there(other, first, name)); /* another job */
}

static void expect_line(bool terminal, const char *const *expected)
{
    char *const argv[] = {"hvdrun", "top", "--slurm-job", "41", NULL};
    const struct control_words words = {.command = CONTROL_TOP, .slurm_job = "41"};
    char *option AUTO_FREE = NULL;
    const char **line = control_slurm_srun(&words, 4, argv, "/opt/hvdrun", terminal, &option);
    size_t at = 0;
    for (; expected[at] != NULL; at++)
        assert_string_equal(line[at], expected[at]);
    assert_null(line[at]);
    free(line);
}

static void test_srun(void **state)
{
    (void)state;
#define BEGIN                                                                                    \
    "srun", "--quiet", "--overlap", "--disable-status", "-N1", "--relative=0", "-n1", "--mem=0", \
        "--jobid=41"
#define END "/opt/hvdrun", "top", "--slurm-job", "41", NULL
    const char *const plain[] = {BEGIN, END};
    const char *const terminal[] = {BEGIN, "--pty", END};
    expect_line(false, plain);
    expect_line(true, terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_srun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
