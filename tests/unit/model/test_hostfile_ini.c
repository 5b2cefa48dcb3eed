/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/hostfile_fixture.h"
#include "model/hosts/hostfile_test.h"

static void test_hosts(void **state)
{
    (void)state;
    expect_file("[host a]\n", "a:1");
    expect_file("[host a]\nslots = 4\n[host b]\nslots: 2\n", "a:4!, b:2!");
    expect_file("\xef\xbb\xbf; all\r\n\r\n[host a]\r\nslots = 4\r\n", "a:4!");
    expect_file("  [ host   n[01-03] ]  ; three\n  slots=2 # each\n", "n01:2!, n02:2!, n03:2!");
    expect_file("[host r[1-2]n[1-2]]\n", "r1n1:1, r1n2:1, r2n1:1, r2n2:1");
    expect_file("[host fe80::1]\n[host [fe80::2%eth0]]\n", "fe80::1:1, fe80::2%eth0:1");
    expect_file("[host [1-2]n]\n", "1n:1, 2n:1");
    expect_file("[host a]\nslots=2\n[host a]\nuser=ann\n", "ann@a:2!");
}

static void test_keys(void **state)
{
    (void)state;
    expect_file("[host a]\nslots=2\nmax_slots=4\nuser=ann\nport=22\naddress=10.0.0.1\n"
                "identity=~/.ssh/my key\ntransport=ssh-cli\ngpus=8\nwdir=/my data\n",
                "ann@a:2!/4+22>10.0.0.1 key=~/.ssh/my key transport=3 gpus=8 wdir=/my data");
    expect_file("[host a]\naddress=[2001:db8::1]\n[host b]\naddress=2001:db8::2\n",
                "a:1>2001:db8::1, b:1>2001:db8::2");
    expect_file("[host a]\ngpus=8\n[host b]\ngpus=0\n", "a:8! gpus=8, b:1!");
    expect_file("[host a]\nenv.A = 1\nenv = B=2 3\nenv.C =\nenv.D = x=y;z\n",
                "a:1 A=1 B=2 3 C= D=x=y;z");
    expect_file("[host a]\nusername=ann\nmax-slots=3\n", "ann@a:1/3");
}

static void test_groups(void **state)
{
    (void)state;
    expect_file("[group g]\nhosts = a, n[1-2,4] ,b\nslots=2\n", "a:2!, n1:2!, n2:2!, n4:2!, b:2!");
    expect_file("[group g]\nslots=2\nhosts = a\nuser=x\nhosts = b, [fe80::1]\n",
                "x@a:2!, x@b:2!, x@fe80::1:2!");
    expect_file("[group g]\nhosts=a,a,b\n[group h]\nhosts=b,c\n", "a:1, b:1, c:1");
    expect_file("[host c]\n[group g]\nhosts=a,c,b\n", "c:1, a:1, b:1");
}

static void test_precedence(void **state)
{
    (void)state;
    expect_file("[defaults]\nslots=1\nuser=d\nport=1\n"
                "[group g]\nhosts=a,b\nslots=2\nuser=g\n[host a]\nslots=3\n[host c]\n",
                "g@a:3!+1, g@b:2!+1, d@c:1!+1");
    /* wherever they stand */
    expect_file("[host a]\nslots=3\n[group g]\nhosts=a,b\nslots=2\nuser=g\n"
                "[defaults]\nslots=1\nuser=d\nport=1\n[host c]\n",
                "g@a:3!+1, g@b:2!+1, d@c:1!+1");
    expect_file("[defaults]\nenv.A=d\nenv.B=d\nenv.C=d\n[group g]\nhosts=a\nenv.B=g\nenv.C=g\n"
                "[host a]\nenv.C=h\n[host b]\n",
                "a:1 A=d B=g C=h, b:1 A=d B=d C=d");
    expect_file("[defaults]\ngpus=8\n[host a]\n[host cpu]\ngpus=0\n", "a:8! gpus=8, cpu:1!");
    expect_file("[defaults]\ngpus=8\nslots=2\n[host a]\n", "a:2! gpus=8");
    expect_file("[defaults]\ntransport=ssh\n[host a]\ntransport=auto\n[host b]\n",
                "a:1, b:1 transport=2");
}

