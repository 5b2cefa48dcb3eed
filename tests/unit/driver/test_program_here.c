/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "driver/start/start_test.h"

static void expect(const char *program, const char *wdir, const char *expected)
{
    char *text AUTO_FREE = program_here_text("H lacks it", program, "/nowhere:/bin", wdir);
    assert_string_equal(text, expected);
}

static void test_text(void **state)
{
    (void)state;
    static const char here[] = "H lacks it; this machine has /bin/sh, but it must be at the same "
                               "path on every host: copy it there, or use a shared folder";
    expect("/bin/sh", NULL, here);
    expect("sh", NULL, here);
    expect("./sh", "/bin",
           "H lacks it; this machine has /bin/./sh, but it must be at the same path on every host: "
           "copy it there, or use a shared folder");
    expect("./sh", "/nowhere", "H lacks it");
    expect("/nowhere/sh", NULL, "H lacks it");
    expect("no-such-program", NULL, "H lacks it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
