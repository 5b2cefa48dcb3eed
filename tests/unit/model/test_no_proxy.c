/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/env/node_env_test.h"

static const char *value_in(const char *const *items, size_t count, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++) {
        if (items[i] != NULL && strncmp(items[i], name, length) == 0 && items[i][length] == '=')
            return items[i] + length + 1;
    }
    return "none";
}

/* The last two arguments are what a worker gets; NULL: it does not get the variable. */
static void assert_no_proxy_of(const char *master, const char *base_pair, const char *base_pair2,
                               const char *user_pair, const char *small, const char *big)
{
    struct env_table table = {0};
    struct strv owned AUTO_STRV = STRV_INIT, user AUTO_STRV = STRV_INIT;
    struct no_proxy no_proxy;
    env_table_default(&table, "FIRST=1");
    if (base_pair != NULL)
        env_table_default(&table, base_pair);
    if (base_pair2 != NULL)
        env_table_default(&table, base_pair2);
    no_proxy_put(&no_proxy, "127.0.0.1", master, &table, &owned);
    char *items[8] = {NULL};
    assert_true(table.count < 8);
    memcpy(items, table.vars, table.count * sizeof(*items));
    if (user_pair != NULL)
        strv_add(&user, user_pair);
    for (size_t i = 0; i < user.count; i++) {
        size_t slot = env_table_find(&table, user.items[i]);
        items[slot == ENV_TABLE_NONE ? table.count : slot] = user.items[i];
    }
    no_proxy_user(&no_proxy, &table, &user, items, &owned);
    const char *const *found = (const char *const *)items;
    assert_string_equal(value_in(found, 8, "no_proxy"), small == NULL ? "none" : small);
    assert_string_equal(value_in(found, 8, "NO_PROXY"), big == NULL ? "none" : big);
    assert_string_equal(value_in(found, 8, "FIRST"), "1");
    env_table_destroy(&table);
}

#define assert_no_proxy(...) assert_no_proxy_of("10.0.0.1", __VA_ARGS__)

static void test_no_proxy(void **state)
{
    (void)state;
    assert_no_proxy("http_proxy=http://p:1", NULL, NULL, "127.0.0.1,10.0.0.1",
                    "127.0.0.1,10.0.0.1");
    assert_no_proxy(NULL, NULL, "HTTPS_PROXY=http://p:1", "127.0.0.1,10.0.0.1",
                    "127.0.0.1,10.0.0.1");
    assert_no_proxy(NULL, NULL, NULL, NULL, NULL); /* nothing to keep away from: JAX warns */
    assert_no_proxy("no_proxy=.corp", NULL, NULL, ".corp,127.0.0.1,10.0.0.1",
                    ".corp,127.0.0.1,10.0.0.1");
    assert_no_proxy("no_proxy=a", "NO_PROXY=b, 127.0.0.1", NULL, "a,127.0.0.1,10.0.0.1",
                    "b, 127.0.0.1,10.0.0.1");
    assert_no_proxy("NO_PROXY=*", NULL, NULL, "*", "*");
    assert_no_proxy("no_proxy=127.0.0.10", NULL, NULL, "127.0.0.10,127.0.0.1,10.0.0.1",
                    "127.0.0.10,127.0.0.1,10.0.0.1");
    /* a master on loopback is named by the rendezvous already */
    assert_no_proxy_of("127.0.0.1", "no_proxy=a", NULL, NULL, "a,127.0.0.1", "a,127.0.0.1");
    assert_no_proxy_of("2001:db8::1", "no_proxy=a", NULL, NULL, "a,127.0.0.1,2001:db8::1",
                       "a,127.0.0.1,2001:db8::1");
    assert_no_proxy("no_proxy=a", NULL, "no_proxy=mine", "mine,127.0.0.1,10.0.0.1",
                    "a,127.0.0.1,10.0.0.1");
}

static void test_no_addresses(void **state)
{
    (void)state;
    struct env_table table = {0};
    struct strv owned AUTO_STRV = STRV_INIT;
    struct no_proxy no_proxy;
    env_table_default(&table, "no_proxy=a");
    no_proxy_put(&no_proxy, NULL, NULL, &table, &owned);
    char *items[4] = {NULL};
    memcpy(items, table.vars, table.count * sizeof(*items));
    no_proxy_user(&no_proxy, &table, NULL, items, &owned);
    assert_string_equal(value_in((const char *const *)items, 4, "no_proxy"), "a");
    env_table_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_proxy),
        cmocka_unit_test(test_no_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
