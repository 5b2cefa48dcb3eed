/* SPDX-License-Identifier: Apache-2.0 */
/* A command about a job in Slurm: where it runs, the srun that it becomes, and the job of hvdrun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/tree.h"
#include "cli/control.h"
#include "cli/control_client.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "io/proc.h"
#include "node/runtime_dir.h"
#include "unit.h"

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

#define MOST 4

struct fixture {
    char root[64], *slurm_job;
    pid_t processes[MOST];
    struct job_record *records[MOST];
    int folders[MOST];
    size_t process_count, record_count;
};

static char *place_of(const struct fixture *f, const char *name)
{
    return mem_printf("%s/%s", f->root, name);
}

static void set_place(const struct fixture *f, const char *name)
{
    char *place AUTO_FREE = place_of(f, name);
    assert_int_equal(setenv("TMPDIR", place, 1), 0);
}

static void expect_place(const struct fixture *f, const char *name)
{
    char *place AUTO_FREE = place_of(f, name);
    char *expected AUTO_FREE = runtime_dir_base_in(place), *base AUTO_FREE = runtime_dir_base();
    assert_string_equal(base, expected);
}

/* What other processes see when it has its own environment. */
static bool has_started(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT((size_t)1 << 20);
    return proc_read(pid, 0, "environ", &text) && proc_variable(&text, "STARTED") != NULL;
}

/* A process of the Slurm job. It lives as long as the test. `place`: NULL for no TMPDIR. */
static void start_process(struct fixture *f, const char *place)
{
    static char word[] = "sleep", time[] = "600", started[] = "STARTED=1";
    char *folder AUTO_FREE = place_of(f, place == NULL ? "" : place);
    char *id AUTO_FREE = mem_printf("SLURM_JOB_ID=%s", f->slurm_job);
    char *tmpdir AUTO_FREE = mem_printf("TMPDIR=%s", folder);
    char *argv[] = {word, time, NULL};
    char *env[] = {started, id, place == NULL ? NULL : tmpdir, NULL};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    f->processes[f->process_count++] = pid;
    int64_t limit_ms = unit_limit_ms(30000);
    while (!has_started(pid) && !unit_is_over(limit_ms))
        poll(NULL, 0, 1);
    assert_true(has_started(pid));
}

/* A job below that TMPDIR, which runs until the test ends it. `ended`: when it did; 0. */
static void add_job(struct fixture *f, const char *place, const char *id, const char *slurm_job,
                    int ended)
{
    char *folder AUTO_FREE = place_of(f, place);
    struct error err = ERROR_INIT;
    mkdir(folder, 0700);
    set_place(f, place);
    int dir = job_folder_open(&err);
    assert_true(dir >= 0);
    json_t *facts = json_pack("{s:i, s:s, s:s*}", "version", JOB_RECORD_VERSION, "job", id,
                              "slurm_job", slurm_job);
    struct job_record *record = job_record_create(dir, id, facts, &err);
    assert_non_null(record);
    if (ended > 0) {
        json_object_set_new(facts, "ended", json_integer(ended));
        assert_int_equal(job_record_finish(record, facts, &err), 0);
        job_record_destroy(record);
        record = NULL;
    }
    json_decref(facts);
    f->records[f->record_count] = record;
    f->folders[f->record_count++] = dir;
    set_place(f, "own");
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    *f = (struct fixture){.process_count = 0};
    snprintf(f->root, sizeof(f->root), "/tmp/unit_control_slurm.XXXXXX");
    f->slurm_job = mem_printf("4%d", (int)getpid());
    assert_non_null(mkdtemp(f->root));
    set_place(f, "own"); /* which does not exist */
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < f->process_count; i++) {
        kill(f->processes[i], SIGKILL);
        waitpid(f->processes[i], NULL, 0);
    }
    for (size_t i = 0; i < f->record_count; i++) {
        job_record_destroy(f->records[i]);
        fd_close(&f->folders[i]);
    }
    int result = tree_remove(AT_FDCWD, f->root, NULL);
    unsetenv("TMPDIR");
    free(f->slurm_job);
    free(f);
    return result;
}

