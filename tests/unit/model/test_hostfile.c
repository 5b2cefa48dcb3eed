/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/hostfile_fixture.h"

static void test_file_dialects(void **state)
{
    (void)state;
    expect_file("a slots=4\nb:2\nc\n", "a:4!, b:2!, c:1");
    expect_file("a slots=4", "a:4!");
    expect_file("# all of them\n\n  a slots=2  # the big one\n\t\n#b\nc", "a:2!, c:1");
    expect_file("a slots=2\r\nb slots=3\r\n", "a:2!, b:3!");
    expect_file("\xef\xbb\xbf"
                "a slots=2\n",
                "a:2!");
    expect_file("a\na\na\nb\n", "a:3, b:1");
    expect_file("a slots=2 max_slots=8\nb max-slots=2\n", "a:2!/8, b:1/2");
    expect_file("a max_slots=8 slots = 2\n", "a:2!/8");
    expect_file("node[01-03] slots=4\n", "node01:4!, node02:4!, node03:4!");
    expect_file("[fe80::1]:2\n[fe80::2] slots=3\n", "fe80::1:2!, fe80::2:3!");
    expect_file("a\tslots=4\n", "a:4!");
}

static void test_bad_files(void **state)
{
    (void)state;
    refuse_file("a\nb slots=x\n", "my.hosts:2: 'b slots=x': ", "'x' is not a slot count");
    refuse_file("a\n\n#\nb slots=0\n", "my.hosts:4: ", "'0' is not a slot count");
    refuse_file("a slots\n", "my.hosts:1: ", "'slots' is unknown");
    refuse_file("a slots=\n", "my.hosts:1: ", "'' is not a slot count");
    refuse_file("a cpus=3\n", "my.hosts:1: ", "'cpus' is unknown");
    refuse_file("a b\n", "my.hosts:1: ", "'b' is unknown");
    refuse_file("a:4 slots=4\n", "my.hosts:1: ", "slots twice");
    refuse_file("a slots=4 slots=4\n", "my.hosts:1: ", "slots twice");
    refuse_file("a max_slots=4 max-slots=4\n", "my.hosts:1: ", "max_slots twice");
    refuse_file("a slots=4 max_slots=2\n", "my.hosts:1: ", "less than slots=4");
    refuse_file("a max_slots=no\n", "my.hosts:1: ", "not a slot count");
    refuse_file("=4\n", "my.hosts:1: ", "no host name");
    refuse_file("fe80::1 slots=2\n", "my.hosts:1: ", "in brackets");
    refuse_file("-x\n", "my.hosts:1: ", "not a host name");
    refuse_file("n[1-200000]\n", "my.hosts:1: ", "too many hosts");
    refuse_file("h\xc3\xb6st\n", "my.hosts:1: 'h??st': ", "not a host name");
    refuse_file("", "my.hosts names no host", "");
    refuse_file("# nobody\n\n", "my.hosts names no host", "");
}

