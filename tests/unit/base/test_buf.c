/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/buf.h"

static void test_appends(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(100);
    assert_string_equal(buf_text(&buf), "");
    assert_int_equal(buf_puts(&buf, "one"), 0);
    assert_int_equal(buf_putc(&buf, ' '), 0);
    assert_int_equal(buf_printf(&buf, "%d-%s", 2, "two"), 0);
    assert_int_equal(buf_append(&buf, "three", 2), 0);
    assert_int_equal(buf_append(&buf, NULL, 0), 0);
    assert_string_equal(buf_text(&buf), "one 2-twoth");
    assert_int_equal(buf.length, 11);
}

static void test_bytes_may_be_nul(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(100);
    buf_append(&buf, "a\0b", 3);
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf_text(&buf), "a\0b", 4);
}

/* The limit holds to the byte, and a refused append changes nothing. */
static void test_limit(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(5);
    assert_int_equal(buf_puts(&buf, "sixsix"), -1);
    assert_int_equal(buf_puts(&buf, "abc"), 0);
    assert_int_equal(buf_puts(&buf, "def"), -1);
    assert_int_equal(buf_printf(&buf, "%s", "def"), -1);
    assert_null(buf_reserve(&buf, 3));
    assert_null(buf_reserve(&buf, SIZE_MAX));
    assert_string_equal(buf_text(&buf), "abc");
    assert_int_equal(buf_puts(&buf, "de"), 0);
    assert_int_equal(buf_putc(&buf, 'f'), -1);
    assert_string_equal(buf_text(&buf), "abcde");
    buf_consume(&buf, 1);
    assert_int_equal(buf_putc(&buf, 'f'), 0);
    assert_string_equal(buf_text(&buf), "bcdef");
}

static void test_long_printf(void **state)
{
    (void)state;
    for (size_t length = 254; length < 259; length++) { /* around the size of the small buffer */
        AUTO_BUF struct buf buf = BUF_INIT(1000);
        char text[300];
        memset(text, 'x', length);
        text[length] = '\0';
        assert_int_equal(buf_printf(&buf, "%s%d", text, 42), 0);
        assert_int_equal(buf.length, length + 2);
        assert_memory_equal(buf_text(&buf), text, length);
        assert_string_equal(buf_text(&buf) + length, "42");
    }
}

/* A queue: what comes out is what went in, whatever the sizes of the pieces. */
static void test_queue(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(5000);
    unsigned next_in = 0, next_out = 0, seed = 1;
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1103515245u + 12345u;
        size_t put = seed >> 16 & 0x1ff;
        char bytes[512];
        for (size_t i = 0; i < put; i++)
            bytes[i] = (char)((next_in + i) % 251);
        if (buf_append(&buf, bytes, put) == 0)
            next_in += (unsigned)put;
        else
            assert_true(buf.length + put > 5000);
        seed = seed * 1103515245u + 12345u;
        size_t take = seed >> 16 & 0x1ff;
        if (take > buf.length)
            take = buf.length;
        for (size_t i = 0; i < take; i++)
            assert_int_equal((unsigned char)buf_text(&buf)[i], (next_out + i) % 251);
        buf_consume(&buf, take);
        next_out += (unsigned)take;
        assert_int_equal(buf.length, next_in - next_out);
        assert_int_equal(buf_text(&buf)[buf.length], '\0');
    }
    assert_true(next_in > 1000000); /* refusals did not stop it */
}

/* Of what is still there, not of what was consumed; the NUL goes along. */
static void test_truncate(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(100);
    buf_truncate(&buf, 0);
    buf_puts(&buf, "common own");
    buf_consume(&buf, 2);
    buf_truncate(&buf, 8);
    assert_string_equal(buf_text(&buf), "mmon own");
    buf_truncate(&buf, 4);
    assert_string_equal(buf_text(&buf), "mmon");
    buf_puts(&buf, "!");
    assert_string_equal(buf_text(&buf), "mmon!");
    buf_truncate(&buf, 0);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf_text(&buf), "");
}

