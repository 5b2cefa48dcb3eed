/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stacks/code.h"

struct step {
    int64_t offset;
    int line;
};

#define EXPECT(minor, table, ...)                                                             \
    do {                                                                                      \
        static const struct step steps[] = {__VA_ARGS__};                                     \
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)                         \
            assert_int_equal(line_of_offset(minor, table, sizeof(table), 1, steps[i].offset), \
                             steps[i].line);                                                  \
    } while (0)

/* All three tables are of one function, whose lines go forward, back, and forward again. */
static void test_pairs_of_steps(void **state)
{
    (void)state;
    static const unsigned char table[] = {0x00, 0x01, 0x02, 0x01, 0x02, 0xff, 0x04, 0x02};
    EXPECT(8, table, {-1, 1}, {0, 2}, {2, 3}, {4, 2}, {6, 2}, {8, 4}, {10, 4}, {100000, 4});
    EXPECT(9, table, {6, 2}, {10, 4});
}

static void test_ranges(void **state)
{
    (void)state;
    static const unsigned char table[] = {0x02, 0x01, 0x02, 0x01, 0x04, 0xff, 0x04, 0x02};
    static const unsigned char none[] = {0x02, 0x80, 0x00, 0x03, 0x02, 0x01, 0x07};
    EXPECT(10, table, {-2, 1}, {0, 2}, {2, 3}, {4, 2}, {6, 2}, {8, 4}, {10, 4}, {12, 0});
    EXPECT(10, none, {0, 0}, {2, 5}, {4, 0});
}

static void test_locations(void **state)
{
    (void)state;
    static const unsigned char table[] = {0x80, 0x00, 0xd8, 0x09, 0x0a, 0xd8, 0x09,
                                          0x0a, 0xf1, 0x03, 0x01, 0x0a, 0x0b, 0x80,
                                          0x41, 0xe0, 0x0b, 0x0c, 0x80, 0x48};
    for (int minor = 11; minor <= 14; minor++)
        EXPECT(minor, table, {-2, 1}, {0, 1}, {2, 2}, {4, 3}, {6, 2}, {8, 2}, {10, 2}, {12, 4},
               {14, 4}, {16, 0});
    /* a column with bit 7 set; no location; a step over 63; without columns */
    static const unsigned char other[] = {0xd8, 0xff, 0xff, 0xf8, 0xe8, 0x48, 0x03};
    EXPECT(12, other, {0, 2}, {2, 0}, {4, 102}, {6, 0});
}

static void test_broken_tables(void **state)
{
    (void)state;
    static const unsigned char endless[] = {0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
    static const unsigned char no_start[] = {0x00, 0x00};
    static const unsigned char below[] = {0xe8, 0x0b};
    for (int minor = 8; minor <= 14; minor++)
        assert_int_equal(line_of_offset(minor, NULL, 0, 5, 4), minor <= 9 ? 5 : 0);
    EXPECT(11, endless, {0, 0});
    EXPECT(11, no_start, {0, 0});
    EXPECT(11, below, {0, 0});
    assert_int_equal(line_of_offset(8, NULL, 0, -7, 0), 0);
    assert_int_equal(line_of_offset(11, NULL, 0, INT32_MAX, -1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_of_steps),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_broken_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
