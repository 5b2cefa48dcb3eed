/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/odd_branch.h"

#define FRAMES_MAX 8

/* The functions of one stack, a letter each, in a.py. "": it cannot be read. */
static void add(struct stack_tree *tree, int rank, const char *functions)
{
    struct stack_frame frames[FRAMES_MAX];
    char names[FRAMES_MAX][2];
    struct stack stack = {.rank = rank, .frames = frames, .trouble = ""};
    for (; functions[stack.count] != '\0'; stack.count++) {
        memcpy(names[stack.count], (const char[]){functions[stack.count], '\0'}, 2);
        frames[stack.count] = (struct stack_frame){names[stack.count], "/x/a.py", 1, false};
    }
    stack_tree_add(tree, &stack);
}

/* Rank i has the i-th of these stacks. */
static void expect(const char *const *stacks, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(10000);
    struct stack_tree *tree = stack_tree_create();
    for (int i = 0; stacks[i] != NULL; i++)
        add(tree, i, stacks[i]);
    odd_branch_text(tree, &text);
    assert_string_equal(buf_text(&text), expected);
    stack_tree_destroy(tree);
}

#define EXPECT(expected, ...) expect((const char *const[]){__VA_ARGS__, NULL}, expected)

static void test_one_and_a_quarter(void **state)
{
    (void)state;
    EXPECT("rank 1 is elsewhere: in a.py:1 d; 2 others are in a.py:1 c", "abc", "abd", "abc");
    EXPECT("rank 0 is elsewhere: in a.py:1 e; 2 others are in a.py:1 b", "ade", "abc", "abx");
    EXPECT("rank 2 is elsewhere: in a.py:1 b; 2 others are in a.py:1 c", "abc", "abc", "ab");
    EXPECT("ranks 1,3 are elsewhere: rank 1 is in a.py:1 d; 6 others are in a.py:1 b", "ab", "ad",
           "ab", "ae", "ab", "ab", "ab", "ab");
}

static void test_no_rank_stands_out(void **state)
{
    (void)state;
    EXPECT("", "ab", "ab", "ab");
    EXPECT("", "ab", "ac");
    EXPECT("", "ab", "ab", "ac", "ac");
    EXPECT("", "ab", "ac", "ad");
    EXPECT("", "");
    EXPECT("", "ab", "ab", "");
    EXPECT("", "", "", "ab");
    struct buf text AUTO_BUF = BUF_INIT(100);
    struct stack_tree *tree = stack_tree_create();
    odd_branch_text(tree, &text);
    assert_int_equal(text.length, 0);
    stack_tree_destroy(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_and_a_quarter),
        cmocka_unit_test(test_no_rank_stands_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
