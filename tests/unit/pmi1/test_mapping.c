/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pmi1/mapping.h"

static void expect(const int *ranks_on, int nodes, const char *expected)
{
    char *text AUTO_FREE = mapping_text(ranks_on, nodes, 1023);
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void test_blocks(void **state)
{
    (void)state;
    expect((const int[]){4}, 1, "(vector,(0,1,4))");
    expect((const int[]){2, 2, 2, 2}, 4, "(vector,(0,4,2))");
    expect((const int[]){4, 4, 2}, 3, "(vector,(0,2,4),(2,1,2))");
    expect((const int[]){1, 2, 1}, 3, "(vector,(0,1,1),(1,1,2),(2,1,1))");
    expect((const int[]){3, 0, 0, 3}, 4, "(vector,(0,1,3),(3,1,3))");
    expect(NULL, 0, "(vector)");
}

static void test_too_long(void **state)
{
    (void)state;
    int uneven[300];
    for (int i = 0; i < 300; i++)
        uneven[i] = 1 + i % 2;
    assert_null(mapping_text(uneven, 300, 1023));
    char *text AUTO_FREE = mapping_text((const int[]){2}, 1, 16);
    assert_string_equal(text, "(vector,(0,1,2))");
    assert_null(mapping_text((const int[]){2}, 1, 15));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
