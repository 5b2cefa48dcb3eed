/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/torchrun/translation.h"

static void is(enum role expected, size_t hosts, struct line_nodes nodes)
{
    assert_int_equal(role_of(&nodes, hosts, false), expected);
    if (expected == ROLE_DIAL && nodes.rank < 0 && nodes.is_first < 0)
        expected = ROLE_DRIVER;
    assert_int_equal(role_of(&nodes, hosts, true), expected);
}

static struct line_nodes line(int min, int max, int rank, int is_first, const char *host)
{
    return (struct line_nodes){.min = min,
                               .max = max,
                               .rank = rank,
                               .is_first = is_first,
                               .meeting_host = (char *)host,
                               .meeting_port = 1};
}

static void test_enough_hosts(void **state)
{
    (void)state;
    is(ROLE_ALONE, 1, line(1, 1, 0, -1, NULL));
    is(ROLE_ALONE, 2, line(2, 2, 0, 1, "h"));
    is(ROLE_ALONE, 3, line(2, 2, 1, 1, "h"));
    is(ROLE_ALONE, 1, line(1, 4, -1, -1, NULL));
    is(ROLE_WRONG, 1, line(2, 2, 0, -1, NULL));
    is(ROLE_WRONG, 1, line(2, 4, -1, -1, NULL));
}

/* What the line says of itself counts more than the address. */
static void test_copies(void **state)
{
    (void)state;
    is(ROLE_DIAL, 1, line(2, 2, -1, -1, "h"));
    is(ROLE_DIAL, 1, line(1, 2, -1, -1, "h"));
    is(ROLE_DRIVER, 1, line(2, 2, 0, -1, "h"));
    is(ROLE_DIAL, 1, line(2, 2, 1, -1, "h"));
    is(ROLE_DRIVER, 1, line(2, 2, 1, 1, "h"));
    is(ROLE_DIAL, 1, line(2, 2, 0, 0, "h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enough_hosts),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
