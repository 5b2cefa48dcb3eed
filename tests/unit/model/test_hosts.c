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
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/hosts.h"

/* The list as "name:slots name:slots", '!' after slots that were given; with what was said about
 * the way there, "user@name:slots+port>address". The caller frees it. */
static char *list_text(const struct host_list *list)
{
    struct buf text = BUF_INIT(1 << 20);
    for (size_t i = 0; i < list->count; i++) {
        const struct host *host = &list->items[i];
        buf_printf(&text, "%s%s%s%s:%d%s", i > 0 ? " " : "",
                   host->traits.user == NULL ? "" : host->traits.user,
                   host->traits.user == NULL ? "" : "@", host->name, host->slots,
                   host->slots_given ? "!" : "");
        if (host->traits.port > 0)
            buf_printf(&text, "+%d", host->traits.port);
        if (host->traits.address != NULL)
            buf_printf(&text, ">%s", host->traits.address);
    }
    return buf_take(&text);
}

static void expect_list(const char *input, const char *expected)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (hosts_parse(input, &list, &err) < 0)
        fail_msg("'%s' was refused: %s", input, err.text);
    char *got = list_text(&list);
    assert_string_equal(got, expected);
    free(got);
    hosts_destroy(&list);
}

static void expect_refusal(const char *input, const char *entry, const char *cause)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (hosts_parse(input, &list, &err) == 0)
        fail_msg("'%s' was accepted", input);
    if (strstr(err.text, entry) == NULL || strstr(err.text, cause) == NULL)
        fail_msg("'%s': \"%s\" lacks '%s' or '%s'", input, err.text, entry, cause);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.status, STATUS_USAGE);
    hosts_destroy(&list);
}

static int parse_file(const char *bytes, struct host_list *list, struct error *err)
{
    return hosts_parse_file(bytes, strlen(bytes), "my.hosts", list, err);
}

static void expect_file(const char *bytes, const char *expected)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (parse_file(bytes, &list, &err) < 0)
        fail_msg("'%s' was refused: %s", bytes, err.text);
    char *got = list_text(&list);
    assert_string_equal(got, expected);
    free(got);
    hosts_destroy(&list);
}

static void expect_file_refusal(const char *bytes, const char *place, const char *cause)
{
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    if (parse_file(bytes, &list, &err) == 0)
        fail_msg("'%s' was accepted", bytes);
    if (strncmp(err.text, place, strlen(place)) != 0 || strstr(err.text, cause) == NULL ||
        strstr(err.text, "expected") == NULL)
        fail_msg("'%s': \"%s\" lacks '%s', '%s' or 'expected'", bytes, err.text, place, cause);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(err.status, STATUS_USAGE);
    hosts_destroy(&list);
}

static void test_lists(void **state)
{
    (void)state;
    expect_list("a:4,b:4", "a:4! b:4!");
    expect_list("a,b", "a:1 b:1");
    expect_list(" a:2 ,\tb , c:1 ", "a:2! b:1 c:1!");
    expect_list("node-1.example.com:3", "node-1.example.com:3!");
    expect_list("10.0.0.7:2,10.0.0.8", "10.0.0.7:2! 10.0.0.8:1");
    expect_list("a:1000000", "a:1000000!");
    expect_list("a:007", "a:7!");
}

static void test_duplicates_add_up_at_the_first_place(void **state)
{
    (void)state;
    expect_list("a:2,b:1,a:3", "a:5! b:1!");
    expect_list("a,b,a,a", "a:3 b:1");
    expect_list("a,a:4", "a:5!");
}

