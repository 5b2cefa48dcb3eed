/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of every width and tuples of every length, as pickle.dumps writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rendezvous/hex_fixture.h"
#include "rendezvous/pickle.h"

static void expect_number(const char *hex, int64_t number)
{
    size_t length = 0;
    uint8_t *bytes AUTO_FREE = from_hex(hex, &length);
    struct pickle pickle;
    struct error err = ERROR_INIT;
    assert_int_equal(pickle_read(bytes, length, &pickle, &err), 0);
    assert_int_equal(pickle.values[pickle.root].kind, PICKLE_INT);
    assert_true(pickle.values[pickle.root].number == number);
    pickle_destroy(&pickle);
}

static void expect_tuple(const char *hex, size_t length)
{
    size_t bytes_length = 0;
    uint8_t *bytes AUTO_FREE = from_hex(hex, &bytes_length);
    struct pickle pickle;
    assert_int_equal(pickle_read(bytes, bytes_length, &pickle, NULL), 0);
    const struct pickle_value *root = &pickle.values[pickle.root];
    assert_int_equal(root->kind, PICKLE_TUPLE);
    assert_int_equal(root->length, length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(pickle.values[root->items[i]].number, i + 1);
    pickle_destroy(&pickle);
}

static void test_tuples(void **state)
{
    (void)state;
    expect_tuple("8004 29 2e", 0);
    expect_tuple("8004 4b01 85 2e", 1);
    expect_tuple("8004 4b01 4b02 86 2e", 2);
    expect_tuple("8004 4b01 4b02 4b03 87 2e", 3);
    expect_tuple("8004 28 4b01 4b02 4b03 4b04 74 2e", 4);
    static const char *const without_mark[] = {"8004 74 2e", "8004 4b01 74 2e", "8004 85 2e"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = 0;
        uint8_t *bytes AUTO_FREE = from_hex(without_mark[i], &length);
        struct pickle pickle;
        assert_int_equal(pickle_read(bytes, length, &pickle, NULL), -1);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    expect_number("8004 4b00 2e", 0);
    expect_number("8004 4bff 2e", 255);
    expect_number("8004 4d0001 2e", 256);
    expect_number("8004 4dffff 2e", 65535);
    expect_number("8004 4a00000100 2e", 65536);
    expect_number("8004 4affffff7f 2e", INT32_MAX);
    expect_number("8004 4a00000080 2e", INT32_MIN);
    expect_number("8004 4affffffff 2e", -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_tuples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
