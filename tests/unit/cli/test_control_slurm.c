/* SPDX-License-Identifier: Apache-2.0 */
/* A command about a job in Slurm: where it runs, and the srun that it becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/tree.h"
#include "cli/control_slurm.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "node/runtime_dir.h"

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

/* A process of the Slurm job. It lives until the test kills it. */
static pid_t start_process(char *id, char *tmpdir)
{
    static char word[] = "sleep", time[] = "600";
    char *argv[] = {word, time, NULL}, *env[] = {id, tmpdir, NULL};
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* it has its own environment now */
    close(ends[0]);
    return pid;
}

static void expect_place(const char *tmpdir)
{
    char *base AUTO_FREE = runtime_dir_base(), *expected AUTO_FREE = runtime_dir_base_in(tmpdir);
    assert_string_equal(base, expected);
}

/* The job is found below the TMPDIR of its process. Before that, TMPDIR stays what it is. */
static void test_tmpdir_of_the_job(void **state)
{
    (void)state;
    char place[] = "/tmp/unit_control_slurm.XXXXXX", before[] = "/nonexistent/before";
    assert_non_null(mkdtemp(place));
    char *number AUTO_FREE = mem_printf("4%d", (int)getpid());
    char *id AUTO_FREE = mem_printf("SLURM_JOB_ID=%s", number);
    char *tmpdir AUTO_FREE = mem_printf("TMPDIR=%s", place), *job AUTO_FREE = NULL;
    char other[] = "TMPDIR=/nonexistent/other";
    struct control_words words = {.command = CONTROL_STATUS, .slurm_job = number};
    struct error err = ERROR_INIT;
    setenv("SLURM_JOB_ID", number, 1);
    setenv("SLURM_NODEID", "0", 1);
    setenv("SLURMD_NODENAME", "n", 1);
    setenv("TMPDIR", place, 1);
    pid_t rank = start_process(id, other), hvdrun = start_process(id, tmpdir);
    int folder = job_folder_open(&err);
    json_t *facts = json_pack("{s:i, s:s, s:i}", "version", JOB_RECORD_VERSION, "job", "hvdrun-a-1",
                              "pid", (int)rank);
    struct job_record *record = job_record_create(folder, "hvdrun-a-1", facts, &err);
    assert_non_null(record);
    setenv("TMPDIR", before, 1);
    assert_int_equal(control_slurm_enter(&words, 0, NULL, &job, &err), 0);
    assert_null(job); /* the record is not that of the process below this TMPDIR */
    assert_null(words.job);
    expect_place(before);
    job_record_destroy(record);
    json_object_set_new(facts, "pid", json_integer(hvdrun));
    record = job_record_create(folder, "hvdrun-a-2", facts, &err);
    assert_int_equal(control_slurm_enter(&words, 0, NULL, &job, &err), 0);
    assert_string_equal(job, "hvdrun-a-2");
    assert_ptr_equal(words.job, job);
    expect_place(place);
    job_record_destroy(record);
    json_decref(facts);
    close(folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kill(i == 0 ? rank : hvdrun, SIGKILL), 0);
        waitpid(i == 0 ? rank : hvdrun, NULL, 0);
    }
    assert_int_equal(tree_remove(AT_FDCWD, place, NULL), 0);
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_srun),
        cmocka_unit_test(test_tmpdir_of_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