static void test_one_group(void **state)
{
    (void)state;
    static const char text[] = "[defaults]\nslots=2\n[host a]\nuser=ann\n[host z]\n"
                               "[group g]\nhosts=b,a\nport=1\n[group h]\nhosts=a,c\nwdir=/h\n";
    expect_group(text, "g", "b:2!+1, ann@a:2!+1 wdir=/h");
    expect_group(text, "h", "ann@a:2!+1 wdir=/h, c:2! wdir=/h");
    expect_file(text, "ann@a:2!+1 wdir=/h, z:2!, b:2!+1, c:2! wdir=/h");
    refuse_bytes(text, strlen(text), "k", "my.hosts has no group 'k'", "[group k]");
    refuse_bytes(text, strlen(text), "", "my.hosts has no group ''", "[group");
    refuse_bytes("a\nb\n", 4, "g", "my.hosts has no group 'g'", "no sections");
}

static void test_contradictions(void **state)
{
    (void)state;
    refuse_file("[group g]\nhosts=a\nslots=2\n[group h]\nhosts=b,a\nslots=3\n",
                "my.hosts:6: ", "'slots = 3': a has the slots '2' already (line 3, [group g])");
    refuse_file("[host n[1-4]]\nuser=x\n[host n3]\nuser=y\n",
                "my.hosts:4: ", "n3 has the user 'x' already (line 2, [host n[1-4]])");
    refuse_file("[defaults]\nport=1\n[defaults]\nport=2\n[host a]\n",
                "my.hosts:4: ", "every host has the port '1' already (line 2, [defaults])");
    refuse_file("[host a]\nslots=1\nslots=2\n", "my.hosts:3: ", "already (line 2, [host a])");
    refuse_file("[host a]\nenv.A=1\nenv.A=2\n", "my.hosts:3: ", "env 'A=1' already (line 2");
    refuse_file("[host a]\nslots=4\nmax_slots=3\n", "my.hosts:3: ", "less than the slots=4 of a");
    refuse_file("[defaults]\nmax_slots=3\n[host a]\nslots=4\n", "my.hosts:2: ", "slots=4 of a");
    expect_file("[group g]\nhosts=a\nslots=2\n[group h]\nhosts=a\nslots=2\n", "a:2!");
    /* a stronger word settles it only for those of one strength */
    refuse_file("[group g]\nhosts=a\nslots=2\n[group h]\nhosts=a\nslots=3\n[host a]\nslots=4\n",
                "my.hosts:6: ", "already");
}

static void test_bad_sections(void **state)
{
    (void)state;
    refuse_file("[Host a]\n", "my.hosts:1: '[Host a]': ", "an unknown section");
    refuse_file("[workers]\na\n", "my.hosts:1: '[workers]': ", "[host NAME]");
    refuse_file("[defaults x]\n", "my.hosts:1: ", "an unknown section");
    refuse_file("[host]\n", "my.hosts:1: ", "without a name");
    refuse_file("[group ]\n", "my.hosts:1: ", "without a name");
    refuse_file("[group a b]\n", "my.hosts:1: ", "not the name of a group");
    refuse_file("[host a b]\n", "my.hosts:1: 'a b': ", "not a host name");
    refuse_file("[host -x]\n", "my.hosts:1: ", "not a host name");
    refuse_file("[host a:4]\n", "my.hosts:1: ", "more than a name");
    refuse_file("[host ann@a]\n", "my.hosts:1: ", "more than a name");
    refuse_file("[host n[1-]]\n", "my.hosts:1: ", "malformed range");
    refuse_file("[host a,b]\n", "my.hosts:1: ", "not a host name");
    refuse_file("[host n[1-200000]]\n", "my.hosts:1: ", "too many hosts");
    refuse_file("[host a\n", "my.hosts:1: ", "expected [section] or key = value");
    refuse_file("[host a] b\n", "my.hosts:1: ", "expected [section] or key = value");
    refuse_file("[defaults]\nslots=4\n", "my.hosts names no host", "[host NAME]");
    refuse_file("[group g]\nslots=4\n", "my.hosts:1: [group g] has no hosts", "hosts =");
    refuse_file("[group g]\nhosts = a,,b\n", "my.hosts:2: 'hosts = a,,b': ", "an empty name");
    refuse_file("[group g]\nhosts =\n", "my.hosts:2: ", "an empty name");
    refuse_file("[group g]\nhosts = a b\n", "my.hosts:2: 'a b': ", "not a host name");
    refuse_file("[group g]\nhosts = a\nhosts = b;c\n", "my.hosts:3: ", "not a host name");
    refuse_file("[host a]\nhosts = b\n", "my.hosts:2: ", "expected it in [group NAME]");
}

