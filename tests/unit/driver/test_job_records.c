/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of jobs: records, the journal of short jobs, and what is thrown away. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "node/runtime_dir.h"

#define DAY INT64_C(86400)
#define NOW (INT64_C(20000) * DAY)

struct fixture {
    char root[64];
    int folder;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-records-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    assert_int_equal(setenv("TMPDIR", f->root, 1), 0);
    f->folder = job_folder_open(NULL);
    assert_true(f->folder >= 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fd_close(&f->folder);
    runtime_dir_remove(f->root);
    unsetenv("TMPDIR");
    free(f);
    return 0;
}

static json_t *record_of(const char *job, int status)
{
    json_t *facts = json_pack("{s:s, s:i}", "job", job, "size", 4);
    if (status >= 0)
        json_object_update_new(facts,
                               json_pack("{s:f, s:i}", "ended", (double)NOW, "status", status));
    return facts;
}

static struct job_record *begin(struct fixture *f, const char *job)
{
    json_t *facts = record_of(job, -1);
    struct job_record *record = job_record_create(f->folder, job, facts, NULL);
    json_decref(facts);
    assert_non_null(record);
    return record;
}

static int finish(const struct job_record *record, const char *job, int status, struct error *err)
{
    json_t *facts = record_of(job, status);
    int result = job_record_finish(record, facts, err);
    json_decref(facts);
    return result;
}

/* The status in the record, and -1 if there is none. */
static int expect_state(struct fixture *f, const char *job, enum job_record_state expected)
{
    enum job_record_state state = JOB_RECORD_LOST;
    json_t *facts = job_record_read(f->folder, job, &state);
    assert_non_null(facts);
    assert_int_equal(state, expected);
    assert_string_equal(json_string_value(json_object_get(facts, "job")), job);
    const json_t *status = json_object_get(facts, "status");
    int result = status == NULL ? -1 : (int)json_integer_value(status);
    json_decref(facts);
    return result;
}

static void test_course(void **state)
{
    struct fixture *f = *state;
    struct job_record *record = begin(f, "j-1");
    assert_true(job_folder_runs(f->folder, "j-1"));
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_RUNNING), -1);
    assert_int_equal(finish(record, "j-1", 3, NULL), 0);
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_ENDED), 3);
    job_record_destroy(record);
    assert_false(job_folder_runs(f->folder, "j-1"));
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_ENDED), 3);
    record = begin(f, "j-1"); /* another job got this pid */
    assert_string_equal(job_record_name(record), "j-1");
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_RUNNING), -1);
    job_record_destroy(record); /* as the kernel does for a driver that was killed */
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_LOST), -1);
    enum job_record_state none;
    assert_null(job_record_read(f->folder, "j-2", &none));
}

static void test_equal_names(void **state)
{
    struct fixture *f = *state;
    struct job_record *all[10];
    for (int i = 0; i < 9; i++) {
        char *name AUTO_FREE = i == 0 ? mem_strdup("j-1") : mem_printf("j-1.%d", i + 1);
        all[i] = begin(f, "j-1");
        assert_string_equal(job_record_name(all[i]), name);
        assert_int_equal(expect_state(f, name, JOB_RECORD_RUNNING), -1);
    }
    struct error err = ERROR_INIT;
    json_t *facts = json_object();
    assert_null(job_record_create(f->folder, "j-1", facts, &err));
    assert_non_null(strstr(err.text, "cannot create the record"));
    json_decref(facts);
    for (int i = 0; i < 9; i++)
        job_record_destroy(all[i]);
}

