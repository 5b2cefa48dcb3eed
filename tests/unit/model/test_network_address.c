/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/net/address.h"

static struct network_address of(const char *line)
{
    struct network_address address;
    if (!network_address_parse_line(line, &address))
        fail_msg("'%s' was refused", line);
    return address;
}

static void test_lines(void **state)
{
    (void)state;
    struct network_address address = of("eth0 10.1.2.3/12");
    assert_string_equal(address.iface, "eth0");
    assert_string_equal(address.text, "10.1.2.3");
    assert_int_equal(address.prefix, 12);
    assert_false(address.ipv6);
    address = of("eth0:1 2001:DB8:0::1/64");
    assert_string_equal(address.text, "2001:db8::1");
    assert_int_equal(address.prefix, 64);
    assert_true(address.ipv6);
    assert_int_equal(of("a 10.0.0.1").prefix, 32);
    assert_int_equal(of("a ::2").prefix, 128);
    assert_int_equal(of("a 10.0.0.1/0").prefix, 0);
    static const char *const bad[] = {"",
                                      "eth0",
                                      "eth0 ",
                                      " 10.0.0.1/8",
                                      "a b/8",
                                      "a 10.0.0.1/x",
                                      "a 10.0.0.1/33",
                                      "a ::1/129",
                                      "a 10.0.0.1/",
                                      "a 1.2.3/8"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (network_address_parse_line(bad[i], &address))
            fail_msg("'%s' was accepted", bad[i]);
    }
}

static void test_fitness(void **state)
{
    (void)state;
    assert_int_equal(of("eth0 10.0.0.1/8").fitness, NETWORK_ORDINARY);
    assert_int_equal(of("bridge0 10.0.0.1/8").fitness, NETWORK_ORDINARY);
    assert_int_equal(of("bond0 10.0.0.1/8").fitness, NETWORK_ORDINARY);
    assert_int_equal(of("ib0 fd00::1/64").fitness, NETWORK_ORDINARY);
    static const char *const names[] = {"docker0 ", "br-1a2b ",   "virbr0 ", "veth12 ",
                                        "cni0 ",    "flannel.1 ", "cali99 ", "tun0 ",
                                        "tunl0 ",   "tailscale0 "};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *line AUTO_FREE = mem_printf("%s10.0.0.1/8", names[i]);
        assert_int_equal(of(line).fitness, NETWORK_VIRTUAL);
    }
    assert_int_equal(of("eth0 169.254.1.1/16").fitness, NETWORK_LINK_LOCAL);
    assert_int_equal(of("eth0 10.254.1.1/8").fitness, NETWORK_ORDINARY);
    assert_int_equal(of("eth0 169.253.1.1/16").fitness, NETWORK_ORDINARY);
    assert_int_equal(of("eth0 fe80::1/64").fitness, NETWORK_UNUSABLE);
    assert_int_equal(of("eth0 127.9.9.9/8").fitness, NETWORK_LOOPBACK);
    assert_int_equal(of("lo ::1/128").fitness, NETWORK_LOOPBACK);
}

static void test_addresses(void **state)
{
    (void)state;
    struct network_address address;
    static const char *const good[][2] = {
        {"10.0.0.1", "10.0.0.1"},          {"::ffff:10.0.0.1", "10.0.0.1"},
        {"fe80::1%eth0", "fe80::1"},       {"[fe80::1%eth0]", "fe80::1"},
        {"[::ffff:10.0.0.1]", "10.0.0.1"}, {"[2001:db8::1]", "2001:db8::1"}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(network_address_parse(good[i][0], &address));
        assert_string_equal(address.text, good[i][1]);
    }
    static const char *const bad[] = {"",
                                      "[",
                                      "%eth0",
                                      "host",
                                      "[10.0.0.1]",
                                      "10.0.0.1]",
                                      "10.0.0.1]foo",
                                      "[::1",
                                      "[::1]:22",
                                      "[::1%lo",
                                      "::1]",
                                      "[]",
                                      "10.0.0.1/8",
                                      "10.0.0",
                                      "::g",
                                      "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (network_address_parse(bad[i], &address))
            fail_msg("'%s' was accepted", bad[i]);
    }
}

static void test_subnets(void **state)
{
    (void)state;
    static const char *const subnets[][2] = {{"a 10.1.2.3/8", "10.0.0.0/8"},
                                             {"a 10.255.2.3/12", "10.240.0.0/12"},
                                             {"a 10.1.2.3/32", "10.1.2.3/32"},
                                             {"a 10.1.2.3/0", "0.0.0.0/0"},
                                             {"a 2001:db8:1:2:3::4/60", "2001:db8:1::/60"},
                                             {"a ::1/128", "::1/128"}};
    for (size_t i = 0; i < sizeof(subnets) / sizeof(subnets[0]); i++) {
        struct network_address address = of(subnets[i][0]);
        char *text AUTO_FREE = network_address_subnet(&address);
        assert_string_equal(text, subnets[i][1]);
    }
    struct network_address a = of("a 10.1.2.3/12"), b = of("b 10.14.0.1/12");
    struct network_address c = of("c 10.16.0.1/12"), d = of("d 10.1.2.3/16"), six = of("e ::1/12");
    assert_true(network_address_same_subnet(&a, &b));
    assert_false(network_address_same_subnet(&a, &c));
    assert_false(network_address_same_subnet(&a, &d));
    assert_false(network_address_same_subnet(&a, &six));
    assert_true(network_address_equal(&a, &d));
    assert_false(network_address_equal(&a, &b));
    assert_true(network_address_within(&c, &a, 8));
    assert_false(network_address_within(&c, &a, 12));
    assert_true(network_address_within(&c, &a, 0));
    assert_false(network_address_within(&six, &a, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_fitness),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_subnets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
