/* SPDX-License-Identifier: Apache-2.0 */
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
#include "model/plan/rank_list.h"

/* "host cpus; ..." of all ranks. */
static void expect(const char *file, const char *expected)
{
    struct rank_list list = {.count = 0};
    struct error err = ERROR_INIT;
    if (rankfile_parse(file, strlen(file), "ranks", &list, &err) < 0)
        fail_msg("%s", err.text);
    struct buf got = BUF_INIT(4096);
    for (size_t i = 0; i < list.count; i++) {
        const struct rank_place *place = &list.items[i];
        if (place->host < 0)
            buf_printf(&got, "%s+n%d", i > 0 ? "; " : "", -1 - place->host);
        else
            buf_printf(&got, "%s%s", i > 0 ? "; " : "", list.names.items[place->host].name);
        buf_printf(&got, "%s%s", place->cpus == NULL ? "" : " ", place->cpus ? place->cpus : "");
    }
    assert_string_equal(buf_text(&got), expected);
    buf_destroy(&got);
    rank_list_destroy(&list);
}

static void test_rankfiles(void **state)
{
    (void)state;
    expect("rank 0=a slot=0-3\nrank 1=b slot=1:0-2\n", "a 0-3; b 1:0-2");
    /* Open MPI's manual, with its relative hosts */
    expect("rank 0=+n0 slot=0\nrank 1=+n0 slot=1\nrank 2=+n1 slot=1-2\nrank 3=+n2 slot=0:1,1:0-2\n",
           "+n0 0; +n0 1; +n1 1-2; +n2 0:1,1:0-2");
    expect("# all of them\r\n\r\nrank 1 = b slots = 0:*  # late\r\n\trank 0=a\r\n", "a; b 0:*");
    expect("\xef\xbb\xbfRANK 0=node-1.example SLOT=4,6,8-9", "node-1.example 4,6,8-9");
    expect("rank 0=[fe80::1] slot=*\nrank 1=fe80::2 slot=0:0,1;1:0",
           "fe80::1 *; fe80::2 0:0,1;1:0");
    expect("rank 2=a\nrank 0=b\nrank 1=a\n", "b; a; a");
    expect("rank 0=a slot=65535\nrank 1=a slot=0000001\n", "a 65535; a 0000001");
}

static void refuse(const char *file, size_t length, const char *text)
{
    struct rank_list list = {.count = 0};
    struct error err = ERROR_INIT;
    if (rankfile_parse(file, length, "ranks", &list, &err) == 0)
        fail_msg("'%s' was taken", file);
    assert_int_equal(err.status, STATUS_USAGE);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    assert_null(strchr(err.text, '\n'));
    rank_list_destroy(&list);
}

