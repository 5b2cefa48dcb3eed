/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/hosts/discovered.h"
#include "model/hosts/hostfile.h"

/* As "name:slots user@name:slots", '!' after slots that were given. */
static char *list_text(const struct host_list *list)
{
    struct buf text = BUF_INIT(1 << 20);
    for (size_t i = 0; i < list->count; i++) {
        const struct host *host = &list->items[i];
        buf_printf(&text, "%s%s%s%s:%d%s", i > 0 ? " " : "",
                   host->traits.user == NULL ? "" : host->traits.user,
                   host->traits.user == NULL ? "" : "@", host->name, host->slots,
                   host->slots_given ? "!" : "");
    }
    return buf_take(&text);
}

static void parse(const char *input, int slots_per_host, struct host_list *list)
{
    struct error err = ERROR_INIT;
    if (discovered_parse(input, strlen(input), slots_per_host, list, &err) < 0)
        fail_msg("'%s' was refused: %s", input, err.text);
}

static void expect(const char *input, int slots_per_host, const char *expected)
{
    struct host_list list = {0};
    parse(input, slots_per_host, &list);
    char *got AUTO_FREE = list_text(&list);
    assert_string_equal(got, expected);
    hosts_destroy(&list);
}

static void refuse_bytes(const char *input, size_t length, const char *place, const char *cause)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (discovered_parse(input, length, 0, &list, &err) == 0)
        fail_msg("'%s' was accepted", input);
    if (strstr(err.text, place) == NULL || strstr(err.text, cause) == NULL)
        fail_msg("'%s': \"%s\" lacks '%s' or '%s'", input, err.text, place, cause);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.status, STATUS_USAGE);
    assert_int_equal(list.count, 0);
    hosts_destroy(&list);
}

static void refuse(const char *input, const char *place, const char *cause)
{
    refuse_bytes(input, strlen(input), place, cause);
}

static void test_lines(void **state)
{
    (void)state;
    expect("a:4\nb:2\n", 0, "a:4! b:2!");
    expect("a\nb:2", 0, "a:1 b:2!");
    expect("a\nb:2", 8, "a:8 b:2!");
    expect("  a:4 \r\n\r\n\t# all of b is busy\nc # :9\n#d:1\n", 0, "a:4! c:1");
    expect("ann@a:4\n[fe80::1]:2\n10.0.0.7:3\n", 0, "ann@a:4! fe80::1:2! 10.0.0.7:3!");
    expect("n[08-10]:2\nm[1,3]\n", 4, "n08:2! n09:2! n10:2! m1:4 m3:4");
}

static void test_nothing(void **state)
{
    (void)state;
    expect("", 0, "");
    expect("\n\n  \n# nobody\n", 4, "");
}

static void test_later_line_replaces(void **state)
{
    (void)state;
    expect("a:4\nb:1\na:2\n", 0, "a:2! b:1!");
    expect("a:4\na\n", 0, "a:1");
    expect("a:4\na\n", 3, "a:3");
    expect("ann@a:4\nbob@a:4\n", 0, "bob@a:4!");
    expect("ann@a:4\na:4\n", 0, "a:4!");
    expect("n[1-3]:4\nn2:8\n", 0, "n1:4! n2:8! n3:4!");
}

/* horovodrun takes a count of 0: the host is there, with nothing for us. */
static void test_no_slots(void **state)
{
    (void)state;
    expect("a:0\nb:2\n", 4, "b:2!");
    expect("a:4\na:0\n", 0, "");
    expect("a:0\na:4\n", 0, "a:4!");
    expect("a:000\nn0\nm:10\n", 0, "n0:1 m:10!");
    refuse(":0\n", "line 1", "slot count");
    refuse("a::0\n", "line 1", "slot count");
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("a\nb;reboot\nc\n", "line 2: 'b;reboot'", "not a host name");
    refuse("\n\n-oProxyCommand=x\n", "line 3", "not a host name");
    refuse("a 4\n", "line 1: 'a 4'", "HOST:SLOTS");
    refuse("a slots=4\n", "line 1: 'a slots=4'", "HOST:SLOTS");
    refuse("a:\n", "line 1", "slot count");
    refuse("a:-1\n", "line 1", "slot count");
    refuse("a:4x\n", "line 1", "slot count");
    refuse("a:99999999999\n", "line 1", "slot count");
    refuse("a:1:2\n", "line 1", "more than one colon");
    refuse("$(reboot)@a\n", "line 1", "not a user name");
    refuse("n[1-\n", "line 1", "bracket");
    refuse("Traceback (most recent call last):\n", "line 1: 'Traceback", "HOST:SLOTS");
    refuse("a\x1b[31m\n", "line 1: 'a?[31m'", "bracket");
    refuse_bytes("a\0b\n", 4, "line 1: 'a?b'", "NUL");
}

