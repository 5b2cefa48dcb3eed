/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/first_word.h"

#include <sys/stat.h>

#include "cli_fixture.h"

static int check(const char *text, const char *path, struct error *err)
{
    struct strv words AUTO_STRV = STRV_INIT;
    split_words(text, &words);
    *err = (struct error)ERROR_INIT;
    return first_word_check((int)words.count, words.items, path, err);
}

static void passes(const char *text)
{
    struct error err;
    if (check(text, "/bin:/usr/bin", &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
}

static void refused(const char *text, const char *expected)
{
    struct error err;
    assert_int_equal(check(text, "/nowhere", &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
}

static void test_other_words(void **state)
{
    (void)state;
    passes("");
    passes("check -H a");
    passes("./help");
    passes("-- help");
    passes("-np 2 help");
    passes("no-such-program");
    passes("sh -c help");
    passes("head x");
}

static void test_refused(void **state)
{
    (void)state;
    refused("cancel 17", "'cancel' is not a command of hvdrun: 'hvdrun stop' ends a job ('hvdrun "
                         "-- cancel' starts a program named cancel)");
    refused("statsu", "'statsu' is neither a command of hvdrun nor a program in PATH: did you mean "
                      "'hvdrun status'? ('hvdrun -- statsu' starts a program named statsu)");
    refused("chekc", "'chekc' is neither a command of hvdrun nor a program in PATH: did you mean "
                     "'hvdrun check'? ('hvdrun -- chekc' starts a program named chekc)");
    refused("kill 17", "'kill' is not a command of hvdrun: 'hvdrun stop' ends a job, and 'hvdrun "
                       "signal' sends it a signal ('hvdrun -- kill' starts a program named kill)");
    static const char *const words[] = {"stats", "list", "cancel", "version",
                                        "start", "jobs", "usage"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct error err;
        assert_int_equal(check(words[i], "/nowhere", &err), -1);
    }
}

/* A program of that name is not what `hvdrun kill` means. */
static void test_kill(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(check("kill 17", "/bin:/usr/bin", &err), -1);
    assert_int_equal(check("-- kill 17", "/bin:/usr/bin", &err), 0);
}

/* "help stop" becomes "stop --help". */
static void test_help(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"help", "hvdrun --help"},
        {"help stop", "hvdrun stop --help"},
        {"help check", "hvdrun check --help"},
        {"help all", "hvdrun --help all"},
        {"stop help", "hvdrun stop help"},
        {"help sotp", "hvdrun does not have a command 'sotp': did you mean 'stop'?"},
        {"help train.py", "hvdrun does not have a command 'train.py'"},
        {"help stop now", "expected: hvdrun help [COMMAND | all]"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct strv words AUTO_STRV = STRV_INIT;
        struct buf got AUTO_BUF = BUF_INIT(1024);
        struct error err = ERROR_INIT;
        split_words(table[i][0], &words);
        int argc = (int)words.count;
        char **argv = words.items, *room[4];
        if (first_word_help(&argc, &argv, room, &err) < 0)
            buf_puts(&got, err.text);
        for (int at = 0; at < argc && err.text[0] == '\0'; at++)
            buf_printf(&got, "%s%s", at > 0 ? " " : "", argv[at]);
        if (strncmp(buf_text(&got), table[i][1], strlen(table[i][1])) != 0)
            fail_msg("'%s' became '%s'", table[i][0], buf_text(&got));
    }
}

/* Only if there is such a file does the message name it. */
static void test_file_of_that_name(void **state)
{
    (void)state;
    char *path = new_file("list", "#!/bin/sh\n");
    assert_int_equal(chmod(path, 0755), 0);
    char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    char here[4096];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(folder), 0);
    refused("list",
            "'list' is neither a command of hvdrun nor a program in PATH: 'hvdrun ps' lists "
            "your jobs ('hvdrun ./list' starts a program named list)");
    assert_int_equal(chdir(here), 0);
    free(folder);
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_file_of_that_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
