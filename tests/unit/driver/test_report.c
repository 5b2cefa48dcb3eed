/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/job_fixture.h"
#include "driver/tell/tell.h"

static const char *block(struct fixture *f)
{
    exit_policy_verdict(f->policy, &f->job.verdict);
    report_failure(&f->job, &f->block);
    return buf_text(&f->block);
}

static void says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in:\n%s", part, text);
}

static void test_nothing_to_say(void **state)
{
    struct fixture *f = *state;
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 6 * SECOND);
    assert_string_equal(block(f), "");
    assert_int_equal(f->job.verdict.status, 0);
}

static void test_exit_code(void **state)
{
    struct fixture *f = *state;
    static const char said[] = "one\ntwo\n";
    tail_add(&f->job.ranks.records[1].tail, said, strlen(said), 0);
    exits(f, 1, false, 3, 7500000000LL);
    exit_policy_killed(f->policy, 0, 8 * SECOND);
    exit_policy_killed(f->policy, 1, 8 * SECOND);
    exits(f, 0, true, SIGTERM, 9 * SECOND);
    exits(f, 2, true, SIGTERM, 9 * SECOND);
    const char *text = block(f);
    assert_int_equal(f->job.verdict.status, 3);
    says(text, "hvdrun: rank 1: host a, pid 101, exit code 3, after 2.50 s\n");
    says(text, "hvdrun: last lines of its stderr:\n    one\n    two\n");
    says(text, "hvdrun: terminated the other 2 ranks\n");
    assert_null(strstr(text, "on its own"));
}

/* "The other" only where no rank ended in another way. */
static void test_terminated_ranks(void **state)
{
    struct fixture *f = *state;
    exits(f, 1, false, 3, 7 * SECOND);
    exit_policy_killed(f->policy, 1, 8 * SECOND);
    exits(f, 0, false, 0, 7 * SECOND);
    exits(f, 2, true, SIGTERM, 9 * SECOND);
    says(block(f), "hvdrun: terminated 1 other rank\n");
}

static void test_terminated_by_the_user(void **state)
{
    struct fixture *f = *state;
    exit_outside_interrupted(&f->job.outside, SIGINT, 6 * SECOND);
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, true, SIGINT, 7 * SECOND);
    assert_string_equal(block(f), "hvdrun: interrupted (SIGINT)\nhvdrun: terminated 3 ranks\n");
}

/* With --pty the user has seen the rank's terminal: it is not quoted once more. */
static void test_terminal_is_not_repeated(void **state)
{
    struct fixture *f = *state;
    f->settings.pty = 1;
    tail_add(&f->job.ranks.records[1].tail, "a session\n", 10, 0);
    exits(f, 1, false, 3, 6 * SECOND);
    const char *text = block(f);
    says(text, "exit code 3");
    assert_null(strstr(text, "a session"));
}

static void test_signal(void **state)
{
    struct fixture *f = *state;
    exits(f, 2, true, SIGSEGV, 6 * SECOND);
    f->job.ranks.records[2].core = true;
    f->job.ranks.records[2].oom = true;
    exits(f, 0, false, 1, 7 * SECOND);
    exits(f, 1, false, 0, 7 * SECOND);
    const char *text = block(f);
    assert_int_equal(f->job.verdict.status, 128 + SIGSEGV);
    says(text, "host b, pid 102, signal 11 (SIGSEGV), core dumped, after 1.00 s\n");
    says(text, "hvdrun: out of memory: the kernel killed processes on b while the rank ran\n");
    says(text, "hvdrun: 1 other rank failed on its own\n");
    assert_null(strstr(text, "stderr")); /* it said nothing */
}

static void test_not_executed(void **state)
{
    struct fixture *f = *state;
    struct exit_event event = {.seat = 0, .code = 127, .when_ns = 6 * SECOND};
    rank_exited(&f->job.ranks, 0, 6 * SECOND);
    f->job.ranks.records[0].exec_failed = true;
    f->job.ranks.records[0].code = 127;
    f->job.ranks.records[0].text = mem_strdup("cannot execute ./train: no such file");
    exit_policy_ended(f->policy, FACT_NOT_EXECUTED, &event, "cannot execute ./train: no such file");
    const char *text = block(f);
    assert_int_equal(f->job.verdict.status, 127);
    says(text, "cannot execute ./train");
    assert_null(strstr(text, "exit code 127")); /* it never ran */
    assert_null(strstr(text, "error file of rank"));
}