static void test_ipv6(void **state)
{
    (void)state;
    expect_list("[fe80::1]:2", "fe80::1:2!");
    expect_list("[::1],[2001:db8::a]:4", "::1:1 2001:db8::a:4!");
    expect_list("[fe80::1%eth0]:2", "fe80::1%eth0:2!");
    expect_list("[::ffff:10.0.0.1]", "::ffff:10.0.0.1:1");
    expect_refusal("a:1,fe80::1", "'fe80::1'", "in brackets");
    expect_refusal("fe80::1:4", "'fe80::1:4'", "in brackets");
    expect_refusal("[fe80::1", "'[fe80::1'", "not closed");
    expect_refusal("[fe80::zz]", "'[fe80::zz]'", "not an IPv6 address");
    expect_refusal("[fe80::1%]", "'[fe80::1%]'", "not an IPv6 address");
    expect_refusal("[fe80::1%e/0]", "'[fe80::1%e/0]'", "not an IPv6 address");
    expect_refusal("[fe80::1]2", "'[fe80::1]2'", ":SLOTS");
    expect_refusal("[fe80::1]:", "'[fe80::1]:'", "slot count");
    expect_refusal("[::]]", "'[::]]'", ":SLOTS");
    expect_refusal("[1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22]", "'[1:2:3",
                   "not an IPv6 address");
}

static void test_users(void **state)
{
    (void)state;
    expect_list("ann@a:4,b", "ann@a:4! b:1");
    expect_list("ann@[fe80::1]:2", "ann@fe80::1:2!");
    expect_list("ann@node[1-2]:4", "ann@node1:4! ann@node2:4!");
    expect_list("a.b_c-d@10.0.0.7", "a.b_c-d@10.0.0.7:1");
    expect_list("a:2,ann@a:3", "ann@a:5!"); /* what is not said agrees with everything */
    expect_list("ann@a,a,ann@a", "ann@a:3");
    expect_refusal("ann@a:2,bob@a:2", "'bob@a:2'", "the user 'ann' already, here it is 'bob'");
    expect_refusal("ann@n1,bob@n[0-3]", "'bob@n[0-3]'", "'ann' already");
    expect_refusal("@a", "'@a'", "'' is not a user name");
    expect_refusal("ann@", "'ann@'", "not a host name");
    expect_refusal("ann@bob@a", "'ann@bob@a'", "not a host name");
    expect_refusal("-lroot@a", "'-lroot@a'", "'-lroot' is not a user name");
    expect_refusal("a b@a", "'a b@a'", "'a b' is not a user name");
    expect_refusal("$(x)@a", "'$(x)@a'", "is not a user name");
    expect_refusal("ann@-oProxyCommand=x", "'ann@-oProxyCommand=x'", "not a host name");
    expect_refusal("ann@fe80::1", "'ann@fe80::1'", "in brackets");
    expect_refusal("ann@:4", "'ann@:4'", "not a host name");
}

static void test_ranges(void **state)
{
    (void)state;
    expect_list("node[1-3]:2", "node1:2! node2:2! node3:2!");
    expect_list("node[08-11]", "node08:1 node09:1 node10:1 node11:1");
    expect_list("n[1-2,7]x:4,z", "n1x:4! n2x:4! n7x:4! z:1");
    expect_list("r[1-2]n[01-02]", "r1n01:1 r1n02:1 r2n01:1 r2n02:1");
    expect_list("n[098-101]", "n098:1 n099:1 n100:1 n101:1");
    expect_list("n[5]", "n5:1");
    expect_list("[01-02].cluster:3", "01.cluster:3! 02.cluster:3!");
    expect_list("n[1-2],n2", "n1:1 n2:2");
    expect_list("n[01-3]", "n01:1 n02:1 n03:1");
    expect_list("n[0-1]", "n0:1 n1:1");
}

