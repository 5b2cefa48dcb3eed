/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "node/facts.h"

static void test_without_resolving(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum local_answer answer;
    } cases[] = {{"localhost", LOCAL_YES},
                 {"LOCALHOST", LOCAL_YES},
                 {"localhost.localdomain", LOCAL_YES},
                 {"ip6-localhost", LOCAL_YES},
                 {"127.0.0.1", LOCAL_YES},
                 {"127.255.3.4", LOCAL_YES},
                 {"::1", LOCAL_YES},
                 {"0:0:0:0:0:0:0:1", LOCAL_YES},
                 {"::1%lo", LOCAL_YES},
                 {"[::1]", LOCAL_YES},
                 {"[127.0.0.1]", LOCAL_UNKNOWN},
                 {"127.0.0.1]foo", LOCAL_UNKNOWN},
                 {"::ffff:127.0.0.1", LOCAL_YES},
                 {"192.0.2.7", LOCAL_NO}, /* for documentation: nobody's */
                 {"2001:db8::7", LOCAL_NO},
                 {"::ffff:192.0.2.7", LOCAL_NO},
                 {"localhost.example", LOCAL_UNKNOWN},
                 {"no-such-host.invalid", LOCAL_UNKNOWN},
                 {"127", LOCAL_UNKNOWN},
                 {"", LOCAL_UNKNOWN}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (is_local_obviously(cases[i].name) != cases[i].answer)
            fail_msg("%s: %d", cases[i].name, (int)is_local_obviously(cases[i].name));
    }
}

static void test_own_names_and_addresses(void **state)
{
    (void)state;
    char name[256] = "";
    assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
    assert_int_equal(is_local_obviously(name), LOCAL_YES);
    name[strcspn(name, ".")] = '\0';
    assert_int_equal(is_local_obviously(name), LOCAL_YES);
    struct node_address *addresses = NULL;
    size_t count = node_addresses_read(&addresses);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(is_local_obviously(addresses[i].text), LOCAL_YES);
    node_addresses_destroy(addresses, count);
}

static bool is_local_text(int family, const char *text)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    void *bytes = family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&address)->sin6_addr
                                     : (void *)&((struct sockaddr_in *)&address)->sin_addr;
    assert_true(family == AF_UNIX || inet_pton(family, text, bytes) == 1);
    return is_local_address((const struct sockaddr *)&address);
}

static void test_socket_addresses(void **state)
{
    (void)state;
    assert_true(is_local_text(AF_INET, "127.0.0.1"));
    assert_true(is_local_text(AF_INET, "127.9.9.9"));
    assert_true(is_local_text(AF_INET6, "::1"));
    assert_true(is_local_text(AF_INET6, "::ffff:127.0.0.1"));
    assert_false(is_local_text(AF_INET, "192.0.2.7"));
    assert_false(is_local_text(AF_INET6, "2001:db8::7"));
    assert_false(is_local_text(AF_UNIX, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_resolving),
        cmocka_unit_test(test_own_names_and_addresses),
        cmocka_unit_test(test_socket_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