static void test_the_way_to_a_host(void **state)
{
    (void)state;
    expect_file("ann@a slots=4\nb user=bob slots=2\n", "ann@a:4!, bob@b:2!");
    expect_file("a slots=4 port=2222\nb port = 22\n", "a:4!+2222, b:1+22");
    expect_file("a address=10.0.0.1\nb address=b.mgmt slots=2\n", "a:1>10.0.0.1, b:2!>b.mgmt");
    expect_file("a address=2001:db8::1\nb address=[fe80::1%eth0]\n",
                "a:1>2001:db8::1, b:1>fe80::1%eth0");
    expect_file("node[1-2] user=ann port=23\n", "ann@node1:1+23, ann@node2:1+23");
    expect_file("[fe80::2]:3 port=9 address=gate\n", "fe80::2:3!+9>gate");
    expect_file("a\na port=22\na user=ann\na address=x\na port=22\n", "ann@a:5+22>x");
    refuse_file("ann@a user=ann\n", "my.hosts:1: ", "user twice");
    refuse_file("a port=1 port=1\n", "my.hosts:1: ", "port twice");
    refuse_file("a address=x address=x\n", "my.hosts:1: ", "address twice");
    refuse_file("a user=\n", "my.hosts:1: ", "'' is not a user name");
    refuse_file("a user=-x\n", "my.hosts:1: ", "'-x' is not a user name");
    refuse_file("a user=x;y\n", "my.hosts:1: ", "'x;y' is not a user name");
    refuse_file("a port=0\n", "my.hosts:1: ", "'0' is not a port");
    refuse_file("a port=65536\n", "my.hosts:1: ", "'65536' is not a port");
    refuse_file("a port=ssh\n", "my.hosts:1: ", "'ssh' is not a port");
    refuse_file("a address=\n", "my.hosts:1: ", "'' is not an address");
    refuse_file("a address=-oX\n", "my.hosts:1: ", "'-oX' is not an address");
    refuse_file("a address=a:22\n", "my.hosts:1: ", "'a:22' is not an address");
    refuse_file("a address=[a]\n", "my.hosts:1: ", "'[a]' is not an address");
    refuse_file("a address=[::12\n", "my.hosts:1: ", "'[::12' is not an address");
    refuse_file("a address=::12]\n", "my.hosts:1: ", "'::12]' is not an address");
    refuse_file("n[1-2] address=10.0.0.1\n", "my.hosts:1: ", "one address for a range");
    refuse_file("a port=1\na port=2\n",
                "my.hosts:2: ", "the port '1' already (line 1), here it is '2'");
    refuse_file("a address=x\na address=y\n", "my.hosts:2: ", "'x' already");
    refuse_file("ann@a\nbob@a\n", "my.hosts:2: ", "'ann' already (line 1), here it is 'bob'");
}

static void test_words_of_others(void **state)
{
    (void)state;
    expect_file("a cpu=3\nb count=2\n", "a:3!, b:2!");
    expect_file("a slots=1 slots_max=4 username=ann\n", "ann@a:1!/4");
    expect_file("a slots-max=4 user_name=ann\nb user-name=bob\n", "ann@a:1/4, bob@b:1");
    expect_file("a:4 user=ann\n", "ann@a:4!");
    refuse_file("a:4 binding=core\n", "my.hosts:1: ", "expected --bind-to");
    refuse_file("a:4 ifname=ib0\n", "my.hosts:1: ", "expected --network-interfaces");
    refuse_file("a sockets=2\n", "my.hosts:1: ", "'sockets' is unknown");
    refuse_file("^a\n", "my.hosts:1: ", "not a host name");
    refuse_file("+n0 slots=2\n", "my.hosts:1: ", "not a host name");
}

static void test_grid_engine(void **state)
{
    (void)state;
    expect_file("a 4 all.q@a UNDEFINED\nb 2 all.q@b 0,0:0,1\n", "a:4!, b:2!");
    expect_file("a 4\nb 2 q\n", "a:4!, b:2!");
    expect_file("a 4 all.q@a <NULL>\na 1 q2@a <NULL>\n", "a:5!");
    refuse_file("a 4 q UNDEFINED more\n", "my.hosts:1: ", "'more' is unknown");
    refuse_file("a 4 slots=4\n", "my.hosts:1: ", "'slots' is unknown");
    refuse_file("a 0 q UNDEFINED\n", "my.hosts:1: ", "'0' is not a slot count");
    refuse_file("a:2 4 q UNDEFINED\n", "my.hosts:1: ", "slots twice");
}

static void test_several_on_a_line(void **state)
{
    (void)state;
    expect_file("a,b\n", "a:1, b:1");
    expect_file("node[1-2,7],gpu3 slots=2\n", "node1:2!, node2:2!, node7:2!, gpu3:2!");
    expect_file("a:2,[fe80::1]:3,n[1-2]x:4\n", "a:2!, fe80::1:3!, n1x:4!, n2x:4!");
    expect_file("ann@a,b port=22\n", "ann@a:1+22, b:1+22");
    refuse_file("a,\n", "my.hosts:1: ", "an empty name");
    refuse_file(",a\n", "my.hosts:1: ", "an empty name");
    refuse_file("a, b\n", "my.hosts:1: ", "'b' is unknown");
    refuse_file("a:2,b slots=3\n", "my.hosts:1: ", "slots twice");
    refuse_file("a,b address=10.0.0.1\n", "my.hosts:1: ", "one address for several hosts");
}

