/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "features/usage/usage_marks.h"

/* The marks of the ranks, in the order in which they are now. */
static void expect(const char *usage, const char *wanted)
{
    char *text AUTO_FREE = mem_strdup(usage);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *root = json_loads(text, 0, NULL), *result = json_array();
    assert_non_null(root);
    usage_marks_set(root);
    const json_t *ranks = json_object_get(root, "ranks");
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *rank = json_array_get(ranks, i);
        json_array_append_new(result, json_pack("[O, O]", json_object_get(rank, "rank"),
                                                json_object_get(rank, "marks")));
    }
    expect_json(result, wanted);
    json_decref(root);
}

static void test_none(void **state)
{
    (void)state;
    expect("{}", "[]");
    expect("{'ranks': []}", "[]");
    expect("{'ranks': [{'rank': 0, 'cpus': 1}, {'rank': 1}, {'rank': 2, 'cpus': 'x'}]}",
           "[[0, {}], [1, {}], [2, {}]]");
}

static void test_those_that_differ_come_first(void **state)
{
    (void)state;
    expect(
        "{'ranks': [{'rank': 0, 'cpus': 1, 'threads': 40}, {'rank': 1, 'cpus': 1, 'threads': 41},"
        "{'rank': 2, 'cpus': 0.1, 'threads': 40}, {'rank': 3, 'cpus': 3, 'threads': 90},"
        "{'rank': 4, 'cpus': 1, 'threads': 40}]}",
        "[[3, {'cpus': 'more', 'threads': 'more'}], [2, {'cpus': 'less'}], [0, {}], [1, {}], "
        "[4, {}]]");
}

/* Of the progress, the percent; a rank that is far behind by the rules of stragglers is marked. */
static void test_progress(void **state)
{
    (void)state;
    expect("{'ranks': [{'rank': 0, 'progress': {'percent': 50}}, "
           "{'rank': 1, 'progress': {'percent': 51}}, {'rank': 2, 'progress': {'percent': 20}, "
           "'straggler': true}, {'rank': 3, 'progress': {'percent': 50}}]}",
           "[[2, {'progress': 'less', 'straggler': 'less'}], [0, {}], [1, {}], [3, {}]]");
}

/* The most different rank of all has no value at all. */
static void test_no_value_yet(void **state)
{
    (void)state;
    expect("{'ranks': [{'rank': 0, 'up_s': 20, 'last_output_s': 1}, "
           "{'rank': 1, 'up_s': 20, 'last_output_s': 2}, {'rank': 2, 'up_s': 20}, "
           "{'rank': 3, 'up_s': 20, 'last_output_s': 1, 'progress': {'percent': 5}}]}",
           "[[2, {'last_output_s': 'none'}], [0, {}], [1, {}], [3, {}]]");
    expect("{'ranks': [{'rank': 0, 'up_s': 20, 'progress': {'percent': 5}}, "
           "{'rank': 1, 'up_s': 20, 'progress': {'percent': 5}}, {'rank': 2, 'up_s': 20}]}",
           "[[2, {'progress': 'none'}], [0, {}], [1, {}]]");
    expect("{'ranks': [{'rank': 0, 'up_s': 20, 'last_output_s': 1}, {'rank': 1, 'up_s': 20}, "
           "{'rank': 2, 'up_s': 20}, {'rank': 3, 'up_s': 20, 'last_output_s': 1}]}",
           "[[0, {}], [1, {}], [2, {}], [3, {}]]");
    expect("{'ranks': [{'rank': 0, 'up_s': 20, 'last_output_s': 1}, "
           "{'rank': 1, 'up_s': 20, 'last_output_s': 1}, {'rank': 2, 'up_s': 4}, "
           "{'rank': 3, 'up_s': 20, 'state': 'exited'}]}",
           "[[0, {}], [1, {}], [2, {}], [3, {}]]");
}

/* Small differences are usual, and so is any amount of input and output. */
static void test_what_is_usual(void **state)
{
    (void)state;
    expect("{'ranks': [{'rank': 0, 'processes': 2, 'written_bytes': 1e12, 'cpus': 0.05},"
           "{'rank': 1, 'processes': 1, 'written_bytes': 0, 'cpus': 0.2},"
           "{'rank': 2, 'processes': 1, 'written_bytes': 0, 'cpus': 0.05},"
           "{'rank': 3, 'processes': 1, 'written_bytes': 0, 'cpus': 0.05}]}",
           "[[0, {}], [1, {}], [2, {}], [3, {}]]");
}

static void test_values(void **state)
{
    (void)state;
    json_t *object =
        json_pack("{s:f, s:{s:i}, s:s}", "cpus", 1.5, "progress", "percent", 7, "host", "a");
    assert_true(usage_value(object, "cpus") == 1.5);
    assert_true(usage_value(object, "progress") == 7);
    assert_true(isnan(usage_value(object, "host")));
    assert_true(isnan(usage_value(object, "threads")));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),     cmocka_unit_test(test_those_that_differ_come_first),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_what_is_usual),
        cmocka_unit_test(test_values),   cmocka_unit_test(test_no_value_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
