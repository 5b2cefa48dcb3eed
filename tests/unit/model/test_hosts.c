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
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

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
    expect_refusal("ann@a:2,bob@a:2", "'bob@a:2'",
                   "the user 'ann' already (entry 1), here it is 'bob'");
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
    expect_refusal("a b", "'a b'", "put commas between hosts");
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

static void test_parse_appends(void **state)
{
    (void)state;
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_null(hosts_find(&list, "a"));
    assert_int_equal(hosts_parse("a:1", &list, &err), 0);
    assert_int_equal(hosts_parse("b:2,a:2", &list, &err), 0);
    char *got = list_text(&list);
    assert_string_equal(got, "a:3! b:2!");
    free(got);
    assert_null(hosts_find(&list, "c"));
    hosts_destroy(&list);
    hosts_destroy(&list);
}

static void test_a_name_for_each_slot(void **state)
{
    (void)state;
    static const struct {
        const char *list, *expected;
    } cases[] = {
        {"a,a,b", "a:2! b:1!"}, {"a,b", "a:1 b:1"}, {"a:2,b", "a:2! b:1"}, {"a,a:1,b", "a:2! b:1"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct host_list list = {0};
        assert_int_equal(hosts_parse(cases[i].list, &list, NULL), 0);
        hosts_settle_slots(&list);
        char *got = list_text(&list);
        assert_string_equal(got, cases[i].expected);
        free(got);
        hosts_destroy(&list);
    }
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

static void test_copy(void **state)
{
    (void)state;
    struct host_list from = {0}, to = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(hosts_parse("b:2,ann@a,b:1,a", &from, &err), 0);
    from.items[0].max_slots = 9;
    hosts_copy(&to, &from);
    hosts_destroy(&from);
    assert_int_equal(to.count, 2);
    assert_string_equal(to.items[0].name, "b");
    assert_int_equal(to.items[0].slots, 3);
    assert_true(to.items[0].slots_given);
    assert_int_equal(to.items[0].max_slots, 9);
    assert_string_equal(to.items[1].traits.user, "ann");
    assert_int_equal(to.items[1].slots, 2);
    assert_false(to.items[1].slots_given);
    static const uint32_t order[] = {0, 1, 0, 1};
    assert_int_equal(to.said, 4);
    assert_memory_equal(to.sequence, order, sizeof(order));
    hosts_keep(&to, 3);
    assert_int_equal(to.count, 2);
    hosts_keep(&to, 1);
    assert_int_equal(to.count, 1);
    assert_string_equal(to.items[0].name, "b");
    assert_int_equal(to.items[0].max_slots, 9);
    assert_null(hosts_find(&to, "a"));
    hosts_destroy(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_duplicates_add_up_at_the_first_place),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bad_ranges),
        cmocka_unit_test(test_ranges_are_bounded),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_parse_appends),
        cmocka_unit_test(test_a_name_for_each_slot),
        cmocka_unit_test(test_sums_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