/* What the program itself wrote down, as torch's @record does, as plain JSON, or as anything. */
static void test_own_account(void **state)
{
    static const struct {
        const char *file, *shown;
    } accounts[] = {
        {"{\"message\": {\"message\": \"ValueError: x\", \"extraInfo\": {\"py_callstack\": "
         "\"Traceback\\n  line 1\"}}}",
         "    ValueError: x\n    Traceback\n      line 1\n"},
        {"{\"message\": {\"message\": \"only this\"}}", "    only this\n"},
        {"{\"message\": \"short\"}", "    short\n"},
        {"{\"message\": 5}", "    {\"message\": 5}\n"},
        {"{broken", "    {broken\n"},
        {"[1]", "    [1]\n"},
        {"\377\376 bytes", "    \377\376 bytes\n"}};
    struct fixture *f = *state;
    exits(f, 0, false, 1, 6 * SECOND);
    for (size_t i = 0; i < sizeof(accounts) / sizeof(accounts[0]); i++) {
        buf_clear(&f->block);
        free(f->job.ranks.records[0].text);
        f->job.ranks.records[0].text = mem_strdup(accounts[i].file);
        const char *text = block(f);
        says(text, "hvdrun: error file of rank 0");
        says(text, accounts[i].shown);
    }
}

/* Rank 2 raised an error and was ended by hvdrun; rank 0 failed because of it, and rank 1, too. */
static void likely_cause(struct fixture *f)
{
    static const char error[] = "ValueError: bad row\n", closed[] = "Connection closed by peer\n";
    tail_add(&f->job.ranks.records[2].tail, error, strlen(error), 6 * SECOND);
    tail_add(&f->job.ranks.records[0].tail, closed, strlen(closed), 7 * SECOND);
    exits(f, 0, false, 1, 7 * SECOND);
    exits(f, 1, false, 1, 7500000000LL);
    exit_policy_killed(f->policy, 1, 8 * SECOND);
    exits(f, 2, true, SIGTERM, 9 * SECOND);
    f->job.ranks.records[2].ended_by_us = true;
    exit_policy_verdict(f->policy, &f->job.verdict);
    f->job.verdict.likely = true;
    f->job.verdict.first_seat = f->job.verdict.seat;
    f->job.verdict.seat = 2;
    f->job.verdict.node = 1;
}

static void test_likely_cause(void **state)
{
    struct fixture *f = *state;
    likely_cause(f);
    report_failure(&f->job, &f->block);
    const char *text = buf_text(&f->block);
    says(text, "hvdrun: rank 2: host b, pid 102, terminated by hvdrun after 4.00 s\n"
               "hvdrun: last lines of its stderr:\n    ValueError: bad row\n"
               "hvdrun: rank 0: host a, pid 100, exit code 1, after 2.00 s\n"
               "hvdrun: its error, most likely a consequence:\n    Connection closed by peer\n"
               "hvdrun: 1 other rank failed after it\n");
    assert_null(strstr(text, "terminated the other"));
}

static json_t *loaded_as_it_is(struct fixture *f)
{
    char *text AUTO_FREE = report_json(&f->job);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_int_equal(text[strlen(text) - 1], '\n');
    return root;
}