static void test_everything_about_a_host(void **state)
{
    (void)state;
    expect_file("a identity=~/.ssh/key transport=ssh-cli gpus=8 wdir=/data\n",
                "a:8! key=~/.ssh/key transport=3 gpus=8 wdir=/data");
    expect_file("a gpus=8 slots=2\nb gpus=0\nc transport=auto\n", "a:2! gpus=8, b:1!, c:1");
    expect_file("n[1-2] gpus=4\n", "n1:4! gpus=4, n2:4! gpus=4");
    /* the same GPUs, said twice; slots add up and GPUs do not */
    expect_file("a gpus=4\na gpus=4\n", "a:4! gpus=4");
    expect_file("a slots=2 gpus=4\na gpus=4\na slots=1\n", "a:3! gpus=4");
    expect_file("a wdir=x\na wdir=x slots=3\n", "a:4! wdir=x");
    refuse_file("a gpus=all\n", "my.hosts:1: ", "'all' is not a number of GPUs");
    refuse_file("a gpus=1025\n", "my.hosts:1: ", "not a number of GPUs");
    refuse_file("a transport=rsh\n", "my.hosts:1: ", "'rsh' is not a transport");
    refuse_file("a transport=SSH\n", "my.hosts:1: ", "'SSH' is not a transport");
    refuse_file("a identity=\n", "my.hosts:1: ", "'' is not a path");
    refuse_file("a wdir=/a\x01\n", "my.hosts:1: ", "'/a?' is not a path");
    refuse_file("a env=A=1\n", "my.hosts:1: ", "'env' is unknown");
}

static void test_contradictions(void **state)
{
    (void)state;
    refuse_file("#\na gpus=2\na\na gpus=3\n",
                "my.hosts:4: ", "the gpus '2' already (line 2), here it is '3'");
    refuse_file("a identity=x\na identity=xy\n", "my.hosts:2: ", "identity 'x' already (line 1)");
    refuse_file("a transport=ssh\na transport=local\n",
                "my.hosts:2: ", "the transport 'ssh' already (line 1), here it is 'local'");
    refuse_file("a gpus=0\na gpus=3\n",
                "my.hosts:2: ", "the gpus '0' already (line 1), here it is '3'");
    refuse_file("a transport=auto\na transport=ssh\n",
                "my.hosts:2: ", "the transport 'auto' already (line 1), here it is 'ssh'");
    refuse_file("a wdir=/a\na wdir=/b\n", "my.hosts:2: ", "'/a' already");
    refuse_file("n[1-9] port=1\nn7 port=2\n", "my.hosts:2: ", "the port '1' already (line 1)");
    refuse_file("a slots=2 max_slots=4\na slots=3\n", "my.hosts:2: ", "less than slots=5");
    refuse_file("a max_slots=4\na max_slots=5\n", "my.hosts:2: ", "the max_slots '4' already");
}

static void test_sections_behind_lines(void **state)
{
    (void)state;
    refuse_file("a\n[host b]\n", "my.hosts:2: ", "a section after plain host lines");
    refuse_file("a\n[defaults]\nslots = 4\n", "my.hosts:2: ", "a section after plain");
    refuse_file("slots = 4\na\n", "my.hosts:1: ", "no host name in front");
    expect_file("[fe80::1]\n", "fe80::1:1");
    expect_file("[abcd::1]:2\n", "abcd::1:2!");
    expect_file("[1-2]node slots=2\n", "1node:2!, 2node:2!");
    expect_file("# x\n\n  [fe80::1%eth0] slots=2\n", "fe80::1%eth0:2!");
}

static void refuse_whole(const char *bytes, size_t length, const char *cause)
{
    refuse_bytes(bytes, length, NULL, "my.hosts is ", cause);
}

