/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/recent.h"
#include "driver/tell/stalls.h"
#include "driver/tell/tell.h"
#include "unit.h"

#define NOW_NS (5000 * SECOND)
#define WALL_NS (1700000500 * SECOND)
#define RUNS_S 500 /* so long has the job of the tests run */

static int open_status(void **state)
{
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    f->job.own[PART_recent] = recent_create(RECENT_BYTES);
    f->job.own[PART_stall_list] = stall_list_create();
    f->request.apps = &f->apps;
    f->request.wdir = "/home/me";
    unit_clock_stop(NOW_NS, WALL_NS);
    f->request.begun_ns = NOW_NS - RUNS_S * SECOND;
    for (int rank = 0; rank < 3; rank++)
        f->job.ranks.records[rank].started_ns = f->request.begun_ns;
    return 0;
}

static int close_status(void **state)
{
    struct fixture *f = *state;
    unit_clock_run();
    recent_destroy(job_part(&f->job, recent));
    stall_list_destroy(job_part(&f->job, stall_list));
    return teardown(state);
}

/* The value of `key`, which the caller owns; NULL: there is none. */
static json_t *part(const struct fixture *f, const char *key)
{
    json_t *root = status_json(&f->job), *value = json_incref(json_object_get(root, key));
    json_decref(root);
    return value;
}

static void expect_part(const struct fixture *f, const char *key, const char *wanted)
{
    expect_json(part(f, key), wanted);
}

static void test_job(void **state)
{
    struct fixture *f = *state;
    f->job.state = JOB_RUNNING;
    expect_part(f, "version", "'" HVDRUN_VERSION "'");
    expect_part(f, "job", "'job-1'");
    expect_part(f, "command", "'./train'");
    expect_part(f, "folder", "'/home/me'");
    expect_part(f, "state", "'running'");
    expect_part(f, "size", "3");
    expect_part(f, "started", "1700000000.0");
    expect_part(f, "restarts", "0");
    expect_part(f, "stalls", "[]");
    assert_null(part(f, "last_output_s"));
    json_t *root = status_json(&f->job);
    assert_int_equal(json_integer_value(json_object_get(root, "pid")), getpid());
    assert_true(json_real_value(json_object_get(root, "up_s")) == RUNS_S);
    json_decref(root);
    const struct allocation allocation = {.restart_count = 2};
    f->request.allocation = &allocation;
    expect_part(f, "restarts", "2");
}

static void outputs(struct fixture *f, int64_t wall_ns)
{
    struct recent_piece piece = {.wall_ns = wall_ns, .text = "x\n", .length = 2};
    recent_add(job_part(&f->job, recent), &piece);
}

static void test_last_output(void **state)
{
    struct fixture *f = *state;
    outputs(f, WALL_NS - 100 * SECOND);
    expect_part(f, "last_output_s", "100.0");
    outputs(f, WALL_NS + 1000000 * SECOND); /* the clock was set back */
    expect_part(f, "last_output_s", "0.0");
}

static void test_stalls(void **state)
{
    struct fixture *f = *state;
    struct stall stall = {.seconds = 60,
                          .operation = mem_strdup("allreduce"),
                          .name = mem_strdup("x"),
                          .reported_ns = NOW_NS};
    stall_list_add(job_part(&f->job, stall_list), &stall);
    json_t *stalls = part(f, "stalls");
    assert_int_equal(json_array_size(stalls), 1);
    assert_string_equal(json_string_value(json_array_get(stalls, 0)),
                        "some ranks wait for other ranks in allreduce 'x', for 60 s");
    json_decref(stalls);
}

/* The words of all programs on one line, which is cut. */
static void test_command(void **state)
{
    struct fixture *f = *state;
    char *line AUTO_FREE = NULL;
    strv_add(&f->apps.items[0].argv, "-v");
    struct app *second = app_list_add(&f->apps);
    strv_add(&second->argv, "./serve\377");
    strv_add(&second->argv, "now");
    line = status_command(&f->job);
    assert_string_equal(line, "./train -v : ./serve? now");
    free(line);
    char word[1100];
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    strv_add(&f->apps.items[0].argv, word);
    line = status_command(&f->job);
    assert_string_equal(line, "./train -v ... : ./serve? now");
    free(line);
    f->request.apps = NULL; /* a check */
    line = status_command(&f->job);
    assert_string_equal(line, "");
}

