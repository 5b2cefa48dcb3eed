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
#include "base/strv.h"
#include "model/net/network.h"

/* A host as a test writes it: what it has is "iface address/length" with commas between. */
struct machine {
    const char *has, *reached_by;
    const char *boot_id; /* NULL: one of its own */
};

static void split(const char *text, struct strv *out)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        strv_add_n(out, text, length);
        text += length + (text[length] == ',' ? 1 : 0);
    }
}

/* The choice as "a b c", or the error's text; the caller frees it. `-` stands for none. */
static char *choose_among(const struct machine *machines, size_t count, bool others,
                          const char *filter)
{
    struct network_node *nodes = mem_array(count, sizeof(*nodes));
    struct strv *lists = mem_array(count, sizeof(*lists)), words AUTO_STRV = STRV_INIT;
    AUTO_STRV struct strv names = STRV_INIT;
    char **addresses = mem_array(count, sizeof(*addresses));
    struct error err = ERROR_INIT;
    struct buf text = BUF_INIT(1 << 20);
    for (size_t i = 0; i < count; i++) {
        split(machines[i].has, &lists[i]);
        strv_printf(&names, "host%zu", i + 1);
        strv_printf(&names, "boot-%zu", i + 1);
    }
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct network_node){
            .name = names.items[2 * i],
            .boot_id = machines[i].boot_id == NULL ? names.items[2 * i + 1] : machines[i].boot_id,
            .interfaces = lists[i].items,
            .interface_count = lists[i].count,
            .reached_by = machines[i].reached_by};
    split(filter, &words);
    if (network_choose(nodes, (int)count, others, words.items, addresses, &err) < 0) {
        buf_puts(&text, err.text);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_null(strchr(err.text, '\n'));
    } else {
        for (size_t i = 0; i < count; i++) {
            buf_printf(&text, "%s%s", i > 0 ? " " : "", *addresses[i] == '\0' ? "-" : addresses[i]);
            free(addresses[i]);
            strv_destroy(&lists[i]);
        }
    }
    for (size_t i = 0; i < count; i++)
        strv_destroy(&lists[i]);
    free(lists);
    free(nodes);
    free(addresses);
    return buf_take(&text);
}

static char *choose(const struct machine *machines, size_t count, const char *filter)
{
    return choose_among(machines, count, false, filter);
}

/* The first host of an elastic job: its workers must be reached by those that come later. */
static void test_others_may_join(void **state)
{
    (void)state;
    const struct machine one = {.has = "lo 127.0.0.1/8,eth0 10.0.0.1/24,eth1 10.1.0.1/24",
                                .reached_by = "10.1.0.1"};
    char *alone = choose(&one, 1, NULL), *first = choose_among(&one, 1, true, NULL);
    assert_string_equal(alone, "127.0.0.1");
    assert_string_equal(first, "10.1.0.1");
    free(alone);
    free(first);
}

static void expect(const struct machine *machines, size_t count, const char *filter,
                   const char *expected)
{
    char *got = choose(machines, count, filter);
    assert_string_equal(got, expected);
    free(got);
}
#define EXPECT(machines, filter, expected) \
    expect((machines), sizeof(machines) / sizeof((machines)[0]), (filter), (expected))

#define LO "lo 127.0.0.1/8,lo ::1/128,"
#define DOCKER "docker0 172.17.0.1/16,"

static void test_one_machine(void **state)
{
    (void)state;
    const struct machine one[] = {{.has = LO "eth0 10.0.0.1/24", .reached_by = "10.0.0.1"}};
    EXPECT(one, NULL, "127.0.0.1");
    EXPECT(one, "eth0", "10.0.0.1");
    EXPECT(one, "lo", "127.0.0.1");
    EXPECT(one, "!eth0", "127.0.0.1");
    /* agents under simulated names: the order of their addresses need not be the same */
    const struct machine two[] = {{.has = LO "eth0 10.0.0.1/24", .boot_id = "x"},
                                  {.has = "eth0 10.0.0.1/24," LO, .boot_id = "x"}};
    EXPECT(two, NULL, "127.0.0.1 127.0.0.1");
    EXPECT(two, "eth*", "10.0.0.1 10.0.0.1");
    /* network namespaces and containers: one kernel, two hosts */
    const struct machine spaces[] = {{.has = LO "eth0 10.0.0.1/24", .boot_id = "x"},
                                     {.has = LO "eth0 10.0.0.2/24", .boot_id = "x"}};
    EXPECT(spaces, NULL, "10.0.0.1 10.0.0.2");
    const struct machine unknown[] = {{.has = LO "eth0 10.0.0.1/24", .boot_id = ""},
                                      {.has = LO "eth0 10.0.0.2/24", .boot_id = ""}};
    EXPECT(unknown, NULL, "10.0.0.1 10.0.0.2");
}