static void test_limits(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(DISCOVERED_BYTES_MAX * 2);
    for (int i = 0; i < DISCOVERED_HOSTS_MAX; i++)
        buf_printf(&text, "h%d\n", i);
    struct host_list list = {0};
    parse(buf_text(&text), 2, &list);
    assert_int_equal(list.count, DISCOVERED_HOSTS_MAX);
    assert_int_equal(hosts_slots(&list), DISCOVERED_HOSTS_MAX * 2);
    hosts_destroy(&list);
    buf_puts(&text, "one-more\n");
    refuse(buf_text(&text), "line 100001: 'one-more'", "more than 100000 hosts");
    refuse("n[1-100001]\n", "line 1", "too many hosts");
    refuse("n[1-60000]\nm[1-60000]\n", "line 2", "too many hosts");
    while (text.length <= DISCOVERED_BYTES_MAX)
        buf_puts(&text, "################################\n");
    refuse(buf_text(&text), "the list of hosts has", "at most 1048576");
}

static void expect_same(const char *a, const char *b, bool same)
{
    struct host_list one = {0}, other = {0};
    parse(a, 0, &one);
    parse(b, 0, &other);
    if (discovered_same(&one, &other) != same || discovered_same(&other, &one) != same)
        fail_msg("'%s' and '%s'", a, b);
    hosts_destroy(&one);
    hosts_destroy(&other);
}

static void test_many_slots(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    buf_puts(&text, "a[1");
    for (int i = 1; i < 30000; i++)
        buf_puts(&text, ",1");
    buf_puts(&text, "]");
    expect(buf_text(&text), 100000, "a1:2147483647");
}

static void test_same(void **state)
{
    (void)state;
    expect_same("", "", true);
    expect_same("a", "", false);
    expect_same("a:4\nb", "b:1\na:4\n", true);
    expect_same("a:4", "a:3", false);
    expect_same("a:4\nb", "a:4\nc", false);
    expect_same("a:4", "ann@a:4", false);
    expect_same("bob@a:4", "ann@a:4", false);
    expect_same("ann@a:4", "ann@a:4", true);
}

static void test_same_address_and_port(void **state)
{
    (void)state;
    static const char *const files[] = {"a", "a port=22", "a port=23", "a address=b",
                                        "a address=c"};
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            struct host_list one = {0}, other = {0};
            struct error err = ERROR_INIT;
            const struct hostfile a = {.bytes = files[i], .length = strlen(files[i]), .name = "x"};
            const struct hostfile b = {.bytes = files[j], .length = strlen(files[j]), .name = "x"};
            assert_int_equal(hostfile_parse(&a, &one, &err), 0);
            assert_int_equal(hostfile_parse(&b, &other, &err), 0);
            assert_int_equal(discovered_same(&one, &other), i == j);
            hosts_destroy(&one);
            hosts_destroy(&other);
        }
    }
}

static void expect_file(const char *input, int slots_per_host, const char *expected)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (discovered_parse_file(input, strlen(input), "f", slots_per_host, &list, &err) < 0)
        fail_msg("'%s' was refused: %s", input, err.text);
    char *got AUTO_FREE = list_text(&list);
    assert_string_equal(got, expected);
    hosts_destroy(&list);
}

static void refuse_file(const char *input, const char *cause)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(discovered_parse_file(input, strlen(input), "f", 0, &list, &err), -1);
    if (strstr(err.text, cause) == NULL)
        fail_msg("\"%s\" lacks '%s'", err.text, cause);
    assert_int_equal(list.count, 0);
}

static void test_file(void **state)
{
    (void)state;
    expect_file("a\nb slots=3 user=ann\nc\nc\n", 0, "a:1 ann@b:3! c:2");
    expect_file("a\nb slots=3\nc\nc\n", 4, "a:4 b:3! c:8");
    expect_file("a slots=1000000\nb:2 # x", 4, "a:1000000! b:2!");
    expect_file("[group g]\nhosts=a,b\n[host b]\nslots=3\n", 4, "a:4 b:3!");
    expect_file("a 2 q UNDEFINED\nn[1-2]:3\n", 4, "a:2! n1:3! n2:3!");
    refuse_file("[group g]\nhosts=a\nslots=x\n", "f:3: 'slots = x'");
    refuse_file("", "names no host");
    refuse_file("a\nb slots=\n", "f:2: 'b slots='");
}

static void test_file_limits(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 25);
    for (int i = 0; i <= DISCOVERED_HOSTS_MAX; i++)
        buf_printf(&text, "h%d\n", i);
    refuse_file(buf_text(&text), "more than 100000 hosts");
    buf_clear(&text);
    for (int i = 0; i < 30000; i++)
        buf_puts(&text, "a\n");
    expect_file(buf_text(&text), 100000, "a:2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_later_line_replaces),
        cmocka_unit_test(test_no_slots),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_slots),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_same_address_and_port),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