/* What a command is about. */
struct choice {
    struct control_words words;
    struct job_list list;
    struct job_lists more;
    struct error err;
    int result;
};

static struct choice choose(const struct fixture *f, enum control_command command, const char *job)
{
    struct choice choice = {
        .words = {.command = command, .slurm_job = f->slurm_job, .job = job},
        .list = {.folder = -1},
        .err = ERROR_INIT,
    };
    choice.result = control_slurm_jobs(&choice.words, &choice.list, &choice.more, &choice.err);
    return choice;
}

static void destroy(struct choice *choice)
{
    job_list_destroy(&choice->list);
    job_lists_destroy(&choice->more);
}

static void expect_job(const struct fixture *f, enum control_command command, const char *job,
                       const char *found, const char *place)
{
    struct choice choice = choose(f, command, job);
    assert_string_equal(choice.err.text, "");
    assert_int_equal(choice.result, 0);
    assert_string_equal(choice.words.job, found);
    assert_true(choice.list.folder >= 0);
    assert_int_equal(choice.more.count, 0);
    expect_place(f, place);
    destroy(&choice);
    set_place(f, "own");
}

/* Nothing is chosen, and TMPDIR stays what it is. */
static void expect_error(const struct fixture *f, enum control_command command, const char *job,
                         const char *const *parts)
{
    struct choice choice = choose(f, command, job);
    assert_int_equal(choice.result, -1);
    assert_int_equal(choice.err.status, command == CONTROL_WAIT ? STATUS_LAUNCHER : 0);
    for (; *parts != NULL; parts++) {
        if (strstr(choice.err.text, *parts) == NULL)
            fail_msg("'%s' lacks '%s'", choice.err.text, *parts);
    }
    assert_int_equal(choice.list.folder, -1);
    assert_ptr_equal(choice.words.job, job);
    expect_place(f, "own");
    destroy(&choice);
}
#define EXPECT_ERROR(f, command, job, ...) \
    expect_error(f, command, job, (const char *const[]){__VA_ARGS__, NULL})

/* Of a rank, of hvdrun, and of a script that has no TMPDIR. */
static void start_processes(struct fixture *f)
{
    start_process(f, "rank");
    start_process(f, "a");
    start_process(f, NULL);
}

static void test_the_only_job(void **state)
{
    struct fixture *f = *state;
    start_processes(f);
    add_job(f, "a", "hvdrun-a-1", f->slurm_job, 0);
    add_job(f, "a", "hvdrun-a-2", "4", 0);
    add_job(f, "own", "hvdrun-a-3", NULL, 0);
    expect_job(f, CONTROL_STOP, NULL, "hvdrun-a-1", "a");
    expect_job(f, CONTROL_LOGS, NULL, "hvdrun-a-1", "a");
    expect_job(f, CONTROL_STATUS, "hvdrun-a", "hvdrun-a-1", "a");
    expect_job(f, CONTROL_STATUS, "1", "hvdrun-a-1", "a");
}

/* A command that may end a job asks which one. */
static void test_several_jobs(void **state)
{
    struct fixture *f = *state;
    start_processes(f);
    start_process(f, "b");
    add_job(f, "a", "hvdrun-a-1", f->slurm_job, 0);
    add_job(f, "b", "hvdrun-a-2", f->slurm_job, 0);
    char *begin AUTO_FREE =
        mem_printf("2 jobs run in Slurm job %s; name one of them: hvdrun-a-", f->slurm_job);
    EXPECT_ERROR(f, CONTROL_STOP, NULL, begin, "hvdrun-a-1", "hvdrun-a-2");
    EXPECT_ERROR(f, CONTROL_LOGS, NULL, begin);
    EXPECT_ERROR(f, CONTROL_WAIT, NULL, begin);
    EXPECT_ERROR(f, CONTROL_STOP, "hvdrun-a", "'hvdrun-a' matches 2 jobs: ", "hvdrun-a-1",
                 "hvdrun-a-2");
    expect_job(f, CONTROL_STOP, "hvdrun-a-1", "hvdrun-a-1", "a");
    expect_job(f, CONTROL_STOP, "2", "hvdrun-a-2", "b");
}

