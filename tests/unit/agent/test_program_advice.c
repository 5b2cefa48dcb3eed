/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/room_test.h"
#include "base/mem.h"
#include "base/status.h"

static char folder[] = "/tmp/hvdrun-test-XXXXXX";

static int setup(void **state)
{
    (void)state;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* What becomes of the error for FOLDER/name with this text and mode, named as ./name. */
static void expect(const char *name, const char *text, mode_t mode, const char *advice)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    char *word AUTO_FREE = mem_printf("./%s", name), *expected AUTO_FREE = NULL;
    struct error err = {.status = STATUS_NOT_EXECUTABLE, .errnum = EACCES, .text = "denied"};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file) + chmod(path, mode), 0);
    program_advice(word, folder, &err);
    expected = mem_printf("denied%s", advice);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_NOT_EXECUTABLE);
    assert_int_equal(err.errnum, EACCES);
    err = (struct error){.errnum = EACCES, .text = "denied"};
    program_advice(path, "/nowhere", &err); /* an absolute path needs no folder */
    assert_string_equal(err.text, expected);
    unlink(path);
}

static void test_scripts(void **state)
{
    (void)state;
    static const char chmod_or[] = "; chmod +x makes it executable, or write ";
    char *python AUTO_FREE = mem_printf("%spython3 in front of it", chmod_or);
    char *shell AUTO_FREE = mem_printf("%s/bin/sh in front of it", chmod_or);
    expect("train.py", "print(1)\n", 0644, python);
    expect("train", "#!/usr/bin/env python3\n", 0644, python);
    expect("train", "#! /bin/sh -e\n", 0600, shell);
    expect("train", "#!/usr/bin/env -S x\n", 0644,
           "; chmod +x makes it executable, or write /usr/bin/env in front of it");
    expect("data",
           "\x7f"
           "ELF",
           0644, "; chmod +x makes it executable");
    expect("empty", "#!", 0644, "; chmod +x makes it executable");
    expect("empty", "", 0644, "; chmod +x makes it executable");
    expect("empty", "#!\n/bin/sh\n", 0644, "; chmod +x makes it executable");
    expect("train", "#!/env python3\n", 0644,
           "; chmod +x makes it executable, or write /env in front of it");
}

/* Somebody made it executable, for others. It is not a file. It has another problem. */
static void test_other_errors(void **state)
{
    (void)state;
    struct error err = {.errnum = EACCES, .text = "denied"};
    expect("train.py", "print(1)\n", 0654, "");
    program_advice(folder, NULL, &err);
    program_advice("./none", folder, &err);
    program_advice("none", folder, &err);
    program_advice("./none", folder, NULL);
    assert_string_equal(err.text, "denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scripts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_errors, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
