/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/recent.h"
#include "driver/tell/tell.h"

static int open_record(void **state)
{
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    f->job.own[PART_recent] = recent_create(RECENT_BYTES);
    f->request.apps = &f->apps;
    f->request.wdir = "/home/me";
    unsetenv("SLURM_JOB_ID");
    return 0;
}

static int close_record(void **state)
{
    struct fixture *f = *state;
    f->settings.log_dir = NULL;
    recent_destroy(job_part(&f->job, recent));
    return teardown(state);
}

static void outputs(struct fixture *f, int rank, bool is_stderr, const char *text, size_t length)
{
    struct recent_piece piece = {.rank = rank,
                                 .is_stderr = is_stderr,
                                 .wall_ns = (1700000000 + rank) * SECOND,
                                 .text = text,
                                 .length = length};
    recent_add(job_part(&f->job, recent), &piece);
}

/* The value of `key` at the end of the job. */
static json_t *part(struct fixture *f, const char *key)
{
    json_t *root = record_json_end(&f->job, false),
           *value = json_incref(json_object_get(root, key));
    json_decref(root);
    return value;
}

static void test_begin(void **state)
{
    struct fixture *f = *state;
    json_t *record = record_json_begin(&f->job);
    assert_int_equal(json_integer_value(json_object_get(record, "pid")), getpid());
    json_object_del(record, "pid");
    expect_json(record, "{'version': 1, 'job': 'job-1', 'command': './train',"
                        " 'folder': '/home/me', 'started': 1700000000.0, 'size': 3,"
                        " 'host_count': 2}");
}

static void expect_log_folder(struct fixture *f, char *setting, const char *wanted)
{
    f->settings.log_dir = setting;
    char *folder AUTO_FREE = record_log_folder(&f->job);
    json_t *record = record_json_begin(&f->job);
    const char *told = json_string_value(json_object_get(record, "log_folder"));
    assert_int_equal(told == NULL, wanted == NULL);
    assert_int_equal(folder == NULL, wanted == NULL);
    if (wanted != NULL) {
        assert_string_equal(folder, wanted);
        assert_string_equal(told, wanted);
    }
    json_decref(record);
}

static void test_log_folder(void **state)
{
    struct fixture *f = *state;
    expect_log_folder(f, NULL, NULL);
    expect_log_folder(f, (char[]){""}, NULL);
    expect_log_folder(f, (char[]){"logs"}, "/home/me/logs");
    expect_log_folder(f, (char[]){"/var/log"}, "/var/log");
}

static void test_slurm_job(void **state)
{
    struct fixture *f = *state;
    setenv("SLURM_JOB_ID", "812", 1);
    json_t *record = record_json_begin(&f->job);
    unsetenv("SLURM_JOB_ID");
    assert_string_equal(json_string_value(json_object_get(record, "slurm_job")), "812");
    json_decref(record);
}

static void test_end(void **state)
{
    struct fixture *f = *state;
    exits(f, 1, false, 3, 7 * SECOND);
    exit_policy_verdict(f->policy, &f->job.verdict);
    json_t *root = record_json_end(&f->job, false), *begun = record_json_begin(&f->job);
    json_t *verdict = record_json_verdict(&f->job);
    expect_json(json_incref(verdict),
                "{'status': 3, 'cause': 'exit', 'text': 'rank 1 exited with code 3'}");
    const char *key;
    json_t *value;
    json_object_foreach(begun, key, value)
        assert_true(json_equal(json_object_get(root, key), value));
    json_object_foreach(verdict, key, value)
        assert_true(json_equal(json_object_get(root, key), value));
    json_decref(begun);
    json_decref(verdict);
    assert_true(json_real_value(json_object_get(root, "ended")) > 1700000000);
    const char *failure = json_string_value(json_object_get(root, "failure"));
    assert_non_null(strstr(failure, "hvdrun: rank 1: host a, pid 101, exit code 3, after 2.00 s"));
    const json_t *report = json_object_get(root, "report");
    assert_int_equal(json_array_size(json_object_get(report, "ranks")), 3);
    assert_int_equal(json_array_size(json_object_get(report, "nodes")), 2);
    assert_non_null(json_object_get(report, "stacks"));
    assert_non_null(json_object_get(json_object_get(report, "job"), "np"));
    assert_null(json_object_get(json_object_get(report, "job"), "argv")); /* -x may have secrets */
    json_decref(root);
}

