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
    refused("help", "'help' is neither a command of hvdrun nor a program in PATH: 'hvdrun --help' "
                    "lists the options and commands ('hvdrun -- help' starts a program named "
                    "help)");
    refused("cancel 17", "'cancel' is neither a command of hvdrun nor a program in PATH: 'hvdrun "
                         "stop' ends a job ('hvdrun -- cancel' starts a program named cancel)");
    refused("statsu", "'statsu' is neither a command of hvdrun nor a program in PATH: did you mean "
                      "'hvdrun status'? ('hvdrun -- statsu' starts a program named statsu)");
    refused("chekc", "'chekc' is neither a command of hvdrun nor a program in PATH: did you mean "
                     "'hvdrun check'? ('hvdrun -- chekc' starts a program named chekc)");
    static const char *const words[] = {"stats", "list", "cancel", "version", "start"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct error err;
        assert_int_equal(check(words[i], "/nowhere", &err), -1);
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
        cmocka_unit_test(test_file_of_that_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