static void test_bad_ranges(void **state)
{
    (void)state;
    expect_refusal("n[1-3", "'n[1-3'", "not closed");
    expect_refusal("n[1-3,m:4", "'n[1-3,m:4'", "not closed");
    expect_refusal("n[]", "'n[]'", "malformed range");
    expect_refusal("n[3-1]", "'n[3-1]'", "malformed range");
    expect_refusal("n[1-]", "'n[1-]'", "malformed range");
    expect_refusal("n[-1]", "'n[-1]'", "malformed range");
    expect_refusal("n[1,,2]", "'n[1,,2]'", "malformed range");
    expect_refusal("n[1,]", "'n[1,]'", "malformed range");
    expect_refusal("n[a-c]", "'n[a-c]'", "malformed range");
    expect_refusal("n[1-016]", "'n[1-016]'", "malformed range");
    expect_refusal("n[[1-2]]", "'n[[1-2]]'", "malformed range");
    expect_refusal("n[99999999999999999999]", "'n[999", "malformed range");
    expect_refusal("n1]", "'n1]'", "not a host name");
    expect_refusal("n[1-2]/x", "'n[1-2]/x'", "not a host name");
}

static void test_ranges_are_bounded(void **state)
{
    (void)state;
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse("n[1-100000]", &list, &err), 0);
    assert_int_equal(list.count, 100000);
    assert_string_equal(list.items[99999].name, "n100000");
    hosts_destroy(&list);
    expect_refusal("n[1-100001]", "'n[1-100001]'", "too many hosts");
    expect_refusal("n[0-999999999999]", "'n[0-9", "too many hosts");
    expect_refusal("a[1-60000],b[1-60000]", "'b[1-60000]'", "too many hosts");
    expect_refusal("a[1-999][1-999][1-999]", "'a[1-999]", "too many hosts");
}

static void test_bad_lists(void **state)
{
    (void)state;
    expect_refusal("", "", "empty");
    expect_refusal("  ", "", "empty");
    expect_refusal("a,,b", "'a,,b'", "entry 2 is empty");
    expect_refusal("a,b,", "'a,b,'", "entry 3 is empty");
    expect_refusal(",a", "',a'", "entry 1 is empty");
    expect_refusal("a:0", "'a:0'", "'0' is not a slot count");
    expect_refusal("a:-1", "'a:-1'", "'-1' is not a slot count");
    expect_refusal("a:+1", "'a:+1'", "'+1' is not a slot count");
    expect_refusal("a:1000001", "'a:1000001'", "not a slot count");
    expect_refusal("a:99999999999999999999999", "'a:999", "not a slot count");
    expect_refusal("b:2,a:many", "'a:many'", "'many' is not a slot count");
    expect_refusal("a:4x", "'a:4x'", "not a slot count");
    expect_refusal("a:", "'a:'", "'' is not a slot count");
    expect_refusal(":4", "':4'", "not a host name");
    expect_refusal("-oProxyCommand=x", "'-oProxyCommand=x'", "not a host name");
    expect_refusal("a b", "'a b'", "not a host name");
    expect_refusal("a\nb", "'a?b'", "not a host name");
    expect_refusal("a;reboot", "'a;reboot'", "not a host name");
    expect_refusal("$(x)", "'$(x)'", "not a host name");
}

static void test_long_names(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'a', sizeof(name));
    name[255] = '\0';
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse(name, &list, &err), 0);
    assert_string_equal(list.items[0].name, name);
    hosts_destroy(&list);
    name[255] = 'a';
    name[256] = '\0';
    expect_refusal(name, "'aaa", "longer than");
}

static void test_file_dialects(void **state)
{
    (void)state;
    expect_file("a slots=4\nb:2\nc\n", "a:4! b:2! c:1");
    expect_file("a slots=4", "a:4!");
    expect_file("# all of them\n\n  a slots=2  # the big one\n\t\n#b\nc", "a:2! c:1");
    expect_file("a slots=2\r\nb slots=3\r\n", "a:2! b:3!");
    expect_file("\xef\xbb\xbf"
                "a slots=2\n",
                "a:2!");
    expect_file("a\na\na\nb\n", "a:3 b:1");
    expect_file("a slots=2 max_slots=8\nb max-slots=2\n", "a:2! b:1");
    expect_file("a max_slots=8 slots = 2\n", "a:2!");
    expect_file("node[01-03] slots=4\n", "node01:4! node02:4! node03:4!");
    expect_file("[fe80::1]:2\n[fe80::2] slots=3\n", "fe80::1:2! fe80::2:3!");
    expect_file("a\tslots=4\n", "a:4!");
}

