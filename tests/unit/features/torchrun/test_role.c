/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/torchrun/role.h"

static void is(enum role expected, size_t hosts, struct line_nodes nodes)
{
    assert_int_equal(role_of(&nodes, hosts, false), expected);
    if (expected == ROLE_DIAL && nodes.rank < 0 && nodes.is_first < 0)
        expected = ROLE_DRIVER;
    assert_int_equal(role_of(&nodes, hosts, true), expected);
}

static void test_enough_hosts(void **state)
{
    (void)state;
    is(ROLE_ALONE, 1, (struct line_nodes){NULL, 1, 1, false, 0, -1, NULL, 0, NULL, 0});
    is(ROLE_ALONE, 2, (struct line_nodes){NULL, 2, 2, false, 0, 1, (char *)"h", 1, NULL, 0});
    is(ROLE_ALONE, 3, (struct line_nodes){NULL, 2, 2, false, 1, 1, (char *)"h", 1, NULL, 0});
    is(ROLE_ALONE, 1, (struct line_nodes){NULL, 1, 4, false, -1, -1, NULL, 0, NULL, 0});
    is(ROLE_WRONG, 1, (struct line_nodes){NULL, 2, 2, false, 0, -1, NULL, 0, NULL, 0});
    is(ROLE_WRONG, 1, (struct line_nodes){NULL, 2, 4, false, -1, -1, NULL, 0, NULL, 0});
}

/* What the line says of itself counts more than the address. */
static void test_copies(void **state)
{
    (void)state;
    is(ROLE_DIAL, 1, (struct line_nodes){NULL, 2, 2, false, -1, -1, (char *)"h", 1, NULL, 0});
    is(ROLE_DIAL, 1, (struct line_nodes){NULL, 1, 2, false, -1, -1, (char *)"h", 1, NULL, 0});
    is(ROLE_DRIVER, 1, (struct line_nodes){NULL, 2, 2, false, 0, -1, (char *)"h", 1, NULL, 0});
    is(ROLE_DIAL, 1, (struct line_nodes){NULL, 2, 2, false, 1, -1, (char *)"h", 1, NULL, 0});
    is(ROLE_DRIVER, 1, (struct line_nodes){NULL, 2, 2, false, 1, 1, (char *)"h", 1, NULL, 0});
    is(ROLE_DIAL, 1, (struct line_nodes){NULL, 2, 2, false, 0, 0, (char *)"h", 1, NULL, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enough_hosts),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