static void test_reached_by(void **state)
{
    (void)state;
    const struct machine hosts[] = {
        {.has = LO "eth0 192.168.1.1/24,eth1 10.0.0.1/24"}, /* the launcher's own */
        {.has = LO "eth0 192.168.1.2/24,eth1 10.0.0.2/24", .reached_by = "10.0.0.2"},
        {.has = LO "eth0 192.168.1.3/24,eth1 10.0.0.3/24", .reached_by = "::ffff:10.0.0.3"}};
    EXPECT(hosts, NULL, "10.0.0.1 10.0.0.2 10.0.0.3");
    EXPECT(hosts, "!eth1", "192.168.1.1 192.168.1.2 192.168.1.3");
    EXPECT(hosts, "eth0", "192.168.1.1 192.168.1.2 192.168.1.3");
    /* by its IPv6 address, while all have IPv4: the interface is what counts */
    const struct machine six[] = {
        {.has = LO "eth0 192.168.1.1/24,eth1 10.0.0.1/24,eth1 2001:db8::1/64"},
        {.has = LO "eth0 192.168.1.2/24,eth1 10.0.0.2/24,eth1 2001:db8::2/64",
         .reached_by = "2001:db8::2"},
        {.has = LO "eth0 192.168.1.3/24,eth1 10.0.0.3/24,eth1 fe80::3/64",
         .reached_by = "fe80::3%eth7"}};
    EXPECT(six, NULL, "10.0.0.1 10.0.0.2 10.0.0.3");
    const struct machine first[] = {
        {.has = LO "eth0 10.0.0.1/24,eth0 2001:db8::1/64,eth1 192.168.1.1/24"},
        {.has = "eth0 10.0.0.2/24,eth0 2001:db8::2/64,eth1 192.168.1.2/24",
         .reached_by = "2001:db8::2"},
        {.has = "eth1 192.168.1.3/24,eth0 10.0.0.3/24"}};
    EXPECT(first, NULL, "10.0.0.1 10.0.0.2 10.0.0.3");
    /* a forwarded port or NAT: not one of its own, or loopback, says nothing */
    const struct machine nat[] = {{.has = LO "eth0 10.0.0.1/24"},
                                  {.has = LO "eth0 10.0.0.2/24", .reached_by = "203.0.113.9"},
                                  {.has = LO "eth0 10.0.0.3/24", .reached_by = "127.0.0.1"},
                                  {.has = LO "eth0 10.0.0.4/24", .reached_by = "not an address"}};
    EXPECT(nat, NULL, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4");
}

static void test_what_is_not_fit(void **state)
{
    (void)state;
    const struct machine docker[] = {{.has = LO DOCKER "eth0 10.0.0.1/24"},
                                     {.has = LO DOCKER "eth0 10.0.0.2/24"}};
    EXPECT(docker, NULL, "10.0.0.1 10.0.0.2");
    const struct machine kinds[] = {
        {.has = LO "virbr0 192.168.122.1/24,br-ab12 172.18.0.1/16,veth9 10.9.0.1/24,cni0 "
                   "10.244.0.1/24,flannel.1 10.244.0.0/32,cali1 10.245.0.1/32,tun0 10.8.0.6/24,"
                   "wg0 10.7.0.1/24,eth9 169.254.3.4/16,eth0 fe80::1/64,eth0 10.0.0.1/24"},
        {.has = LO "eth0 10.1.0.2/24"}};
    EXPECT(kinds, NULL, "10.0.0.1 10.1.0.2");
    /* where nothing else is there, they count */
    const struct machine only[] = {{.has = LO "eth0 169.254.3.4/16,tun0 10.8.0.6/24"},
                                   {.has = LO "eth0 169.254.3.5/16,tun0 10.8.0.7/24"}};
    EXPECT(only, NULL, "10.8.0.6 10.8.0.7");
    EXPECT(only, "eth0", "169.254.3.4 169.254.3.5");
    const struct machine cable[] = {{.has = LO "eth0 169.254.3.4/16"},
                                    {.has = LO "eth0 169.254.3.5/16"}};
    EXPECT(cable, NULL, "169.254.3.4 169.254.3.5");
    /* an address that both have, under an innocent name */
    const struct machine doubles[] = {{.has = LO "bridge 172.20.0.1/16,eth0 10.0.0.1/24"},
                                      {.has = LO "bridge 172.20.0.1/16,eth0 10.0.0.2/24"}};
    EXPECT(doubles, NULL, "10.0.0.1 10.0.0.2");
    const struct machine nothing[] = {{.has = LO}, {.has = LO "eth0 fe80::2/64"}};
    EXPECT(nothing, NULL, "- -");
    const struct machine one_of_two[] = {{.has = LO "eth0 10.0.0.1/24"}, {.has = LO}};
    EXPECT(one_of_two, NULL, "10.0.0.1 -");
}

static void test_the_host_of_virtual_machines(void **state)
{
    (void)state;
    const struct machine hosts[] = {
        {.has = LO "eth0 10.0.0.1/24,virbr0 192.168.122.1/24"},
        {.has = LO "ens3 192.168.122.11/24", .reached_by = "192.168.122.11"},
        {.has = LO "ens3 192.168.122.12/24", .reached_by = "192.168.122.12"}};
    EXPECT(hosts, NULL, "192.168.122.1 192.168.122.11 192.168.122.12");
}

static void test_shared_subnet(void **state)
{
    (void)state;
    const struct machine hosts[] = {{.has = LO "eth0 192.168.1.1/24,ib0 10.0.0.1/16"},
                                    {.has = LO "ib1 10.0.7.2/16,eth0 192.168.2.1/24"},
                                    {.has = LO "eth0 192.168.3.1/24,ib0 10.0.9.3/16"}};
    EXPECT(hosts, NULL, "10.0.0.1 10.0.7.2 10.0.9.3");
    /* the same bits, other lengths: not the same subnet */
    const struct machine lengths[] = {{.has = LO "a0 10.0.0.1/8,b0 10.128.0.1/16"},
                                      {.has = LO "a0 10.0.0.2/24,b0 10.128.0.2/16"}};
    EXPECT(lengths, NULL, "10.128.0.1 10.128.0.2");
    /* nothing shared (each host its own /32, as some clouds do): the first */
    const struct machine cloud[] = {{.has = LO "eth0 10.128.0.2/32,eth1 10.5.0.1/24"},
                                    {.has = LO "eth0 10.128.0.3/32,eth1 10.6.0.1/24"}};
    EXPECT(cloud, NULL, "10.128.0.2 10.128.0.3");
}

static void test_ipv6(void **state)
{
    (void)state;
    const struct machine both[] = {{.has = LO "eth0 2001:db8::1/64,eth0 10.0.0.1/24"},
                                   {.has = LO "eth0 2001:db8::2/64,eth0 10.0.0.2/24"}};
    EXPECT(both, NULL, "10.0.0.1 10.0.0.2");
    EXPECT(both, "2001:db8::/32", "2001:db8::1 2001:db8::2");
    const struct machine one_lacks[] = {{.has = LO "eth0 2001:db8::1/64,eth0 10.0.0.1/24"},
                                        {.has = LO "eth0 2001:db8::2/64"}};
    EXPECT(one_lacks, NULL, "2001:db8::1 2001:db8::2");
    /* IPv4 on a container bridge only is not something as good */
    const struct machine bridge[] = {{.has = LO "docker0 172.17.1.1/24,eth0 2001:db8::1/64"},
                                     {.has = LO "docker0 172.17.2.1/24,eth0 2001:db8::2/64"}};
    EXPECT(bridge, NULL, "2001:db8::1 2001:db8::2");
    const struct machine torn[] = {{.has = LO "eth0 10.0.0.1/24"},
                                   {.has = LO "eth0 2001:db8::2/64"}};
    EXPECT(torn, NULL, "10.0.0.1 2001:db8::2");
}

static void test_filter(void **state)
{
    (void)state;
    const struct machine hosts[] = {
        {.has = LO DOCKER "eth0 10.0.0.1/24,ib0 10.1.0.1/24,ib1 10.2.0.1/24"},
        {.has = LO DOCKER "eno1 10.0.0.2/24,ib0 10.1.0.2/24,ib1 10.2.0.2/24",
         .reached_by = "10.0.0.2"}};
    EXPECT(hosts, "ib*", "10.1.0.1 10.1.0.2");
    EXPECT(hosts, "ib1,ib0", "10.2.0.1 10.2.0.2");
    EXPECT(hosts, "10.2.0.0/16", "10.2.0.1 10.2.0.2");
    EXPECT(hosts, "eth0,eno1", "10.0.0.1 10.0.0.2");
    EXPECT(hosts, "10.0.0.1,10.1.0.2", "10.0.0.1 10.1.0.2");
    EXPECT(hosts, "!e*", "10.1.0.1 10.1.0.2");
    EXPECT(hosts, "ib*,!ib0", "10.2.0.1 10.2.0.2");
    EXPECT(hosts, "!ib0,ib*", "10.2.0.1 10.2.0.2");
    EXPECT(hosts, "*", "10.0.0.1 10.0.0.2");
    EXPECT(hosts, "docker0", "172.17.0.1 172.17.0.1"); /* meant by its very name */
    EXPECT(hosts, "eth0",
           "host2 has no network interface that --network-interfaces allows; it has: lo "
           "127.0.0.1/8, lo ::1/128, docker0 172.17.0.1/16, eno1 10.0.0.2/24, ib0 10.1.0.2/24, ib1 "
           "10.2.0.2/24");
    const struct machine small[] = {{.has = "a 10.0.0.1/8"}, {.has = ""}, {.has = "c 10.0.0.3/8"}};
    EXPECT(
        small, "x",
        "host1 has no network interface that --network-interfaces allows, and neither do 2 other "
        "hosts; it has: a 10.0.0.1/8");
    EXPECT(small, "a,c",
           "host2 has no network interface that --network-interfaces allows; it has: none");
}

static void test_bad_words(void **state)
{
    (void)state;
    static const char *const words[] = {
        "!",         "!!a",         "10.0.0.0/33", "10.0.0/8", "2001:db8::/129",
        "10.0.0.0/", "10.0.0.0/-1", "eth 0",       "a/b"};
    const struct machine one[] = {{.has = LO}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char *got = choose(one, 1, words[i]);
        if (strstr(got, "is not an interface") == NULL || strstr(got, words[i]) == NULL)
            fail_msg("'%s': %s", words[i], got);
        free(got);
    }
}

static void test_rubbish_is_ignored(void **state)
{
    (void)state;
    const struct machine hosts[] = {
        {.has =
             "eth0,eth0 ,eth0 10.0.0/8,x 10.0.0.9/99,,eth0 10.0.0.1,a-name-that-is-much-too-long-"
             "for-any-interface 10.0.0.3/8, 10.0.0.4/8"},
        {.has = "eth0 10.0.0.2"}};
    EXPECT(hosts, NULL, "10.0.0.1 10.0.0.2"); /* without a length: an address by itself */
}

/* Quadratic behaviour would run into the test's time limit. */
static void test_many(void **state)
{
    (void)state;
    enum { NODES = 20000 };
    struct machine *hosts = mem_array(NODES, sizeof(*hosts));
    AUTO_STRV struct strv texts = STRV_INIT;
    for (int i = 0; i < NODES; i++)
        strv_printf(&texts, LO DOCKER "eth0 10.%d.%d.1/8,eth1 192.168.0.1/24", i / 200, i % 200);
    for (int i = 0; i < NODES; i++)
        hosts[i].has = texts.items[i];
    char *got = choose(hosts, NODES, NULL);
    assert_int_equal(strncmp(got, "10.0.0.1 10.0.1.1 ", 18), 0);
    assert_null(strstr(got, " 172."));
    free(got);
    free(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_may_join),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_reached_by),
        cmocka_unit_test(test_what_is_not_fit),
        cmocka_unit_test(test_the_host_of_virtual_machines),
        cmocka_unit_test(test_shared_subnet),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_bad_words),
        cmocka_unit_test(test_rubbish_is_ignored),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
