/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/tree.h"

#define FRAMES_MAX 40

/* "train.py:3 main > /lib/x.py:9 read": frames, the outermost first. */
static size_t parse(char *text, struct stack_frame *frames)
{
    size_t count = 0;
    for (char *at = text; at != NULL && *at != '\0'; count++) {
        char *next = strstr(at, " > "), *colon = strchr(at, ':'), *blank = strchr(at, ' ');
        if (next != NULL)
            *next = '\0';
        *colon = *blank = '\0';
        assert_true(count < FRAMES_MAX);
        frames[count] = (struct stack_frame){
            .function = blank + 1, .file = at, .line = (int)strtol(colon + 1, NULL, 10)};
        at = next != NULL ? next + 3 : NULL;
    }
    return count;
}

static void add(struct stack_tree *tree, int rank, enum stack_role role, const char *frames,
                const char *doing)
{
    char text[1000];
    struct stack_frame list[FRAMES_MAX];
    snprintf(text, sizeof(text), "%s", frames);
    struct stack stack = {.rank = rank, .role = role, .frames = list, .trouble = ""};
    stack.count = parse(text, list);
    stack.holds_gil = strstr(doing, "GIL") != NULL;
    stack.doing = stack.holds_gil ? "running" : doing;
    stack_tree_add(tree, &stack);
}

static void add_trouble(struct stack_tree *tree, int rank, const char *trouble)
{
    stack_tree_add(tree, &(struct stack){.rank = rank, .doing = "", .trouble = trouble});
}

static void expect(struct stack_tree *tree, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    stack_tree_text(tree, &text);
    assert_string_equal(buf_text(&text), wanted);
    stack_tree_destroy(tree);
}

static void test_nothing(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    assert_true(stack_tree_is_empty(tree));
    expect(tree, "");
    stack_tree_destroy(NULL);
}

/* The answers of the nodes come in any order. */
static void test_the_odd_one_comes_first(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    for (int rank = 64; rank >= 0; rank--)
        add(tree, rank, STACK_MAIN,
            rank == 63 ? "train.py:30 main > train.py:80 step > loader.py:112 read"
                       : "train.py:30 main > train.py:88 step > dist.py:7 all_reduce",
            rank == 63 ? "calls read" : "calls futex");
    assert_false(stack_tree_is_empty(tree));
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [0-64] train.py:30 main\n"
                 "      [63] train.py:80 step > loader.py:112 read; calls read\n"
                 "      [0-62,64] train.py:88 step > dist.py:7 all_reduce; calls futex\n");
}

static void test_what_they_do(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    for (int rank = 0; rank < 6; rank++)
        add(tree, rank, STACK_MAIN, "a.py:1 f",
            rank < 3    ? "calls futex"
            : rank == 3 ? "GIL"
            : rank == 4 ? "running"
                        : "");
    add(tree, 6, STACK_MAIN, "b.py:1 f", "GIL");
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [6] b.py:1 f; running; holds the GIL\n"
                 "    [0-5] a.py:1 f; calls futex (0-2), running (3-4); holds the GIL: [3]\n");
}

static void test_threads_and_children(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    for (int rank = 0; rank < 2; rank++) {
        add(tree, rank, STACK_CHILD, "pool.py:5 worker", "calls read");
        add(tree, rank, STACK_MAIN, "a.py:1 f", "");
        for (int i = 0; i < 4; i++)
            add(tree, rank, STACK_OTHER, "threading.py:3 run > a.py:7 g", "");
    }
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [0-1] a.py:1 f\n"
                 "hvdrun: Python stacks, other threads:\n"
                 "    [0-1] threading.py:3 run > a.py:7 g; 8 threads\n"
                 "hvdrun: Python stacks, child processes:\n"
                 "    [0-1] pool.py:5 worker; calls read\n");
}

/* As `hvdrun stacks` shows them. */
static void test_names_of_threads_and_another_style(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    struct buf text AUTO_BUF = BUF_INIT(10000);
    const struct stack_frame frames[] = {{"run", "t.py", 3, false}},
                             bare[] = {{"process cat", "", 0, false}};
    static const char *const names[] = {"reader-0", "reader-1", "reader-0", "", NULL};
    for (int rank = 0; rank < 5; rank++)
        stack_tree_add(tree, &(struct stack){.rank = rank,
                                             .role = STACK_OTHER,
                                             .name = names[rank],
                                             .doing = "calls read",
                                             .frames = frames,
                                             .count = 1,
                                             .trouble = ""});
    stack_tree_add(tree, &(struct stack){.rank = 1,
                                         .name = "x\ny",
                                         .doing = "calls read, waits in pipe_read",
                                         .frames = bare,
                                         .count = 1,
                                         .trouble = ""});
    stack_tree_print(tree, &(struct stack_tree_style){"", "", 2}, &text);
    assert_string_equal(buf_text(&text),
                        "main threads:\n"
                        "    [1] process cat; calls read, waits in pipe_read; thread x?y\n"
                        "other threads:\n"
                        "    [0-4] t.py:3 run; calls read; threads reader-0, reader-1\n");
    buf_clear(&text);
    stack_tree_print(tree, &(struct stack_tree_style){"x ", "", 1}, &text);
    assert_string_equal(buf_text(&text),
                        "x main threads:\n"
                        "    [1] process cat; calls read, waits in pipe_read; thread x?y\n"
                        "x 1 more branch is not shown, to keep this list short\n");
    stack_tree_destroy(tree);
}

