/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strv.h"
#include "node/route.h"

#define UP .up = true

static struct node_address own[] = {
    {.iface = (char *)"lo", .text = (char *)"127.0.0.1", .prefix = 8, UP},
    {.iface = (char *)"docker0", .text = (char *)"172.17.0.1", .prefix = 16, UP},
    {.iface = (char *)"eth0", .text = (char *)"192.168.1.1", .prefix = 24, UP},
    {.iface = (char *)"eth0", .text = (char *)"192.168.1.77", .prefix = 24, UP},
    {.iface = (char *)"ib0", .text = (char *)"10.0.0.1", .prefix = 16, UP},
    {.iface = (char *)"ib1", .text = (char *)"10.1.0.1", .prefix = 16, UP},
    {.iface = (char *)"ib0", .text = (char *)"2001:db8::1", .prefix = 64, .ipv6 = true, UP},
    {.iface = (char *)"eth5", .text = (char *)"10.5.0.1", .prefix = 16}, /* down */
};

/* A routing table: by the beginning of the peer's address. */
static bool table(const char *peer, char *text)
{
    static const char *const routes[][2] = {
        {"192.168.1.", "192.168.1.1"}, {"192.168.9.", "192.168.1.77"}, {"10.0.", "10.0.0.1"},
        {"10.1.", "10.1.0.1"},         {"172.17.", "172.17.0.1"},      {"2001:", "2001:db8::1"},
        {"203.", "198.51.100.1"}}; /* not one of ours */
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strncmp(peer, routes[i][0], strlen(routes[i][0])) != 0)
            continue;
        snprintf(text, 46, "%s", routes[i][1]);
        return true;
    }
    return false;
}

static void split(const char *text, struct strv *out)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, " ");
        strv_add_n(out, text, length);
        text += length + (text[length] == ' ' ? 1 : 0);
    }
}

/* `expected`: "iface address ifaces include exclude". */
static void expect(const char *peers, const char *told, const char *filter, const char *expected)
{
    AUTO_STRV struct strv peer_list = STRV_INIT, words = STRV_INIT;
    split(peers, &peer_list);
    split(filter, &words);
    struct route_request request = {.own = own,
                                    .own_count = sizeof(own) / sizeof(own[0]),
                                    .peers = peer_list.items,
                                    .peer_count = peer_list.count,
                                    .told = told,
                                    .filter = words.items,
                                    .source = table};
    struct route route;
    route_choose(&request, &route);
    char *got AUTO_FREE = mem_printf("%s %s %s %s %s", route.iface, route.address, route.ifaces,
                                     route.include == NULL ? "-" : route.include,
                                     route.exclude == NULL ? "-" : route.exclude);
    assert_string_equal(got, expected);
    route_destroy(&route);
}

static void test_one_machine(void **state)
{
    (void)state;
    expect("", NULL, NULL, "lo 127.0.0.1 lo - -");
    expect("127.0.0.1 127.0.0.1", "127.0.0.1", NULL, "lo 127.0.0.1 lo 127.0.0.0/8 -");
    expect("127.0.0.1", "127.0.0.1", "!lo", "lo 127.0.0.1 lo - -");
    expect("127.0.0.1", "127.0.0.1", "lo", "lo 127.0.0.1 lo 127.0.0.0/8 -");
    expect("10.1.0.1", "10.1.0.1", "ib1", "ib1 10.1.0.1 ib1 10.1.0.0/16 -");
    expect("10.0.0.1 192.168.1.1 2001:db8::1 ::1", "10.0.0.1", NULL,
           "lo 127.0.0.1 lo 127.0.0.0/8 -");
    expect("", "", "lo", "lo 127.0.0.1 lo - -");
    expect("", "", "ib1 ib0", "ib1 10.1.0.1 ib1,ib0 - -");
    expect("", "10.0.0.1", "ib1 ib0", "ib0 10.0.0.1 ib1,ib0 - -");
    expect("", "", "!ib0", "lo 127.0.0.1 lo - -");
}

static void test_route(void **state)
{
    (void)state;
    expect("10.0.0.2 10.0.0.3", "10.0.0.1", NULL, "ib0 10.0.0.1 ib0 - 172.17.0.0/16");
    expect("192.168.1.2", NULL, NULL, "eth0 192.168.1.1 eth0 - 172.17.0.0/16");
    expect("2001:db8::2", NULL, NULL, "ib0 2001:db8::1 ib0 - 172.17.0.0/16");
    /* most of them */
    expect("10.0.0.2 10.1.0.2 10.1.0.3", NULL, NULL, "ib1 10.1.0.1 ib1 - 172.17.0.0/16");
    /* most of the interfaces, though each of its addresses has fewer */
    expect("10.1.0.2 10.1.0.3 192.168.1.2 192.168.9.2 192.168.9.3", "192.168.1.1", NULL,
           "eth0 192.168.1.1 eth0 - 172.17.0.0/16");
    /* one that is named often is one peer */
    expect("10.0.0.2 10.0.0.2 10.0.0.2 10.1.0.2 10.1.0.3", NULL, NULL,
           "ib1 10.1.0.1 ib1 - 172.17.0.0/16");
    /* the others know another address of the same interface, or of another one */
    expect("192.168.9.2", "192.168.1.1", NULL, "eth0 192.168.1.1 eth0 - 172.17.0.0/16");
    expect("192.168.1.2", "10.0.0.1", NULL, "eth0 192.168.1.1 eth0 - 172.17.0.0/16");
    /* one of the peers is this machine, one is not known */
    AUTO_STRV struct strv peers = STRV_INIT;
    strv_add(&peers, "");
    strv_add(&peers, "10.0.0.1");
    strv_add(&peers, "10.1.0.2");
    struct route_request request = {
        .own = own, .own_count = 6, .peers = peers.items, .peer_count = 3, .source = table};
    struct route route;
    route_choose(&request, &route);
    assert_string_equal(route.iface, "ib1");
    route_destroy(&route);
    /* a peer on the container bridge: then it is the way */
    expect("172.17.0.5", NULL, NULL, "docker0 172.17.0.1 docker0 - -");
}