static void test_bad_settings(void **state)
{
    (void)state;
    refuse_file("[host a]\nslots = 2#x\n",
                "my.hosts:2: 'slots = 2#x': ", "'2#x' is not a slot count");
    refuse_file("[host a]\nslots = x\n", "my.hosts:2: 'slots = x': ", "'x' is not a slot count");
    refuse_file("[host a]\n\n# x\nslotz = 4\n", "my.hosts:4: ", "an unknown key");
    refuse_file("[host a]\nnode1 slots=4\n", "my.hosts:2: ", "a plain host line among sections");
    refuse_file("[host a]\n  node1 \n",
                "my.hosts:2: ", "'node1': expected [section] or key = value");
    refuse_file("[group g]\naddress = 10.0.0.1\nhosts=a\n", "my.hosts:2: ", "in [host NAME]");
    refuse_file("[defaults]\naddress = 10.0.0.1\n", "my.hosts:2: ", "in [host NAME]");
    refuse_file("[host n[1-2]]\naddress = 10.0.0.1\n", "my.hosts:2: ", "one address for a range");
    refuse_file("[host [1-2]n]\naddress = 10.0.0.1\n", "my.hosts:2: ", "one address for a range");
    refuse_file("[host a]\nenv = A\n", "my.hosts:2: ", "not a variable");
    refuse_file("[host a]\nenv.1A = 2\n", "my.hosts:2: ", "not a variable");
    refuse_file("[host a]\nenv. = 2\n", "my.hosts:2: ", "not a variable");
    refuse_file("[host a]\nenv = =2\n", "my.hosts:2: ", "not a variable");
    refuse_file("[host a]\nuser = -oX\n", "my.hosts:2: ", "not a user name");
    refuse_file("[host a]\ntransport = rsh\n", "my.hosts:2: ", "not a transport");
    refuse_file("[host a]\nport = 0\n", "my.hosts:2: ", "not a port");
    refuse_file("[host a]\nwdir =\n", "my.hosts:2: ", "not a path");
}

/* inih cuts lines at 200 bytes and names at 50. */
static void test_long_words(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20), expected AUTO_BUF = BUF_INIT(1 << 20);
    char name[256] = "", value[3000] = "";
    memset(name, 'n', 255);
    memset(value, 'v', sizeof(value) - 1);
    buf_printf(&text, "[host %s]\nenv.%s = %s\n[group g]\nhosts = ", name, name + 155, value);
    buf_printf(&expected, "%s:1 %s=%s", name, name + 155, value);
    for (int i = 0; i < 500; i++) {
        buf_printf(&text, "%sm%d", i > 0 ? ", " : "", i);
        buf_printf(&expected, ", m%d:1", i);
    }
    expect_file(buf_text(&text), buf_text(&expected));
    buf_printf(&text, "\n[host x%s]\n", name);
    refuse_file(buf_text(&text), "my.hosts:5: ", "longer than the 255 bytes of a host name");
}

