/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forks.h"

#include "cli_fixture.h"

extern char **environ;

/* argv and envp in one block, as the kernel lays them out. */
static char block[32];
static char *argv[4], *envp[3];

static int setup(void **state)
{
    (void)state;
    memcpy(block, "hvdrun\0-np\0two\0A=1\0B=22", 24);
    argv[0] = block, argv[1] = block + 7, argv[2] = block + 11, argv[3] = NULL;
    envp[0] = block + 15, envp[1] = block + 19, envp[2] = NULL;
    return 0;
}

static void test_area(void **state)
{
    (void)state;
    struct process_title title = process_title_of(argv, envp);
    assert_ptr_equal(title.area, block);
    assert_int_equal(title.room, 24);
    envp[0] = (char *)"A=1"; /* elsewhere: setenv() has been here */
    title = process_title_of(argv, envp);
    assert_int_equal(title.room, 15);
    argv[1] = (char *)"-np";
    title = process_title_of(argv, envp);
    assert_int_equal(title.room, 7);
    argv[0] = NULL;
    title = process_title_of(argv, envp);
    assert_int_equal(title.room, 0);
    process_title_set(&title, "x");
}

static void expect(const char *text, const char *shown)
{
    struct process_title title = process_title_of(argv, envp);
    char **before = environ;
    setenv("PROCESS_TITLE_TEST", "kept", 1);
    process_title_set(&title, text);
    assert_string_equal(block, shown);
    assert_int_equal(block[24], 0);
    assert_string_equal(getenv("PROCESS_TITLE_TEST"), "kept");
    for (char **pair = environ; *pair != NULL; pair++)
        free(*pair);
    free(environ);
    environ = before;
}

static void test_text(void **state)
{
    setup(state);
    expect("an agent", "an agent");
    setup(state);
    expect("fifteen letters", "fifteen letters");
    setup(state);
    expect("fourteen bytes", "fourteen bytes");
    setup(state);
    expect("this is longer than there is room", "this is longer than the");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_area, setup),
        cmocka_unit_test_setup(test_text, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