static void test_no_route(void **state)
{
    (void)state;
    expect("198.18.0.1", "10.1.0.1", NULL, "ib1 10.1.0.1 ib1 - 172.17.0.0/16");
    /* nobody yet, but others are to come */
    expect("", "10.1.0.1", NULL, "ib1 10.1.0.1 ib1 - 172.17.0.0/16");
    expect("", "127.0.0.1", NULL, "lo 127.0.0.1 lo - -");
    expect("203.0.113.1", "", NULL, "eth0 192.168.1.1 eth0 - 172.17.0.0/16"); /* a foreign source */
    expect("198.18.0.1", "10.5.0.1", NULL, "eth0 192.168.1.1 eth0 - 172.17.0.0/16"); /* down */
    struct route_request request = {.own = own,
                                    .own_count = 1,
                                    .peers = (char *[]){(char *)"198.18.0.1", NULL},
                                    .peer_count = 1,
                                    .source = table};
    struct route route;
    route_choose(&request, &route);
    assert_string_equal(route.iface, "lo");
    assert_string_equal(route.address, "127.0.0.1");
    route_destroy(&route);
}

static void test_filter(void **state)
{
    (void)state;
    expect("10.0.0.2", "10.0.0.1", "ib*", "ib0 10.0.0.1 ib0,ib1 10.0.0.0/16,10.1.0.0/16 -");
    expect("10.0.0.2", "10.0.0.1", "ib1", "ib1 10.1.0.1 ib1 10.1.0.0/16 -"); /* against the route */
    expect("10.0.0.2", "10.0.0.1", "ib1 ib0", "ib0 10.0.0.1 ib1,ib0 10.1.0.0/16,10.0.0.0/16 -");
    expect("10.0.0.2", NULL, "192.168.0.0/16", "eth0 192.168.1.1 eth0 192.168.1.0/24 -");
    expect("10.0.0.2", "192.168.1.77", "eth0", "eth0 192.168.1.77 eth0 192.168.1.0/24 -");
    expect("10.0.0.2", NULL, "!ib0", "eth0 192.168.1.1 eth0 - -");
    expect("10.0.0.2", NULL, "*",
           "ib0 10.0.0.1 eth0,ib0,ib1 192.168.1.0/24,10.0.0.0/16,10.1.0.0/16 -");
    expect("10.0.0.2", NULL, "docker0", "docker0 172.17.0.1 docker0 172.17.0.0/16 -");
    expect("2001:db8::2", NULL, "ib0", "ib0 2001:db8::1 ib0 2001:db8::/64 -");
    expect("10.0.0.2", NULL, "nothing*", "lo 127.0.0.1 lo - -");
}

/* Hosts by the thousand: a sample of them is asked about. */
static int asked;

static bool counting(const char *peer, char *text)
{
    asked++;
    return table(peer, text);
}

static void test_many_peers(void **state)
{
    (void)state;
    AUTO_STRV struct strv peers = STRV_INIT;
    for (int i = 0; i < 5000; i++)
        strv_printf(&peers, "10.%d.%d.%d", i < 10 ? 0 : 1, 1 + i / 200, 1 + i % 200);
    struct route_request request = {.own = own,
                                    .own_count = 6,
                                    .peers = peers.items,
                                    .peer_count = peers.count,
                                    .source = counting};
    struct route route;
    route_choose(&request, &route);
    assert_string_equal(route.iface, "ib1");
    assert_in_range(asked, 2, ROUTE_PEERS_MAX);
    route_destroy(&route);
}

static void test_kernel(void **state)
{
    (void)state;
    char text[46] = "";
    assert_true(route_source("127.0.0.9", text));
    assert_int_equal(strncmp(text, "127.", 4), 0);
    assert_false(route_source("", text));
    assert_false(route_source("a name", text));
    assert_false(route_source("10.0.0.1/8", text));
    struct node_address *addresses = NULL;
    size_t count = node_addresses_read(&addresses);
    for (size_t i = 0; i < count; i++) { /* packets to ourselves come from ourselves */
        if (addresses[i].ipv6 || !addresses[i].up)
            continue;
        assert_true(route_source(addresses[i].text, text));
        assert_string_equal(text, addresses[i].text);
    }
    node_addresses_destroy(addresses, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_machine), cmocka_unit_test(test_route),
        cmocka_unit_test(test_no_route),    cmocka_unit_test(test_filter),
        cmocka_unit_test(test_many_peers),  cmocka_unit_test(test_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