/* Rank 1 is where the others have gone on from. */
static void test_a_stack_that_ends_inside_of_another(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    add(tree, 0, STACK_MAIN, "a.py:1 f > a.py:2 g", "calls read");
    add(tree, 1, STACK_MAIN, "a.py:1 f", "running");
    add(tree, 2, STACK_MAIN, "a.py:1 f > a.py:2 g", "calls read");
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [0-2] a.py:1 f\n"
                 "      [1] here; running\n"
                 "      [0,2] a.py:2 g; calls read\n");
}

static void test_names_of_files(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    add(tree, 0, STACK_MAIN, "/home/a/train.py:1 f", "");
    add(tree, 1, STACK_MAIN, "/scratch/train.py:1 f", "");
    add(tree, 2, STACK_MAIN, "/home/a/train.py:0 f", "");
    add(tree, 3, STACK_MAIN, ":0 (12 frames) > x.py:2 g", "");
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [2] train.py f\n"
                 "    [3] (12 frames) > x.py:2 g\n"
                 "    [0-1] train.py:1 f\n");
}

static void test_long_chains(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    add(tree, 0, STACK_MAIN,
        "a.py:1 a > a.py:2 b > a.py:3 c > a.py:4 d > a.py:5 e > a.py:6 f > a.py:7 g > a.py:8 h",
        "");
    add(tree, 1, STACK_MAIN,
        "b.py:1 a > a.py:2 b > a.py:3 c > a.py:4 d > a.py:5 e > a.py:6 f > a.py:7 g", "");
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [0] a.py:1 a > a.py:2 b > (2 more) > a.py:5 e > a.py:6 f > a.py:7 g > "
                 "a.py:8 h\n"
                 "    [1] b.py:1 a > a.py:2 b > a.py:3 c > a.py:4 d > a.py:5 e > a.py:6 f > "
                 "a.py:7 g\n");
}

static void test_troubles(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    add_trouble(tree, 0, "its memory cannot be read");
    add_trouble(tree, 2, "its memory cannot be read");
    add_trouble(tree, 1, "");
    add(tree, 3, STACK_MAIN, "a.py:1 f", "");
    expect(tree, "hvdrun: Python stacks, main threads:\n"
                 "    [1] changes too fast to be read\n"
                 "    [3] a.py:1 f\n"
                 "    [0,2] its memory cannot be read\n");
}

static int lines_in(const char *text)
{
    int lines = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        lines++;
    return lines;
}

static void test_many_branches(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    char frames[64];
    for (int rank = 0; rank < 3000; rank++) {
        snprintf(frames, sizeof(frames), "a.py:1 f > a.py:%d g", rank + 1);
        add(tree, rank, STACK_MAIN, frames, "");
    }
    stack_tree_text(tree, &text);
    assert_int_equal(lines_in(buf_text(&text)), STACK_TREE_LINES + 2);
    /* what there was no room for ends where it would have branched off */
    assert_non_null(strstr(buf_text(&text), "    [0-2999] a.py:1 f\n"));
    assert_non_null(strstr(buf_text(&text), "more branches are not shown, to keep this list"));
    stack_tree_destroy(tree);
}

static void test_words_of_a_liar(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    struct stack_frame frames[1000];
    for (size_t i = 0; i < 1000; i++)
        frames[i] = (struct stack_frame){"f\x1b[2J\n", "/\x9b/", -5, false};
    struct stack stack = {.rank = 0,
                          .role = (enum stack_role)99,
                          .doing = "calls\x07 \n",
                          .frames = frames,
                          .count = 1000,
                          .trouble = ""};
    stack_tree_add(tree, &stack);
    stack_tree_add(tree, &stack);
    add_trouble(tree, 1, "x\ny");
    stack_tree_text(tree, &text);
    assert_int_equal(lines_in(buf_text(&text)), 4);
    for (const char *at = buf_text(&text); *at != '\0'; at++)
        assert_true(*at == '\n' || (unsigned char)*at >= ' ');
    stack_tree_destroy(tree);
}

static void keep(void *context, const struct stack_leaf *leaf)
{
    struct buf *out = context;
    buf_printf(out, "%d:%zu ranks %d.. gil %zu stacks %zu frames %zu %s%s\n", (int)leaf->role,
               leaf->rank_count, leaf->ranks[0], leaf->gil_count, leaf->stacks, leaf->count,
               leaf->count > 0 ? leaf->frames[leaf->count - 1].function : leaf->trouble,
               leaf->doing);
}

static void test_visit(void **state)
{
    (void)state;
    struct stack_tree *tree = stack_tree_create();
    struct buf text AUTO_BUF = BUF_INIT(10000);
    add(tree, 2, STACK_OTHER, "a.py:1 f > a.py:2 g", "");
    add(tree, 1, STACK_MAIN, "a.py:1 f > a.py:2 g", "GIL");
    add(tree, 0, STACK_MAIN, "a.py:1 f > a.py:2 g", "");
    add_trouble(tree, 3, "why");
    stack_tree_visit(tree, keep, &text);
    assert_string_equal(buf_text(&text), "0:1 ranks 3.. gil 0 stacks 1 frames 0 why\n"
                                         "0:2 ranks 0.. gil 1 stacks 2 frames 2 grunning\n"
                                         "1:1 ranks 2.. gil 0 stacks 1 frames 2 g\n");
    stack_tree_destroy(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_the_odd_one_comes_first),
        cmocka_unit_test(test_what_they_do),
        cmocka_unit_test(test_threads_and_children),
        cmocka_unit_test(test_names_of_threads_and_another_style),
        cmocka_unit_test(test_a_stack_that_ends_inside_of_another),
        cmocka_unit_test(test_names_of_files),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_troubles),
        cmocka_unit_test(test_many_branches),
        cmocka_unit_test(test_words_of_a_liar),
        cmocka_unit_test(test_visit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