static void expect_state(struct fixture *f, const char *wanted)
{
    json_t *hosts = part(f, "hosts");
    assert_string_equal(json_string_value(json_object_get(json_array_get(hosts, 1), "state")),
                        wanted);
    json_decref(hosts);
}

static void test_states_of_hosts(void **state)
{
    static const struct {
        enum node_state state;
        const char *word;
    } words[] = {
        {NODE_CALLING, "connecting"}, {NODE_STARTING, "connecting"},  {NODE_UP, "up"},
        {NODE_READY, "up"},           {NODE_RUNNING, "up"},           {NODE_ENDING, "ending"},
        {NODE_ENDED, "ended"},        {NODE_CLOSING, "ended"},        {NODE_GONE, "ended"},
        {NODE_LOST, "lost"},          {NODE_UNREACHED, "not reached"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        f->job.nodes[1]->state = words[i].state;
        expect_state(f, words[i].word);
    }
    f->job.nodes[1]->suspect = true;
    expect_state(f, "not reached"); /* only a node that has a link can be silent */
}

static void test_hosts(void **state)
{
    struct fixture *f = *state;
    f->job.nodes[0]->host[0] = '\377';
    f->job.nodes[1]->place = -1;
    expect_part(f, "hosts",
                "[{'host': '(not UTF-8)', 'state': 'connecting', 'slots': 2,"
                "  'ranks': [0, 1]},"
                " {'host': 'b', 'state': 'connecting', 'ranks': []}]");
}

static void test_ranks(void **state)
{
    struct fixture *f = *state;
    f->job.ranks.records[0].pid = 0;
    exits(f, 1, true, 9, f->request.begun_ns + 100 * SECOND);
    exits(f, 2, false, 0, f->request.begun_ns + 200 * SECOND);
    f->job.ranks.records[2].started_ns = 0;
    f->job.ranks.records[0].straggles = true;
    f->job.ranks.records[1].straggles = true; /* it did, when it ran */
    rank_stopped(&f->job.ranks.records[0], "stopped (SIGSTOP)", NOW_NS - 9 * SECOND);
    rank_stopped(&f->job.ranks.records[1], "stopped (SIGSTOP)", NOW_NS); /* likewise */
    expect_part(f, "ranks",
                "[{'rank': 0, 'epoch': 1, 'host': 'a', 'state': 'running', 'up_s': 500.0, "
                "'straggler': true,"
                "  'stopped': 'stopped (SIGSTOP)', 'stopped_s': 9.0},"
                " {'rank': 1, 'epoch': 1, 'host': 'a', 'state': 'finished', 'pid': 101,"
                "  'up_s': 100.0, 'ended': 1700000100.0, 'signal': 9},"
                " {'rank': 2, 'epoch': 1, 'host': 'b', 'state': 'finished', 'pid': 102,"
                "  'ended': 1700000200.0, 'exit_code': 0}]");
    rank_stopped(&f->job.ranks.records[0], "", NOW_NS);
    assert_null(f->job.ranks.records[0].stopped);
    f->job.ranks.records[2].exec_failed = true;
    f->job.ranks.records[1].epoch = 0; /* its seat was never taken */
    f->job.epoch = 2;                  /* rank 2 ended in an earlier epoch; rank 0 still runs */
    json_t *ranks = part(f, "ranks");
    assert_int_equal(json_array_size(ranks), 1);
    json_decref(ranks);
    f->job.ranks.records[2].epoch = 2;
    ranks = part(f, "ranks");
    assert_int_equal(json_array_size(ranks), 2);
    assert_null(json_object_get(json_array_get(ranks, 1), "exit_code"));
    json_decref(ranks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_status, close_status)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_job),     TEST(test_last_output),     TEST(test_stalls),
        TEST(test_command), TEST(test_states_of_hosts), TEST(test_hosts),
        TEST(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
