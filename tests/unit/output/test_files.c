/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/copies_test.h"

static void expect(const char *text, int ranks, bool merge, int rank, const char *stream,
                   const char *path, bool distinct)
{
    struct error err = ERROR_INIT;
    struct files *files = files_create(text, ranks, merge, &err);
    assert_non_null(files);
    struct label_facts facts = {
        .rank = rank, .local_rank = rank % 4, .host = "n1", .stream = stream};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    files_path(files, &facts, &out);
    assert_string_equal(buf_text(&out), path);
    assert_int_equal(files_distinct(files), distinct);
    files_destroy(files);
}

static void folders_as_horovodrun(void **state)
{
    (void)state;
    expect("out", 1, false, 0, "stdout", "out/rank.0/stdout", true);
    expect("out", 10, false, 9, "stderr", "out/rank.9/stderr", true);
    expect("out", 11, false, 9, "stdout", "out/rank.09/stdout", true);
    expect("out", 11, false, 10, "stdout", "out/rank.10/stdout", true);
    expect("/a/b", 100, false, 7, "stdout", "/a/b/rank.07/stdout", true);
    expect("/a/b", 101, false, 7, "stdout", "/a/b/rank.007/stdout", true);
    expect("out", 4, true, 1, "stderr", "out/rank.1/stdout", false);
}

static void patterns(void **state)
{
    (void)state;
    expect("log.%r.%s", 4, false, 2, "stderr", "log.2.stderr", true);
    expect("%h/%l-%s", 4, false, 2, "stdout", "n1/2-stdout", true);
    expect("log.%r", 4, false, 2, "stderr", "log.2", false);
    expect("%h.%s", 4, false, 2, "stderr", "n1.stderr", false);
    expect("%r%%", 4, false, 2, "stderr", "2%", false);
    expect("%r.%s", 4, true, 2, "stderr", "2.stdout", false);
}

static void wrong_patterns(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "%z", "log.%t", "log%"};
    for (size_t i = 0; i < 4; i++) {
        struct error err = ERROR_INIT;
        assert_null(files_create(texts[i], 2, false, &err));
        assert_non_null(strstr(err.text, "--output-filename"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_as_horovodrun),
        cmocka_unit_test(patterns),
        cmocka_unit_test(wrong_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
