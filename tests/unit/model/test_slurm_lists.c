/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed counts and node lists: known ones, malformed ones, and random ones of every shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/allocation/slurm_test.h"

static void expect_counts(const char *text, size_t nodes, const char *expected)
{
    int *counts AUTO_FREE = mem_array(nodes, sizeof(int));
    struct error err = ERROR_INIT;
    struct buf got AUTO_BUF = BUF_INIT(1 << 20);
    if (slurm_counts_parse(text, counts, nodes, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
    for (size_t i = 0; i < nodes; i++)
        buf_printf(&got, "%s%d", i > 0 ? " " : "", counts[i]);
    assert_string_equal(buf_text(&got), expected);
}

static void test_counts(void **state)
{
    (void)state;
    expect_counts("4", 1, "4");
    expect_counts("2(x3),1", 4, "2 2 2 1");
    expect_counts("1,2(x1),3(x2)", 4, "1 2 3 3");
    expect_counts("1000000", 1, "1000000");
    expect_counts("007(x02)", 2, "7 7");
}

static void test_bad_counts(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      ",",
                                      "x",
                                      "2,",
                                      ",2",
                                      "2(x",
                                      "2(x)",
                                      "2(x2",
                                      "2(2)",
                                      "2x2",
                                      "(x2)",
                                      "2(x0)",
                                      "0",
                                      "-1",
                                      "+2",
                                      " 2",
                                      "2 ",
                                      "2(x2)3",
                                      "1000001",
                                      "2(x-1)",
                                      "1,1",
                                      "1,1,1,1",
                                      "2(x2)",
                                      "2(x99999999999999999999)",
                                      "99999999999999999999",
                                      "2((x3))"};
    int counts[3];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct error err = ERROR_INIT;
        if (slurm_counts_parse(bad[i], counts, 3, &err) == 0)
            fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_true(err.text[0] != '\0');
    }
}

static void expect_names(const char *text, const char *expected)
{
    AUTO_STRV struct strv names = STRV_INIT;
    struct error err = ERROR_INIT;
    struct buf got AUTO_BUF = BUF_INIT(1 << 20);
    if (slurm_nodelist_parse(text, &names, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
    for (size_t i = 0; i < names.count; i++)
        buf_printf(&got, "%s%s", i > 0 ? " " : "", names.items[i]);
    assert_string_equal(buf_text(&got), expected);
}

static void test_names(void **state)
{
    (void)state;
    expect_names("n1", "n1");
    expect_names("n[1-3,7],gpu[001-003]", "n1 n2 n3 n7 gpu001 gpu002 gpu003");
    expect_names("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
    expect_names("r[1-2]n[1,3]x,login", "r1n1x r1n3x r2n1x r2n3x login");
    expect_names("n[0-1,08-11]", "n0 n1 n08 n09 n10 n11");
    expect_names("a-b.c_d[9-10]", "a-b.c_d9 a-b.c_d10");
}

static void test_bad_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      ",",
                                      "a,",
                                      "a,,b",
                                      "a[",
                                      "a[]",
                                      "a[1",
                                      "a[1,]",
                                      "a[2-1]",
                                      "a[1-2]]",
                                      "a]b",
                                      "a[[1]]",
                                      "a[x]",
                                      "a b",
                                      "-a",
                                      "a;b",
                                      "a\nb",
                                      "a/b",
                                      "a[1-]",
                                      "a[-1]",
                                      "a[1-2-3]",
                                      "a[1-100001]",
                                      "a[1-100000],b[1-2]",
                                      "a[99999999999999]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        AUTO_STRV struct strv names = STRV_INIT;
        struct error err = ERROR_INIT;
        if (slurm_nodelist_parse(bad[i], &names, &err) == 0)
            fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_true(err.text[0] != '\0');
    }
}

/* Texts of the right letters in any order: never a crash, and what is accepted has exactly as many
 * counts as nodes, each of them in bounds. */
static void test_random_texts(void **state)
{
    (void)state;
    static const char letters[] = "0123456789(x),[]-ab\x7f";
    uint32_t seed = 20260812;
    size_t accepted = 0;
    for (int turn = 0; turn < 200000; turn++) {
        char text[16] = "";
        int counts[6];
        seed = seed * 1664525 + 1013904223;
        size_t length = (seed >> 16) % (sizeof(text) - 1);
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
        }
        size_t nodes = 1 + (seed >> 8) % 6;
        struct error err = ERROR_INIT;
        if (slurm_counts_parse(text, counts, nodes, &err) == 0) {
            accepted++;
            for (size_t i = 0; i < nodes; i++)
                assert_in_range(counts[i], 1, SLURM_COUNT_MAX);
        } else {
            assert_int_equal(err.status, STATUS_USAGE);
        }
        AUTO_STRV struct strv names = STRV_INIT;
        if (length < 8 && slurm_nodelist_parse(text, &names, &err) == 0)
            assert_true(names.count > 0);
    }
    assert_true(accepted > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),       cmocka_unit_test(test_bad_counts),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
