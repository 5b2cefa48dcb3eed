/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks that were shown last, in the report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "stacks/tree.h"

static json_t *reported(struct fixture *f)
{
    json_t *root = json_object();
    stack_tree_part.report(&f->job, root);
    json_t *stacks = json_incref(json_object_get(root, "stacks"));
    json_decref(root);
    return stacks;
}

static void add_stack(struct stack_tree *tree, int rank, const struct stack_frame *frames,
                      size_t count, const char *trouble)
{
    struct stack stack = {.rank = rank,
                          .holds_gil = rank == 1,
                          .doing = count > 0 ? "calls futex" : "",
                          .frames = frames,
                          .count = count,
                          .trouble = trouble};
    stack_tree_add(tree, &stack);
}

static void test_stacks(void **state)
{
    static const struct stack_frame frames[] = {{"main", "train.py", 12, false},
                                                {"step", "", 0, true}};
    struct fixture *f = *state;
    assert_null(reported(f));
    struct stack_tree *tree = stack_tree_create();
    f->job.own[PART_stack_tree] = tree;
    assert_null(reported(f));
    add_stack(tree, 0, frames, 2, "");
    add_stack(tree, 1, frames, 2, "");
    add_stack(tree, 2, NULL, 0, "not Python");
    json_t *stacks = reported(f);
    json_t *last = json_array_get(stacks, 1);
    expect_json(json_incref(json_array_get(stacks, 0)),
                "{'ranks': [2], 'thread': 'main',"
                " 'count': 1, 'doing': null, 'names': null, 'gil_ranks': [], 'frames': [],"
                " 'trouble': 'not Python'}");
    expect_json(
        json_incref(last),
        "{'ranks': [0, 1], 'thread': 'main', 'count': 2, 'doing': 'calls futex', 'names': null,"
        " 'gil_ranks': [1], 'trouble': null, 'frames': ["
        "  {'function': 'main', 'file': 'train.py', 'line': 12},"
        "  {'function': 'step', 'file': null, 'line': null, 'native': true}]}");
    assert_int_equal(json_array_size(stacks), 2);
    json_decref(stacks);
    stack_tree_destroy(tree);
    f->job.own[PART_stack_tree] = NULL;
}

static void test_stacks_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct stack_tree *tree = stack_tree_create();
    f->job.own[PART_stack_tree] = tree;
    for (int i = 1; i <= 501; i++) {
        struct stack_frame frame = {"main", "train.py", i, false};
        struct stack stack = {.role = i > 250 ? STACK_OTHER : STACK_MAIN,
                              .doing = "",
                              .frames = &frame,
                              .count = 1,
                              .trouble = ""};
        stack_tree_add(tree, &stack);
    }
    json_t *stacks = reported(f);
    assert_int_equal(json_array_size(stacks), 500);
    json_decref(stacks);
    stack_tree_destroy(tree);
    f->job.own[PART_stack_tree] = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stacks_are_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