/* A command that looks at the record is no other job. */
static void test_reader(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    char byte = 0;
    job_record_destroy(begin(f, "j-1"));
    assert_int_equal(pipe(ready), 0);
    pid_t reader = fork();
    if (reader == 0) {
        int fd = openat(f->folder, "j-1" JOB_RECORD_SUFFIX, O_RDONLY);
        if (flock(fd, LOCK_SH) == 0 && write(ready[1], "x", 1) == 1)
            usleep(20000);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct job_record *record = begin(f, "j-1");
    assert_string_equal(job_record_name(record), "j-1");
    job_record_destroy(record);
    assert_int_equal(waitpid(reader, NULL, 0), reader);
    close(ready[0]);
    close(ready[1]);
}

/* What an earlier version or anybody else of this user may have left there. */
static void test_nonsense(void **state)
{
    struct fixture *f = *state;
    static const char *const contents[] = {"", "{", "[1]", "\xff", "{\"ended\":1}x"};
    enum job_record_state got;
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        int fd = openat(f->folder, "j-1.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(fd_write_all(fd, contents[i], strlen(contents[i])), 0);
        fd_close(&fd);
        assert_null(job_record_read(f->folder, "j-1", &got));
    }
    assert_int_equal(symlinkat("j-1.json", f->folder, "j-2.json"), 0);
    assert_null(job_record_read(f->folder, "j-2", &got));
    assert_int_equal(mkfifoat(f->folder, "j-3.json", 0600), 0);
    assert_null(job_record_read(f->folder, "j-3", &got));
}

/* A disk without room costs the record. It must not look as if the job were lost. */
static void test_no_room(void **state)
{
    struct fixture *f = *state;
    struct job_record *record = begin(f, "j-1");
    struct rlimit before, none;
    struct error err = ERROR_INIT;
    enum job_record_state got;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 10, .rlim_max = before.rlim_max};
    assert_non_null(signal(SIGXFSZ, SIG_IGN) == SIG_ERR ? NULL : "");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int result = finish(record, "j-1", 0, &err);
    json_t *facts = record_of("j-9", 0);
    int added = job_journal_add(f->folder, facts, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    json_decref(facts);
    assert_int_equal(result, -1);
    assert_int_equal(added, -1);
    job_record_destroy(record);
    assert_null(job_record_read(f->folder, "j-1", &got));
    assert_null(job_record_read(f->folder, "j-9", &got));
}

static void test_folder_removed(void **state)
{
    struct fixture *f = *state;
    struct job_record *record = begin(f, "j-1");
    char *path AUTO_FREE = job_folder_path();
    runtime_dir_remove(path);
    assert_int_equal(finish(record, "j-1", 0, NULL), 0); /* into a file without a name */
    json_t *facts = record_of("j-2", 0);
    assert_int_equal(job_journal_add(f->folder, facts, NULL), -1);
    json_decref(facts);
    job_folder_tidy(f->folder, NOW);
    job_record_destroy(record);
}

static void set_age(struct fixture *f, const char *name, int64_t changed_s)
{
    struct timespec times[2] = {{.tv_sec = changed_s}, {.tv_sec = changed_s}};
    assert_int_equal(utimensat(f->folder, name, times, 0), 0);
}

static void make(struct fixture *f, const char *name, int64_t changed_s)
{
    int fd AUTO_FD = openat(f->folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    set_age(f, name, changed_s);
}

static bool exists(struct fixture *f, const char *name)
{
    return faccessat(f->folder, name, F_OK, 0) == 0;
}

static void test_tidy_by_age(void **state)
{
    struct fixture *f = *state;
    struct job_record *running = begin(f, "j-1");
    set_age(f, "j-1.json", NOW - 30 * DAY);
    make(f, "old.json", NOW - DAY - 10);
    make(f, "new.json", NOW - DAY + 10);
    make(f, "future.json", NOW + 7 * DAY); /* the clock was set back */
    make(f, "short.old.jsonl", NOW - 2 * DAY);
    make(f, "short.jsonl", NOW - 10);
    make(f, "other", NOW - 2 * DAY);
    job_folder_tidy(f->folder, NOW);
    assert_true(exists(f, "j-1.json"));
    assert_false(exists(f, "old.json"));
    assert_true(exists(f, "new.json"));
    assert_true(exists(f, "future.json"));
    assert_false(exists(f, "short.old.jsonl"));
    assert_true(exists(f, "short.jsonl"));
    assert_true(exists(f, "other"));
    job_record_destroy(running);
}

static void test_tidy_by_number(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < JOB_RECORDS_KEPT + 5; i++) {
        char *name AUTO_FREE = mem_printf("j-%d.json", i);
        make(f, name, NOW - 1000 + i);
    }
    job_folder_tidy(f->folder, NOW);
    for (int i = 0; i < JOB_RECORDS_KEPT + 5; i++) {
        char *name AUTO_FREE = mem_printf("j-%d.json", i);
        assert_int_equal(exists(f, name), i >= 5);
    }
}

static void make_evidence(struct fixture *f, const char *name, int64_t changed_s)
{
    assert_int_equal(mkdirat(f->folder, name, 0700), 0);
    char *file AUTO_FREE = mem_printf("%s/facts.json", name);
    int fd AUTO_FD = openat(f->folder, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    set_age(f, name, changed_s);
}

static void test_evidence(void **state)
{
    struct fixture *f = *state;
    make_evidence(f, "old.evidence", NOW - DAY - 10);
    make_evidence(f, "other", NOW - DAY - 10);
    for (int i = 0; i < JOB_EVIDENCE_KEPT + 3; i++) {
        char *name AUTO_FREE = mem_printf("j-%d.evidence", i);
        make_evidence(f, name, NOW - 1000 + i);
    }
    make(f, "a-file.evidence", NOW - 2 * DAY); /* not ours: it stays */
    job_folder_tidy(f->folder, NOW);
    assert_false(exists(f, "old.evidence"));
    assert_true(exists(f, "other/facts.json"));
    assert_true(exists(f, "a-file.evidence"));
    for (int i = 0; i < JOB_EVIDENCE_KEPT + 3; i++) {
        char *name AUTO_FREE = mem_printf("j-%d.evidence", i);
        assert_int_equal(exists(f, name), i >= 3);
    }
}

static void test_logs(void **state)
{
    struct fixture *f = *state;
    struct job_record *running = begin(f, "j-1");
    int64_t number = -1;
    char *job = job_folder_log("a.b-1.17.log", &number);
    assert_string_equal(job, "a.b-1");
    assert_int_equal(number, 17);
    free(job);
    assert_null(job_folder_log("a-1.log", &number));
    assert_null(job_folder_log("a-1.x.log", &number));
    assert_null(job_folder_log(".1.log", &number));
    make(f, "j-1.3.log", NOW - 30 * DAY); /* of a running job */
    make(f, "j-2.0.log", NOW - 10);       /* of no job */
    make(f, "j-3.json", NOW - 10);
    make(f, "j-3.0.log", NOW - 10);
    make(f, "j-4.json", NOW - 2 * DAY);
    make(f, "j-4.0.log", NOW - 2 * DAY);
    make(f, "j-5.json", NOW - 20);
    make(f, "j-5.0.log", NOW - 20);
    int fd AUTO_FD = openat(f->folder, "j-5.0.log", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, JOB_LOGS_BYTES + 1), 0);
    set_age(f, "j-5.0.log", NOW - 20);
    job_folder_tidy(f->folder, NOW);
    assert_true(exists(f, "j-1.3.log"));
    assert_false(exists(f, "j-2.0.log"));
    assert_true(exists(f, "j-3.0.log"));
    assert_false(exists(f, "j-4.0.log"));
    assert_false(exists(f, "j-5.0.log")); /* too large, together with newer ones */
    assert_true(exists(f, "j-5.json"));
    make(f, "j-3.9.log", NOW);
    job_folder_remove_log(f->folder, "j-3");
    assert_false(exists(f, "j-3.0.log") || exists(f, "j-3.9.log"));
    assert_true(exists(f, "j-1.3.log"));
    job_record_destroy(running);
}

static void count_one(void *context, const json_t *record)
{
    int *count = context;
    assert_true(json_is_string(json_object_get(record, "job")));
    (*count)++;
}

static int journal_count(struct fixture *f, int64_t since_s)
{
    int count = 0;
    job_journal_walk(f->folder, since_s, count_one, &count);
    return count;
}

static void test_journal(void **state)
{
    struct fixture *f = *state;
    json_t *first = record_of("j-1", 1), *second = record_of("j-1", 2);
    assert_int_equal(journal_count(f, 0), 0);
    assert_int_equal(job_journal_add(f->folder, first, NULL), 0);
    assert_int_equal(job_journal_add(f->folder, second, NULL), 0);
    assert_int_equal(journal_count(f, 0), 2);
    assert_int_equal(journal_count(f, NOW), 2);
    assert_int_equal(journal_count(f, NOW + 1), 0);
    assert_int_equal(expect_state(f, "j-1", JOB_RECORD_ENDED), 2); /* the later one */
    int fd AUTO_FD = openat(f->folder, "short.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC);
    const char *garbage = "garbage\n{}\n{\"job\":3}\n{\"job\":\"half";
    assert_int_equal(fd_write_all(fd, garbage, strlen(garbage)), 0);
    assert_int_equal(journal_count(f, 0), 2);
    json_decref(first);
    json_decref(second);
}

static void test_journal_is_bounded(void **state)
{
    struct fixture *f = *state;
    json_t *record = record_of("j-1", 0);
    char *text AUTO_FREE = mem_alloc(10001);
    memset(text, 'x', 10000);
    json_object_set_new(record, "text", json_string(text));
    for (int i = 0; i < 100; i++)
        assert_int_equal(job_journal_add(f->folder, record, NULL), 0);
    json_decref(record);
    struct stat info;
    assert_int_equal(fstatat(f->folder, "short.jsonl", &info, 0), 0);
    assert_true(info.st_size <= JOB_JOURNAL_BYTES + 20000);
    assert_int_equal(fstatat(f->folder, "short.old.jsonl", &info, 0), 0);
    assert_true(info.st_size <= JOB_JOURNAL_BYTES + 20000);
    assert_in_range(journal_count(f, 0), 26, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_course, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tidy_by_age, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tidy_by_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evidence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_logs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal_is_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
