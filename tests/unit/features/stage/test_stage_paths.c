/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that follow a root to its copy, and those that stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/stage/stage.h"

#define ENTRY(what, path)              \
    {                                  \
        .kind = (what), .name = (path) \
    }
#define ENTRIES(...)                                                                    \
    &(const struct stage_list)                                                          \
    {                                                                                   \
        .files = (struct stage_file[]){__VA_ARGS__},                                    \
        .count = sizeof((struct stage_file[]){__VA_ARGS__}) / sizeof(struct stage_file) \
    }

static struct stage_move moves[] = {
    {"/home/a/venv", "/s/1/venv",
     ENTRIES(ENTRY('d', "venv"), ENTRY('d', "venv/bin"), ENTRY('x', "venv/bin/python"),
             ENTRY('l', "venv/lib64"), ENTRY('d', "venv/in"))},
    {"/home/a/venv/in", "/s/2/in", ENTRIES(ENTRY('d', "in"), ENTRY('f', "in/x"))},
    {"/home/a/train.py", "/s/3/train.py", ENTRIES(ENTRY('f', "train.py"))}};
static const struct stage_moves all = {moves, 3}, none = {moves, 0};

static void expect_taken(char *got, const char *expected)
{
    if (expected == NULL)
        assert_null(got);
    else
        assert_string_equal(got, expected);
    free(got);
}

static void test_clean(void **state)
{
    (void)state;
    expect_taken(stage_path_clean("/a/b", "c"), "/a/b/c");
    expect_taken(stage_path_clean("/a/b", "./../c//d/."), "/a/c/d");
    expect_taken(stage_path_clean("/a/b", "/x/"), "/x");
    expect_taken(stage_path_clean("/a", "../../.."), "/");
    expect_taken(stage_path_clean("/", "."), "/");
}

static void test_paths(void **state)
{
    (void)state;
    expect_taken(stage_move_path(&all, "/home/a", "venv/bin/python"), "/s/1/venv/bin/python");
    expect_taken(stage_move_path(&all, "/home/a", "/home/a/venv"), "/s/1/venv");
    expect_taken(stage_move_path(&all, "/home/a", "venv/in/x"), "/s/2/in/x");
    expect_taken(stage_move_path(&all, "/home/a", "venv/lib64/y"), "/s/1/venv/lib64/y");
    expect_taken(stage_move_path(&all, "/home/a", "venv/new"), NULL);
    expect_taken(stage_move_path(&all, "/home/a", "venv2"), NULL);
    expect_taken(stage_move_path(&all, "/home/a", "venv/../x"), NULL);
    expect_taken(stage_move_path(&all, "/home/b", "venv"), NULL);
    expect_taken(stage_move_path(&none, "/home/a", "venv"), NULL);
}

/* What comes behind the name of the root is the user's, to the byte. */
static void test_rest(void **state)
{
    (void)state;
    expect_taken(stage_move_path(&all, "/home/a", "venv/."), "/s/1/venv/.");
    expect_taken(stage_move_path(&all, "/home/a", "./venv//bin/"), "/s/1/venv//bin/");
    expect_taken(stage_move_path(&all, "/home/a", "/home//a/venv/bin/../bin"),
                 "/s/1/venv/bin/../bin");
    expect_taken(stage_move_path(&all, "/home/a", "venv/../venv/bin"), "/s/1/venv/bin");
    expect_taken(stage_move_path(&all, "/home/a/venv/bin", "python"), "/s/1/venv/bin/python");
    expect_taken(stage_move_path(&all, "/home/a/venv/bin", ".."), "/s/1/venv/bin/..");
    expect_taken(stage_move_path(&all, "/home/a/venv/bin", "/home/a/venv/bin"), "/s/1/venv/bin");
    expect_taken(stage_move_word(&all, "/home/a", "venv/bin/python http://x//y a/../b"), NULL);
}

static void test_words(void **state)
{
    (void)state;
    expect_taken(stage_move_word(&all, "/home/a", "venv"), NULL);
    expect_taken(stage_move_word(&all, "/home/a", "./venv"), "/s/1/venv");
    expect_taken(stage_move_word(&all, "/home/a", "train.py"), "/s/3/train.py");
    expect_taken(stage_move_word(&all, "/home", "train.py"), NULL);
    expect_taken(stage_move_word(&all, "/home/a", "--x=/home/a/venv"), NULL);
    expect_taken(stage_move_word(&all, "/home/a", ""), NULL);
}

static void test_variables(void **state)
{
    (void)state;
    expect_taken(stage_move_variable(&all, "PATH=/bin:/home/a/venv/bin::/usr/bin"),
                 "PATH=/bin:/s/1/venv/bin::/usr/bin");
    expect_taken(stage_move_variable(&all, "PATH=home/a/venv/bin:/bin"), NULL);
    expect_taken(stage_move_variable(&all, "VIRTUAL_ENV=/home/a/venv"), "VIRTUAL_ENV=/s/1/venv");
    expect_taken(stage_move_variable(&all, "PWD=/home/a/venv"), NULL);
    expect_taken(stage_move_variable(&all, "PATHS=/home/a/venv"), NULL);
    expect_taken(stage_move_variable(&all, "PATH="), NULL);
    expect_taken(stage_move_variable(&all, "PATH"), NULL);
}

static void test_links(void **state)
{
    (void)state;
    expect_taken(stage_link_target("/r", "/r/a", "../b"), "../b");
    expect_taken(stage_link_target("/r", "/r/a", "/r/b/c"), "../b/c");
    expect_taken(stage_link_target("/r", "/r/a", "/r/a"), ".");
    expect_taken(stage_link_target("/r", "/r/a", "/r/ab"), "../ab");
    expect_taken(stage_link_target("/r", "/r", "/r/a/b"), "a/b");
    expect_taken(stage_link_target("/r", "/r/a/b", "/r"), "../..");
    expect_taken(stage_link_target("/r", "/r/a", "../../x"), "/x");
    expect_taken(stage_link_target("/r", "/r/a", "/usr/bin/python3"), "/usr/bin/python3");
    expect_taken(stage_link_target("/r", "/r/a", "../../r2"), "/r2");
}

static void expect_root(const char *text, const char *path, const char *dest)
{
    struct stage_root_words words;
    assert_int_equal(stage_root_parse(text, &words, NULL), 0);
    expect_taken(words.path, path);
    expect_taken(words.dest, dest);
}

static void test_roots(void **state)
{
    struct stage_root_words words;
    struct error err = ERROR_INIT;
    (void)state;
    expect_root("a", "a", NULL);
    expect_root("a:b", "a", "b");
    expect_root("a\\:b", "a:b", NULL);
    expect_root("a\\:b:/c", "a:b", "/c");
    expect_root("a\\b", "a\\b", NULL);
    assert_int_equal(stage_root_parse(":b", &words, &err), -1);
    assert_int_equal(stage_root_parse("a:", &words, &err), -1);
    assert_int_equal(stage_root_parse("", &words, &err), -1);
    assert_string_equal(err.text, "'': expected PATH or PATH:DEST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),     cmocka_unit_test(test_paths),
        cmocka_unit_test(test_rest),      cmocka_unit_test(test_words),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_links),
        cmocka_unit_test(test_roots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