static void test_bad_rankfiles(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text;
    } cases[] = {
        {"", "ranks names no rank; expected lines as in 'rank 0=node1 slot=0-3'"},
        {"# nothing\n\n", "names no rank"},
        {"rank 0=a\nnode1 slots=4\n", "ranks:2: 'node1 slots=4': expected 'rank N=HOST slot=CPUS'"},
        {"rank\n", "ranks:1: 'rank': '' is not a rank; expected a whole number, 0 or more"},
        {"rank 0\n", "expected =HOST after the rank"},
        {"rank 0=\n", "'' is not a host"},
        {"rank -1=a\n", "'-1' is not a rank"},
        {"rank x=a\n", "'x' is not a rank"},
        {"rank 99999999999999999999=a\n", "is not a rank"},
        {"rank 4000000000=a\n", "is not a rank"},
        {"rank 0=a\nrank 2=a\nrank 3=a\n", "ranks: no line for rank 1, but line 3 has rank 3"},
        {"rank 1=a\n", "no line for rank 0, but line 1 has rank 1"},
        {"rank 0=a\nrank 700=a\n", "ranks:2: 'rank 700=a': rank 700, but the file is too short"},
        {"rank 0=a\nrank 1=b\nrank 0=b\n",
         "ranks:3: 'rank 0=b': rank 0 has a line already, line 1"},
        {"rank 0=-rf\n", "'-rf' is not a host"},
        {"rank 0=a;b\n", "'a;b' is not a host"},
        {"rank 0=+n\n", "'+n' is not a host"},
        {"rank 0=+x1\n", "'+x1' is not a host"},
        {"rank 0=+n-1\n", "is not a host"},
        {"rank 0=+n9999999999\n", "is not a host"},
        {"rank 0=a slot\n", "'slot' is unknown here; expected slot=CPUS"},
        {"rank 0=a cores=1\n", "'cores' is unknown here"},
        {"rank 0=a slot=\n", "expected one list of CPUs"},
        {"rank 0=a slot=0 1\n", "expected one list of CPUs without blanks"},
        {"rank 0=a slot=x\n", "'x' is not a list of CPUs; expected one as in 0-3,8 or 1:0-2"},
        {"rank 0=a slot=0-\n", "'0-' is not"},
        {"rank 0=a slot=-3\n", "'-3' is not"},
        {"rank 0=a slot=0,,1\n", "'0,,1' is not"},
        {"rank 0=a slot=0,\n", "'0,' is not"},
        {"rank 0=a slot=1:\n", "'1:' is not"},
        {"rank 0=a slot=1:2:3\n", "'1:2:3' is not"},
        {"rank 0=a slot=0-1-2\n", "'0-1-2' is not"},
        {"rank 0=a slot=9999999\n", "is not a list of CPUs"},
        {"rank 0=a slot=65536\n",
         "'65536' is not a list of CPUs; expected one as in 0-3,8 or 1:0-2 "
         "(package 1, cores 0 to 2); no machine has a core above 65535"},
        {"rank 0=a slot=3-1\n", "'3-1' is not a list of CPUs"},
        {"rank 0=a slot=\x1b[31m\n", "'?[31m' is not"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse(cases[i].file, strlen(cases[i].file), cases[i].text);
    refuse("rank 0=a\0\n", 10, "ranks is not a text file: it holds a NUL byte");
}

/* Every byte of a good file replaced by every other one: an answer, and no more ranks than lines.
 */
static void test_one_byte_wrong(void **state)
{
    (void)state;
    static const char good[] = "rank 0=a slot=0-3\nrank 1=+n1 slot=1:0,2\n";
    char file[sizeof(good)];
    for (size_t i = 0; i < sizeof(good) - 1; i++) {
        for (int byte = 0; byte < 256; byte++) {
            struct rank_list list = {.count = 0};
            struct error err = ERROR_INIT;
            memcpy(file, good, sizeof(good));
            file[i] = (char)byte;
            int result = rankfile_parse(file, sizeof(good) - 1, "ranks", &list, &err);
            if (result < 0)
                assert_int_equal(err.status, STATUS_USAGE);
            else
                assert_in_range(list.count, 1, 2);
            rank_list_destroy(&list);
        }
    }
}

static void test_a_long_rankfile(void **state)
{
    (void)state;
    struct buf file = BUF_INIT(1 << 28);
    for (int i = 199999; i >= 0; i--)
        buf_printf(&file, "rank %d=n%d slot=%d\n", i, i % 5000, i % 64);
    struct rank_list list = {.count = 0};
    struct error err = ERROR_INIT;
    assert_int_equal(rankfile_parse(buf_text(&file), file.length, "ranks", &list, &err), 0);
    assert_int_equal(list.count, 200000);
    assert_int_equal(list.names.count, 5000);
    assert_string_equal(list.items[64].cpus, "0");
    rank_list_destroy(&list);
    buf_destroy(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rankfiles),
        cmocka_unit_test(test_bad_rankfiles),
        cmocka_unit_test(test_one_byte_wrong),
        cmocka_unit_test(test_a_long_rankfile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
