/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun check`: its own words, and that all others stay those of a job. */
#include "cli_fixture.h"

#include "cli/command_line.h"
#include "cli/first_word.h"

#define ARGS_MAX 16

static int count_args(const char *const *argv)
{
    int count = 0;
    while (argv[count] != NULL)
        count++;
    return count;
}

static void expect_taken(const char *const *argv, bool wanted, bool net, bool json,
                         const char *const *left)
{
    struct check_words words;
    char *rest[ARGS_MAX];
    memcpy(rest, argv, ((size_t)count_args(argv) + 1) * sizeof(*rest));
    int count = check_words_take(rest, &words);
    assert_int_equal(words.wanted, wanted);
    assert_int_equal(words.net, net);
    assert_int_equal(words.json, json);
    assert_false(words.gpu);
    assert_string_equal(words.python, "python3");
    assert_int_equal(count, count_args(left));
    assert_null(rest[count]);
    for (int i = 0; i < count; i++)
        assert_string_equal(rest[i], left[i]);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_words(void **state)
{
    (void)state;
    expect_taken(WORDS("hvdrun", "check"), true, false, false, WORDS("hvdrun"));
    expect_taken(WORDS("hvdrun", "check", "--net", "-H", "a", "--json"), true, true, true,
                 WORDS("hvdrun", "-H", "a"));
    expect_taken(WORDS("hvdrun", "check", "check"), true, false, false, WORDS("hvdrun", "check"));
    expect_taken(WORDS("hvdrun", "check", "--", "--net"), true, false, false,
                 WORDS("hvdrun", "--", "--net"));
    expect_taken(WORDS("hvdrun", "--", "check", "--net"), false, false, false,
                 WORDS("hvdrun", "--", "check", "--net"));
    expect_taken(WORDS("hvdrun", "-v", "check"), false, false, false,
                 WORDS("hvdrun", "-v", "check"));
    expect_taken(WORDS("hvdrun", "checks"), false, false, false, WORDS("hvdrun", "checks"));
    expect_taken(WORDS("hvdrun"), false, false, false, WORDS("hvdrun"));
}

/* Returns the number of words that are left. */
static int take_gpu(const char *const *argv, const char *python, char **rest)
{
    struct check_words words;
    memcpy(rest, argv, ((size_t)count_args(argv) + 1) * sizeof(*rest));
    int count = check_words_take(rest, &words);
    assert_true(words.wanted && words.gpu);
    assert_string_equal(words.python, python);
    return count;
}

static void test_gpu(void **state)
{
    (void)state;
    char *rest[ARGS_MAX];
    assert_int_equal(take_gpu(WORDS("hvdrun", "check", "--gpu"), "python3", rest), 1);
    assert_int_equal(take_gpu(WORDS("hvdrun", "check", "--python", "p", "--gpu"), "p", rest), 1);
    assert_int_equal(take_gpu(WORDS("hvdrun", "check", "--gpu", "--python=q"), "q", rest), 1);
    int left = take_gpu(WORDS("hvdrun", "check", "--gpu", "--python"), "python3", rest);
    assert_int_equal(left, 2);
    assert_string_equal(rest[1], "--python");
    left = take_gpu(WORDS("hvdrun", "check", "--gpu", "--python", ""), "python3", rest);
    assert_int_equal(left, 3);
    assert_string_equal(rest[1], "--python");
}

static int parse(const char *const *argv, struct command_line *line, struct error *err)
{
    static char *const env[] = {(char *)"HOME=/nowhere", NULL};
    return command_line_parse(count_args(argv), (char *const *)argv, env, line, err);
}

static void expect_refused(const char *const *argv, const char *part)
{
    struct command_line line;
    struct error err = ERROR_INIT;
    assert_int_equal(parse(argv, &line, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, err.text);
    command_line_destroy(&line);
}

static void test_command_line(void **state)
{
    struct command_line line;
    struct error err = ERROR_INIT;
    (void)state;
    if (parse(WORDS("hvdrun", "check", "-H", "a,b", "--net", "-v"), &line, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(line.check.wanted && line.check.net && !line.check.json);
    assert_string_equal(line.settings.hosts, "a,b");
    assert_int_equal(line.settings.verbose, 1); /* a lone -v is no question here */
    assert_false(line.settings.version);
    assert_int_equal(line.apps.count, 0);
    command_line_destroy(&line);
    if (parse(WORDS("hvdrun", "check", "--help"), &line, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(line.settings.help && line.check.wanted);
    command_line_destroy(&line);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(WORDS("hvdrun", "check", "./train"), "unexpected './train'");
    expect_refused(WORDS("hvdrun", "check", "--", "./train"), "unexpected './train'");
    expect_refused(WORDS("hvdrun", "check", "-H"), "-H");
    expect_refused(WORDS("hvdrun", "check", "--nett"), "--nett");
    expect_refused(WORDS("hvdrun", "check", "-H", "a", "--hostfile", "b"), "contradict");
    expect_refused(WORDS("hvdrun", "--net", "check"), "--net");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_gpu),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