/* The only job of this user is not that of the Slurm job. */
static void test_a_job_elsewhere(void **state)
{
    struct fixture *f = *state;
    start_processes(f);
    add_job(f, "own", "hvdrun-a-1", NULL, 0);
    add_job(f, "a", "hvdrun-a-2", "4", 0);
    add_job(f, "a", "hvdrun-a-3", "4", 7);
    char *none AUTO_FREE =
        mem_printf("found no running job of this user in Slurm job %s", f->slurm_job);
    EXPECT_ERROR(f, CONTROL_STOP, NULL, none);
    EXPECT_ERROR(f, CONTROL_SIGNAL, NULL, none);
    EXPECT_ERROR(f, CONTROL_STATUS, NULL, none);
    EXPECT_ERROR(f, CONTROL_LOGS, NULL, none);
    EXPECT_ERROR(f, CONTROL_WAIT, NULL, none);
    EXPECT_ERROR(f, CONTROL_EXPLAIN, NULL, "found no job of this user that has ended");
    if (geteuid() != 0) { /* root may mean the job of another user */
        EXPECT_ERROR(f, CONTROL_STOP, "hvdrun-a-1", "found no job 'hvdrun-a-1'");
        return;
    }
    struct choice choice = choose(f, CONTROL_STOP, "hvdrun-a-1");
    assert_int_equal(choice.result, 0);
    assert_int_equal(choice.list.running.count + choice.list.over.count, 0);
    destroy(&choice);
}

static void test_jobs_that_have_ended(void **state)
{
    struct fixture *f = *state;
    start_processes(f);
    start_process(f, "b");
    add_job(f, "a", "hvdrun-a-1", f->slurm_job, 7);
    add_job(f, "b", "hvdrun-a-2", f->slurm_job, 8);
    add_job(f, "b", "hvdrun-a-3", "4", 9);
    static const enum control_command commands[] = {CONTROL_LOGS, CONTROL_EXPLAIN};
    for (size_t i = 0; i < 2; i++) {
        struct choice choice = choose(f, commands[i], NULL);
        assert_int_equal(choice.result, 0);
        assert_null(choice.words.job);
        assert_string_equal(job_list_last(&choice.list, NULL), "hvdrun-a-2");
        expect_place(f, "b");
        destroy(&choice);
        set_place(f, "own");
    }
    EXPECT_ERROR(f, CONTROL_STOP, NULL, "found no running job", "'hvdrun ps -a --slurm-job ");
    expect_job(f, CONTROL_STATUS, "hvdrun-a-1", "hvdrun-a-1", "a");
}

static void test_all_places(void **state)
{
    struct fixture *f = *state;
    start_processes(f);
    start_process(f, "b");
    add_job(f, "a", "hvdrun-a-1", f->slurm_job, 0);
    add_job(f, "b", "hvdrun-a-2", f->slurm_job, 7);
    struct choice choice = choose(f, CONTROL_PS, NULL);
    assert_int_equal(choice.result, 0);
    size_t running = choice.list.running.count, over = choice.list.over.count;
    for (size_t i = 0; i < choice.more.count; i++) {
        running += choice.more.items[i].running.count;
        over += choice.more.items[i].over.count;
    }
    assert_int_equal(running, 1);
    assert_int_equal(over, 1);
    destroy(&choice);
}

static void test_no_place(void **state)
{
    struct fixture *f = *state;
    start_process(f, "rank");
    start_process(f, "a");
    struct choice choice = choose(f, CONTROL_PS, NULL);
    assert_int_equal(choice.result, 0);
    for (size_t i = 0; i < choice.more.count; i++)
        assert_int_equal(choice.more.items[i].running.count, 0);
    assert_int_equal(choice.list.running.count, 0);
    expect_place(f, "own");
    destroy(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_srun),
        cmocka_unit_test_setup_teardown(test_the_only_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_job_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jobs_that_have_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_place, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