/* All that say when the job ended say the same, however late they are asked. */
static void test_one_end(void **state)
{
    struct fixture *f = *state;
    f->job.times.ended_ns = 8500 * SECOND / 1000;
    for (int i = 0; i < 2; i++) {
        expect_json(part(f, "ended"), "1700000007.5"); /* it began at 1 s */
        json_t *report = part(f, "report"), *job = json_object_get(report, "job");
        expect_json(json_incref(json_object_get(job, "ended")), "1700000007.5");
        expect_json(json_incref(json_object_get(job, "seconds")), "7.5");
        json_decref(report);
    }
}

static void test_success(void **state)
{
    struct fixture *f = *state;
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 7 * SECOND);
    exit_policy_verdict(f->policy, &f->job.verdict);
    assert_null(part(f, "failure"));
    expect_json(part(f, "lines"), "[]");
}

static void test_lines(void **state)
{
    struct fixture *f = *state;
    outputs(f, 1, true, "one\n\ntwo\377", 8);
    outputs(f, RECENT_LAUNCHER, true, "hvdrun: x\n", 10);
    outputs(f, 0, false, "more", 4);
    expect_json(part(f, "lines"),
                "[{'time': 1700000001.0, 'rank': 1, 'stream': 'stderr', 'text': 'one'},"
                " {'time': 1700000001.0, 'rank': 1, 'stream': 'stderr', 'text': ''},"
                " {'time': 1700000001.0, 'rank': 1, 'stream': 'stderr', 'text': 'two'},"
                " {'time': 1699999999.0, 'rank': null, 'stream': 'stderr', 'text': 'hvdrun: x'},"
                " {'time': 1700000000.0, 'rank': 0, 'stream': 'stdout', 'text': 'more'}]");
    outputs(f, 0, false, "not \377 UTF-8\n", 12);
    json_t *lines = part(f, "lines");
    assert_string_equal(json_string_value(json_object_get(json_array_get(lines, 5), "text")),
                        "not ? UTF-8");
    json_decref(lines);
}

/* The last lines, and the first bytes of each. */
static void test_bounds_of_lines(void **state)
{
    struct fixture *f = *state;
    char text[RECORD_LINE_BYTES + 2];
    for (int i = 0; i < RECORD_LINES + 4; i++)
        outputs(f, 0, false, (char[]){(char)('a' + i), '\n'}, 2);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\n';
    outputs(f, 0, false, text, sizeof(text));
    json_t *lines = part(f, "lines");
    assert_int_equal(json_array_size(lines), RECORD_LINES);
    assert_string_equal(json_string_value(json_object_get(json_array_get(lines, 0), "text")), "f");
    const json_t *last = json_object_get(json_array_get(lines, RECORD_LINES - 1), "text");
    assert_int_equal(json_string_length(last), RECORD_LINE_BYTES);
    json_decref(lines);
}

/* The record of a large job has no list of ranks and hosts. */
static void test_large_job(void **state)
{
    struct fixture *f = *state;
    for (int more = 0; more < 2; more++) {
        rank_table_seat(&f->job.ranks, RECORD_RANKS - f->job.node_count - 1 + more);
        json_t *report = part(f, "report");
        assert_int_equal(json_object_get(report, "ranks") == NULL, more);
        assert_int_equal(json_object_get(report, "nodes") == NULL, more);
        assert_int_equal(json_object_get(report, "stacks") == NULL, more);
        assert_non_null(json_object_get(report, "job"));
        json_decref(report);
    }
}

/* A job without a file of its own: the line that it adds to the common file is short if all is
 * well. */
static void test_brief(void **state)
{
    struct fixture *f = *state;
    for (int status = 0; status < 2; status++) {
        f->job.verdict.status = status;
        json_t *root = record_json_end(&f->job, true);
        const json_t *report = json_object_get(root, "report");
        assert_int_equal(json_object_get(report, "ranks") != NULL, status);
        assert_int_equal(json_object_get(report, "nodes") != NULL, status);
        assert_non_null(json_object_get(report, "job"));
        assert_int_equal(json_integer_value(json_object_get(root, "size")), f->job.plan->size);
        json_decref(root);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_record, close_record)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_begin),           TEST(test_log_folder), TEST(test_end),
        TEST(test_one_end),         TEST(test_success),    TEST(test_lines),
        TEST(test_bounds_of_lines), TEST(test_large_job),  TEST(test_brief),
        TEST(test_slurm_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