static void test_bad_files(void **state)
{
    (void)state;
    expect_file_refusal("a\nb slots=x\n", "my.hosts:2: 'b slots=x': ", "'x' is not a slot count");
    expect_file_refusal("a\n\n#\nb slots=0\n", "my.hosts:4: ", "'0' is not a slot count");
    expect_file_refusal("a slots\n", "my.hosts:1: ", "'slots' is unknown");
    expect_file_refusal("a slots=\n", "my.hosts:1: ", "'' is not a slot count");
    expect_file_refusal("a cpus=3\n", "my.hosts:1: ", "'cpus=3' is unknown");
    expect_file_refusal("a b\n", "my.hosts:1: ", "'b' is unknown");
    expect_file_refusal("a:4 slots=4\n", "my.hosts:1: ", "slots twice");
    expect_file_refusal("a slots=4 slots=4\n", "my.hosts:1: ", "slots twice");
    expect_file_refusal("a max_slots=4 max-slots=4\n", "my.hosts:1: ", "max_slots twice");
    expect_file_refusal("a slots=4 max_slots=2\n", "my.hosts:1: ", "less than slots=4");
    expect_file_refusal("a max_slots=no\n", "my.hosts:1: ", "not a slot count");
    expect_file_refusal("=4\n", "my.hosts:1: ", "no host name");
    expect_file_refusal("fe80::1 slots=2\n", "my.hosts:1: ", "in brackets");
    expect_file_refusal("a,b\n", "my.hosts:1: ", "not a host name");
    expect_file_refusal("-x\n", "my.hosts:1: ", "not a host name");
    expect_file_refusal("n[1-200000]\n", "my.hosts:1: ", "too many hosts");
    expect_file_refusal("h\xc3\xb6st\n", "my.hosts:1: 'h??st': ", "not a host name");
    expect_file_refusal("", "my.hosts names no host", "");
    expect_file_refusal("# nobody\n\n", "my.hosts names no host", "");
}

static void test_the_way_to_a_host(void **state)
{
    (void)state;
    expect_file("ann@a slots=4\nb user=bob slots=2\n", "ann@a:4! bob@b:2!");
    expect_file("a slots=4 port=2222\nb port = 22\n", "a:4!+2222 b:1+22");
    expect_file("a address=10.0.0.1\nb address=b.mgmt slots=2\n", "a:1>10.0.0.1 b:2!>b.mgmt");
    expect_file("a address=2001:db8::1\nb address=[fe80::1%eth0]\n",
                "a:1>2001:db8::1 b:1>fe80::1%eth0");
    expect_file("node[1-2] user=ann port=23\n", "ann@node1:1+23 ann@node2:1+23");
    expect_file("[fe80::2]:3 port=9 address=gate\n", "fe80::2:3!+9>gate");
    expect_file("a\na port=22\na user=ann\na address=x\na port=22\n", "ann@a:5+22>x");
    expect_file_refusal("ann@a user=ann\n", "my.hosts:1: ", "user twice");
    expect_file_refusal("a port=1 port=1\n", "my.hosts:1: ", "port twice");
    expect_file_refusal("a address=x address=x\n", "my.hosts:1: ", "address twice");
    expect_file_refusal("a user=\n", "my.hosts:1: ", "'' is not a user name");
    expect_file_refusal("a user=-x\n", "my.hosts:1: ", "'-x' is not a user name");
    expect_file_refusal("a user=x;y\n", "my.hosts:1: ", "'x;y' is not a user name");
    expect_file_refusal("a port=0\n", "my.hosts:1: ", "'0' is not a port");
    expect_file_refusal("a port=65536\n", "my.hosts:1: ", "'65536' is not a port");
    expect_file_refusal("a port=ssh\n", "my.hosts:1: ", "'ssh' is not a port");
    expect_file_refusal("a address=\n", "my.hosts:1: ", "'' is not an address");
    expect_file_refusal("a address=-oX\n", "my.hosts:1: ", "'-oX' is not an address");
    expect_file_refusal("a address=a:22\n", "my.hosts:1: ", "'a:22' is not an address");
    expect_file_refusal("a address=[a]\n", "my.hosts:1: ", "'[a]' is not an address");
    expect_file_refusal("n[1-2] address=10.0.0.1\n", "my.hosts:1: ", "one address for a range");
    expect_file_refusal("a port=1\na port=2\n", "my.hosts:2: ", "the port 1 already, here it is 2");
    expect_file_refusal("a address=x\na address=y\n", "my.hosts:2: ", "'x' already");
    expect_file_refusal("ann@a\nbob@a\n", "my.hosts:2: ", "'ann' already, here it is 'bob'");
}