static json_t *loaded(struct fixture *f)
{
    exit_policy_verdict(f->policy, &f->job.verdict);
    return loaded_as_it_is(f);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void test_json(void **state)
{
    struct fixture *f = *state;
    const struct allocation allocation = {.kind = ALLOCATION_SLURM, .job_id = (char *)"814"};
    f->request.allocation = &allocation;
    exits(f, 0, false, 0, 6 * SECOND);
    exits(f, 1, true, SIGKILL, 7 * SECOND);
    f->job.ranks.records[1].user_us = 1500000;
    f->job.ranks.records[1].cut = true;
    f->job.ranks.records[1].text = mem_strdup("not UTF-8: \377");
    json_t *root = loaded(f);
    const json_t *job = json_object_get(root, "job");
    assert_int_equal(json_integer_value(json_object_get(job, "np")), 3);
    assert_int_equal(json_integer_value(json_object_get(job, "status")), 128 + SIGKILL);
    assert_string_equal(text_of(job, "id"), "job-1");
    assert_int_equal(json_array_size(json_object_get(job, "argv")), 3);
    assert_true(json_is_null(json_array_get(json_object_get(job, "argv"), 2)));
    assert_true(json_real_value(json_object_get(job, "started")) == 1700000000.0);
    const json_t *scheduler = json_object_get(root, "scheduler");
    assert_string_equal(text_of(scheduler, "name"), allocation_name(ALLOCATION_SLURM));
    assert_string_equal(text_of(scheduler, "job_id"), "814");
    const json_t *cause = json_object_get(job, "cause");
    assert_string_equal(text_of(cause, "kind"), "signal");
    assert_int_equal(json_integer_value(json_object_get(cause, "rank")), 1);
    assert_string_equal(text_of(cause, "host"), "a");
    assert_true(json_is_false(json_object_get(cause, "likely")));
    assert_true(json_is_null(json_object_get(cause, "first_rank")));
    const json_t *ranks = json_object_get(root, "ranks"), *nodes = json_object_get(root, "nodes");
    assert_int_equal(json_array_size(ranks), 3);
    assert_int_equal(json_array_size(nodes), 2);
    const json_t *good = json_array_get(ranks, 0), *bad = json_array_get(ranks, 1);
    assert_int_equal(json_integer_value(json_object_get(good, "exit_code")), 0);
    assert_true(json_is_integer(json_object_get(good, "exit_code")));
    assert_true(json_is_null(json_object_get(good, "signal")));
    assert_string_equal(text_of(good, "role"), "ok");
    assert_true(json_is_null(json_object_get(bad, "exit_code")));
    assert_int_equal(json_integer_value(json_object_get(bad, "signal")), SIGKILL);
    assert_string_equal(text_of(bad, "role"), "cause");
    assert_true(json_is_true(json_object_get(bad, "output_cut")));
    assert_true(json_is_null(json_object_get(bad, "text")));
    assert_true(json_real_value(json_object_get(bad, "user_seconds")) == 1.5);
    assert_true(json_real_value(json_object_get(bad, "ended")) == 1700000006.0);
    const json_t *open = json_array_get(ranks, 2);
    assert_string_equal(text_of(open, "state"), "running");
    assert_true(json_is_null(json_object_get(open, "ended")));
    assert_true(json_is_null(json_object_get(open, "exit_code")));
    const json_t *node = json_array_get(nodes, 0); /* it never said HELLO */
    assert_true(json_is_null(json_object_get(node, "agent_pid")));
    assert_string_equal(text_of(node, "host"), "a");
    json_decref(root);
}

static void test_json_of_a_likely_cause(void **state)
{
    struct fixture *f = *state;
    likely_cause(f);
    json_t *root = loaded_as_it_is(f);
    const json_t *cause = json_object_get(json_object_get(root, "job"), "cause");
    assert_true(json_is_true(json_object_get(cause, "likely")));
    assert_int_equal(json_integer_value(json_object_get(cause, "rank")), 2);
    assert_int_equal(json_integer_value(json_object_get(cause, "first_rank")), 0);
    assert_string_equal(text_of(cause, "host"), "b");
    static const char *const roles[] = {"consequence", "failed", "cause"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(text_of(json_array_get(json_object_get(root, "ranks"), i), "role"),
                            roles[i]);
    json_decref(root);
}

/* Every span is there whose two ends are known, in microseconds from the beginning. */
static void test_trace(void **state)
{
    struct fixture *f = *state;
    f->job.nodes[0]->hello_ns = 3 * SECOND;
    f->job.ranks.records[2].started_ns = 0;
    f->job.nodes[0]->stage_ns[STAGE_CONFIG] = SECOND + 1;
    f->job.nodes[0]->stage_ns[STAGE_WAITING] = 2 * SECOND; /* after another stage */
    f->job.nodes[0]->stage_ns[STAGE_HANDSHAKE] = 2 * SECOND + 1000;
    char *text AUTO_FREE = report_trace(&f->job);
    json_t *root = json_loads(text, 0, NULL);
    const json_t *events = json_object_get(root, "traceEvents");
    int connects = 0, starts = 0, waits = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        connects += strcmp(text_of(event, "name"), "connect") == 0;
        starts += strstr(text_of(event, "name"), ": start") != NULL;
        assert_true(json_real_value(json_object_get(event, "dur")) >= 0);
        waits += strcmp(text_of(event, "name"), "waiting") == 0;
        if (strcmp(text_of(event, "name"), "waiting") == 0)
            assert_true(json_real_value(json_object_get(event, "dur")) == 1);
        if (strcmp(text_of(event, "name"), "connect") == 0) {
            assert_true(json_real_value(json_object_get(event, "ts")) == 1e6);
            assert_true(json_real_value(json_object_get(event, "dur")) == 1e6);
        }
    }
    assert_int_equal(connects, 1);
    assert_int_equal(starts, 2);
    assert_int_equal(waits, 1);
    json_decref(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_to_say),
        TEST(test_exit_code),
        TEST(test_terminated_ranks),
        TEST(test_terminated_by_the_user),
        TEST(test_signal),
        TEST(test_terminal_is_not_repeated),
        TEST(test_not_executed),
        TEST(test_own_account),
        TEST(test_likely_cause),
        TEST(test_json),
        TEST(test_json_of_a_likely_cause),
        TEST(test_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