static void test_many(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(SIZE_MAX / 2);
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    buf_puts(&text, "[host n[1-100000]]\nslots = 4\nenv.A = 1\n"
                    "[group g]\nhosts = n[1-1000]\nuser = ann\n");
    assert_int_equal(read_group(buf_text(&text), NULL, &list, &err), -1); /* 101000 names */
    assert_non_null(strstr(err.text, "my.hosts:5: 'n[1-1000]': the ranges expand to too many"));
    hosts_destroy(&list);
    buf_clear(&text);
    for (int i = 0; i < HOSTS_MAX; i++)
        buf_printf(&text, "[host n%d]\nslots = %d\nenv.A = %d\n", i, i % 9 + 1, i);
    assert_int_equal(read_group(buf_text(&text), NULL, &list, &err), 0);
    assert_int_equal(list.count, HOSTS_MAX);
    assert_int_equal(list.items[10].slots, 2);
    assert_string_equal(list.items[99999].traits.env.items[0], "A=99999");
    hosts_destroy(&list);
    buf_puts(&text, "[host m]\n");
    refuse_file(buf_text(&text), "my.hosts:300001: 'm': ", "more than 100000 hosts");
    for (int i = 0; i < 200000; i++)
        buf_puts(&text, "[host a]\n");
    refuse_file(buf_text(&text), "my.hosts:", "more than 200000 sections");
}

/* Refused while they are few, and not after all of them have been compared. */
static void test_too_many_variables(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(SIZE_MAX / 2);
    buf_puts(&text, "[host a]\n");
    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "env.V%d = x\nenv.V%d = x\n", i, i);
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(read_group(buf_text(&text), NULL, &list, &err), 0);
    assert_int_equal(list.items[0].traits.env.count, 1000);
    hosts_destroy(&list);
    for (int i = 1000; i < 300000; i++)
        buf_printf(&text, "env.V%d = x\n", i);
    refuse_file(buf_text(&text), "my.hosts:2002: 'V1000=x': ", "more than 1000 variables of a;");
    buf_clear(&text);
    buf_puts(&text, "[host n[1-60000]]\n[defaults]\n");
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "env.V%d = x\n", i);
    refuse_file(buf_text(&text), "my.hosts:19: ", "more than 1000000 variables of all hosts");
    buf_clear(&text);
    buf_puts(&text, "[host n[1-60000]]\n");
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "env.V%d = x\n", i);
    refuse_file(buf_text(&text), "my.hosts:", "more than 1000000 variables of all hosts");
}

static void test_damaged(void **state)
{
    (void)state;
    static const char good[] = "; x\n[defaults]\nslots = 4 # y\nenv.A = 1\n[group g]\n"
                               "hosts = a,[fe80::1], n[1-3]\nport=22\r\n[host a]\nwdir: /x\n"
                               "max_slots=9\nenv = A=2\n[host [1-2]b]\ngpus=1\n";
    static const char bytes[] = {0, '\n', ' ', '[', ']', '=', ',', ':', '@', '#', '-', '9', ';'};
    expect_no_harm(good, sizeof(good), bytes, sizeof(bytes));
}

/* Whether a file has sections is seen by their kinds, which are letters; else it is a host's
 * address. */
static void test_which_lines_are_sections(void **state)
{
    (void)state;
    static const char *const sections[] = {"[host a]", "[ zone]", "[a]", "[Z x]", "[_\t", "[A z"};
    static const char *const others[] = {"",      "[",     "[]", "[ ]",  "host a]", "[fe80::1]",
                                         "[1-2]", "[a-b]", "[a", "[`a]", "[{a]",    "[@]"};
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        assert_true(hostfile_line_is_section(sections[i], strlen(sections[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(hostfile_line_is_section(others[i], strlen(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_one_group),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_bad_sections),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_too_many_variables),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_which_lines_are_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