static void test_sample(void **state)
{
    (void)state;
    const char *source = getenv("HVDRUN_SOURCE");
    if (source == NULL)
        skip();
    char *path AUTO_FREE = mem_printf("%s/hostfiles/cluster.hosts", source);
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    struct error err = ERROR_INIT;
    assert_int_equal(fd_read_file(path, &text, &err), 0);
    expect_file(buf_text(&text),
                "node1:4! node2:4! node03:8! node04:8! node05:8! node06:8! ann@gpu1:2! "
                "ann@gpu2:2!+2222 gpu3:2!>10.0.5.13 gpu4:2!+2222>2001:db8::14 2001:db8::15:2!");
}

static void test_binary_file(void **state)
{
    (void)state;
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse_file("a\nb\0c\n", 6, "my.hosts", &list, &err), -1);
    assert_non_null(strstr(err.text, "my.hosts is not a text file"));
    assert_int_equal(list.count, 0);
    hosts_destroy(&list);
}

/* Quadratic behaviour would run into the test's time limit. */
static void test_a_million_lines(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(SIZE_MAX / 2);
    for (int i = 0; i < 1000000; i++)
        buf_printf(&text, "node%06d slots=2\n", i % 500000);
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse_file(buf_text(&text), text.length, "f", &list, &err), 0);
    assert_int_equal(list.count, 500000);
    assert_string_equal(list.items[499999].name, "node499999");
    assert_int_equal(list.items[250000].slots, 4);
    assert_int_equal(hosts_slots(&list), 2000000);
    assert_ptr_equal(hosts_find(&list, "node000123"), &list.items[123]);
    hosts_destroy(&list);
    buf_destroy(&text);
}

static void test_parse_appends(void **state)
{
    (void)state;
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_null(hosts_find(&list, "a"));
    assert_int_equal(hosts_parse("a:1", &list, &err), 0);
    assert_int_equal(parse_file("b slots=2\na slots=2\n", &list, &err), 0);
    char *got = list_text(&list);
    assert_string_equal(got, "a:3! b:2!");
    free(got);
    assert_null(hosts_find(&list, "c"));
    hosts_destroy(&list);
    hosts_destroy(&list);
}

static void test_sums_do_not_overflow(void **state)
{
    (void)state;
    struct host_list list = {0};
    hosts_add(&list, "a", INT32_MAX, true);
    hosts_add(&list, "a", 5, true);
    hosts_add(&list, "b", 5, true);
    assert_int_equal(list.items[0].slots, INT32_MAX);
    assert_int_equal(hosts_slots(&list), INT32_MAX);
    hosts_destroy(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_duplicates_add_up_at_the_first_place),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bad_ranges),
        cmocka_unit_test(test_ranges_are_bounded),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_file_dialects),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_the_way_to_a_host),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_binary_file),
        cmocka_unit_test(test_a_million_lines),
        cmocka_unit_test(test_parse_appends),
        cmocka_unit_test(test_sums_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