static void test_no_text(void **state)
{
    (void)state;
    refuse_whole("a\nb\0c\n", 6, "a NUL byte");
    refuse_whole("\0", 1, "a NUL byte");
    refuse_whole("\x7f"
                 "ELF\2\1\1\0",
                 8, "a NUL byte");
    refuse_whole("\xff\xfe"
                 "a\0",
                 4, "a NUL byte");
    refuse_whole("\xfe\xff\0a", 4, "a NUL byte");
    refuse_bytes("\x1f\x8b\x08", 3, NULL, "my.hosts:1: '", "not a host name");
    refuse_bytes("\xfd"
                 "7zXZ",
                 5, NULL, "my.hosts:1: '?7zXZ'", "not a host name");
    refuse_bytes("(\xb5/\xfd", 4, NULL, "my.hosts:1: '(?/?'", "not a host name");
    refuse_bytes("PK\3\4", 4, NULL, "my.hosts:1: 'PK?", "not a host name");
    refuse_bytes("", 0, NULL, "my.hosts names no host", "");
    refuse_bytes("\xef\xbb\xbf", 3, NULL, "my.hosts names no host", "");
}

/* Quadratic behaviour would run into the test's time limit. */
static void test_a_million_lines(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(SIZE_MAX / 2);
    for (int i = 0; i < 1000000; i++)
        buf_printf(&text, "node%06d slots=2\n", i % HOSTS_MAX);
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(read_group(buf_text(&text), NULL, &list, &err), 0);
    assert_int_equal(list.count, HOSTS_MAX);
    assert_string_equal(list.items[HOSTS_MAX - 1].name, "node099999");
    assert_int_equal(list.items[250].slots, 20);
    assert_int_equal(hosts_slots(&list), 2000000);
    assert_ptr_equal(hosts_find(&list, "node000123"), &list.items[123]);
    assert_int_equal(list.said, 1000000);
    hosts_destroy(&list);
    buf_destroy(&text);
}

static void test_a_million_hosts(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(SIZE_MAX / 2);
    for (int i = 0; i < 1000000; i++)
        buf_printf(&text, "node%06d user=ann\n", i);
    refuse_file(buf_text(&text),
                "my.hosts:100001: 'node100000 user=ann': ", "more than 100000 hosts");
    buf_destroy(&text);
}

static void test_long_lines(void **state)
{
    (void)state;
    size_t length = (size_t)100 << 20;
    char *text = mem_alloc(length + 1);
    memset(text, 'a', length);
    refuse_file(text, "my.hosts:1: ", "a line of 104857600 bytes");
    text[1] = '\n';
    refuse_file(text, "my.hosts:2: ", "a line of 104857598 bytes");
    text[HOSTFILE_LINE_MAX] = '\0'; /* just allowed */
    refuse_file(text, "my.hosts:2: 'aaaa", "longer than the 255 bytes of a host name");
    free(text);
}

static void test_a_long_list_on_a_line(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(HOSTFILE_LINE_MAX);
    for (int i = 0; i < 20000; i++)
        buf_printf(&text, "%sn%d", i > 0 ? "," : "", i * 3);
    struct host_list list = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(read_group(buf_text(&text), NULL, &list, &err), 0);
    assert_int_equal(list.count, 20000);
    hosts_destroy(&list);
    buf_destroy(&text);
}

static void test_damaged(void **state)
{
    (void)state;
    static const char good[] = "# x\nann@n[01-03,7]:4 port=22\r\na 4 q UNDEFINED\n"
                               "[fe80::1]:2 max_slots=3 gpus=1\n[1-2]b,c wdir=/x\n";
    static const char bytes[] = {0, '\n', ' ', '[', ']', '=', ',', ':', '@', '#', '-', '9', '\xff'};
    expect_no_harm(good, sizeof(good), bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_dialects),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_the_way_to_a_host),
        cmocka_unit_test(test_words_of_others),
        cmocka_unit_test(test_grid_engine),
        cmocka_unit_test(test_several_on_a_line),
        cmocka_unit_test(test_everything_about_a_host),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_sections_behind_lines),
        cmocka_unit_test(test_no_text),
        cmocka_unit_test(test_a_million_lines),
        cmocka_unit_test(test_a_million_hosts),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_a_long_list_on_a_line),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