static void test_consume_more_than_there_is(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(10);
    buf_consume(&buf, 3);
    buf_puts(&buf, "abc");
    buf_consume(&buf, 100);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf_text(&buf), "");
}

static void test_reserve_and_commit(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(1000);
    memcpy(buf_reserve(&buf, 600), "abc", 3);
    buf_commit(&buf, 3);
    assert_string_equal(buf_text(&buf), "abc");
    assert_int_equal(buf.length, 3);
}

/* The content stays a string when room was made and nothing written into it. */
static void test_reserve_without_commit(void **state)
{
    (void)state;
    AUTO_BUF struct buf dirty = BUF_INIT(10000);
    memset(buf_reserve(&dirty, 4000), 'x', 4000);
    buf_destroy(&dirty); /* so that the next allocation is not clean by luck */
    AUTO_BUF struct buf buf = BUF_INIT(10000);
    assert_non_null(buf_reserve(&buf, 4000));
    assert_string_equal(buf_text(&buf), "");
    buf_puts(&buf, "abcdefgh");
    buf_consume(&buf, 5);
    assert_non_null(buf_reserve(&buf, 4094)); /* moves the content to the front */
    assert_string_equal(buf_text(&buf), "fgh");
    assert_non_null(buf_reserve(&buf, 9000)); /* grows */
    assert_string_equal(buf_text(&buf), "fgh");
    char *taken = buf_take(&buf);
    assert_string_equal(taken, "fgh");
    free(taken);
}

static void test_take(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(8);
    char *empty = buf_take(&buf);
    assert_string_equal(empty, "");
    buf_puts(&buf, "xabc");
    buf_consume(&buf, 1);
    char *text = buf_take(&buf);
    assert_string_equal(text, "abc");
    assert_int_equal(buf.length, 0);
    assert_int_equal(buf_puts(&buf, "12345678"), 0); /* the limit is still the same */
    assert_int_equal(buf_putc(&buf, '9'), -1);
    free(empty);
    free(text);
}

static void test_destroy(void **state)
{
    (void)state;
    struct buf zero = {0};
    buf_destroy(&zero);
    assert_int_equal(buf_puts(&zero, "x"), -1); /* a limit of 0 takes nothing */
    buf_init(&zero, 4);
    assert_int_equal(buf_puts(&zero, "x"), 0);
    buf_destroy(&zero);
    buf_destroy(&zero);
    assert_string_equal(buf_text(&zero), "");
}

/* Only pages can be asked about: anything else counts as mapped. */
static bool is_mapped(const char *at)
{
    unsigned char resident;
    return mincore((void *)(uintptr_t)at, 1, &resident) == 0 || errno != ENOMEM;
}

/* However much room the heap has: there it would leave a hole, and the heap would grow. */
static void test_large_one_goes_back_to_the_kernel(void **state)
{
    (void)state;
    const size_t large = 300000;
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
    AUTO_BUF struct buf buf = BUF_INIT(4 * large);
    buf_puts(&buf, "-small");
    buf_consume(&buf, 1);
    for (size_t length = large; length <= 2 * large; length += large) {
        const char *before = buf_text(&buf);
        char *place = buf_reserve(&buf, length);
        assert_string_equal(buf_text(&buf), "small");
        memset(place, 'x', length);
        assert_true(length == large || !is_mapped(before));
    }
    const char *last = buf_text(&buf);
    assert_true(is_mapped(last));
    buf_destroy(&buf);
    assert_false(is_mapped(last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_bytes_may_be_nul),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_long_printf),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_consume_more_than_there_is),
        cmocka_unit_test(test_reserve_and_commit),
        cmocka_unit_test(test_reserve_without_commit),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_destroy),
        cmocka_unit_test(test_large_one_goes_back_to_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
