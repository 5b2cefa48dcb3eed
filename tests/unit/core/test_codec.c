/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/codec.h"

static struct reader reader_of(const struct buf *buf)
{
    return (struct reader){(const unsigned char *)buf_text(buf), buf->length, false};
}

static void test_values_come_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(1000);
    AUTO_BITS struct bits bits = {0}, read = {0};
    static const int64_t numbers[] = {0,   1,   -1,        63,        -64,      64,
                                      127, 128, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        put_signed(&buf, numbers[i]);
        put_number(&buf, (uint64_t)numbers[i]);
    }
    bits_set(&bits, 0);
    bits_set(&bits, 99);
    put_bits(&buf, &bits);
    put_real(&buf, -0.1);
    put_text(&buf, "text");
    struct reader in = reader_of(&buf);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(get_signed(&in) == numbers[i]);
        assert_true(get_number(&in) == (uint64_t)numbers[i]);
    }
    get_bits(&in, 100, &read);
    assert_true(bits_equal(&bits, &read));
    assert_true(get_real(&in) == -0.1);
    char *text AUTO_FREE = get_text(&in, 4);
    assert_string_equal(text, "text");
    assert_false(in.bad);
    assert_int_equal(in.left, 0);
}

/* A reader that is bad stays bad, and reads nothing any more. */
static void expect_bad(const void *bytes, size_t length, void (*read)(struct reader *in))
{
    struct reader in = {bytes, length, false};
    read(&in);
    assert_true(in.bad);
    assert_int_equal(get_number(&in), 0);
    assert_null(get_text(&in, 100));
    assert_true(in.bad);
}

static void read_number(struct reader *in)
{
    assert_int_equal(get_number(in), 0);
}

static void read_small(struct reader *in)
{
    assert_int_equal(get_number_below(in, 5), 0);
}

static void read_text(struct reader *in)
{
    assert_null(get_text(in, 3));
}

static void read_bits(struct reader *in)
{
    AUTO_BITS struct bits bits = {0};
    get_bits(in, 10, &bits);
    assert_false(bits_any(&bits));
}

static void test_what_is_refused(void **state)
{
    (void)state;
    expect_bad("", 0, read_number);
    expect_bad("\x80", 1, read_number);
    expect_bad("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, read_number);
    expect_bad("\x05", 1, read_small);
    expect_bad("\x04long", 5, read_text);
    expect_bad("\x03to", 3, read_text);
    expect_bad("\x03\0ab", 4, read_text);
    expect_bad("\x01\0\x04\0\0\0\0\0\0", 9, read_bits); /* number 10 */
    expect_bad("\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 25, read_bits);
    expect_bad("\x01\0", 2, read_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_back),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
