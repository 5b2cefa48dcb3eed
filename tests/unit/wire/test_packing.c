/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/packing.h"

#define SIZE 100000

/* SIZE bytes of which each 100 are alike but for their number. */
static void fill(char *bytes)
{
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i % 100 == 0 ? i / 100 % 100 : i % 100);
}

static void test_there_and_back(void **state)
{
    (void)state;
    char bytes[SIZE];
    fill(bytes);
    struct buf small AUTO_BUF = BUF_INIT(SIZE);
    assert_true(packing_shrink(bytes, SIZE, &small));
    assert_in_range(small.length, 1, SIZE / 10);
    void *back AUTO_FREE = packing_expand(buf_text(&small), small.length, SIZE, SIZE);
    assert_non_null(back);
    assert_memory_equal(back, bytes, SIZE);
}

static void test_what_does_not_get_smaller(void **state)
{
    (void)state;
    uint8_t bytes[5000];
    uint32_t number = 1;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        number = number * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(number >> 24);
    }
    struct buf small AUTO_BUF = BUF_INIT(sizeof(bytes));
    assert_false(packing_shrink(bytes, sizeof(bytes), &small));
    assert_false(packing_shrink(bytes, 0, &small));
    assert_int_equal(small.length, 0);
    char *much AUTO_FREE = mem_array(PACKING_MAX + 1, 1);
    struct buf room AUTO_BUF = BUF_INIT(PACKING_MAX);
    assert_true(packing_shrink(much, PACKING_MAX, &room));
    buf_clear(&room);
    assert_false(packing_shrink(much, PACKING_MAX + 1, &room));
}

static void test_broken(void **state)
{
    (void)state;
    char bytes[SIZE];
    fill(bytes);
    struct buf small AUTO_BUF = BUF_INIT(SIZE);
    assert_true(packing_shrink(bytes, SIZE, &small));
    size_t length = small.length;
    for (size_t cut = 0; cut < length; cut++)
        assert_null(packing_expand(buf_text(&small), cut, SIZE, SIZE));
    assert_null(packing_expand(buf_text(&small), length, SIZE - 1, SIZE));
    assert_null(packing_expand(buf_text(&small), length, SIZE + 1, SIZE + 1));
    assert_null(packing_expand(buf_text(&small), length, SIZE, SIZE - 1));
    assert_null(packing_expand(buf_text(&small), length, 0, SIZE));
    assert_null(packing_expand("no such bytes", 13, 20, SIZE));
    buf_putc(&small, 'x');
    assert_null(packing_expand(buf_text(&small), length + 1, SIZE, SIZE));
    /* A few bytes cannot claim much memory. */
    assert_null(packing_expand(buf_text(&small), 10, (size_t)60 << 20, (size_t)60 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_does_not_get_smaller),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
