/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the tree, and the ways through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/tree/routes.h"

static int level(const struct tree_shape *shape, int place)
{
    int levels = 0;
    for (; place != TREE_ROOT; place = tree_parent(shape, place))
        levels++;
    return levels;
}

static void test_each_place_is_a_child_of_its_parent(void **state)
{
    static const int sizes[] = {1, 2, 3, 14, 15, 39, 40, 512, 4000, 4369};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tree_shape shape = tree_shape_of(sizes[i]);
        int children = 0;
        assert_true(tree_shape_is_valid(&shape));
        for (int place = 0; place < shape.size; place++) {
            int parent = tree_parent(&shape, place), first = tree_first_child(&shape, place);
            assert_true(parent < place && level(&shape, place) <= 3);
            children += tree_children(&shape, place);
            for (int k = 0; k < tree_children(&shape, place); k++)
                assert_int_equal(tree_parent(&shape, first + k), place);
        }
        assert_int_equal(children, shape.size < shape.radix ? 0 : shape.size - shape.radix);
    }
}

static void test_few_copies(void **state)
{
    (void)state;
    assert_int_equal(tree_shape_of(14).radix, 2);
    assert_int_equal(tree_shape_of(15).radix, 3);
    assert_int_equal(tree_shape_of(4000).radix, 16);
    assert_int_equal(tree_shape_of(10000).radix, 22);
    assert_int_equal(tree_shape_of(TREE_SIZE_MAX).radix, 102);
}

static void test_what_a_driver_never_sends(void **state)
{
    static const struct tree_shape wrong[] = {{0, 2},  {-1, 2}, {TREE_SIZE_MAX + 1, 102},
                                              {20, 0}, {20, 2}, {20, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(tree_shape_is_valid(&wrong[i]));
}

static void test_toward(void **state)
{
    struct tree_shape shape = tree_shape_of(20); /* 0 has 3 to 5, 3 has 12 to 14 */
    (void)state;
    assert_int_equal(tree_toward(&shape, TREE_ROOT, 13), 0);
    assert_int_equal(tree_toward(&shape, 0, 13), 3);
    assert_int_equal(tree_toward(&shape, 3, 13), 13);
    assert_int_equal(tree_toward(&shape, 13, 13), 13);
    assert_int_equal(tree_toward(&shape, 1, 13), -1);
    assert_int_equal(tree_toward(&shape, 13, 3), -1);
}

static void test_ways(void **state)
{
    (void)state;
    struct tree_routes *routes = tree_routes_create(20);
    assert_int_equal(tree_routes_hop(routes, 13), 13);
    assert_true(tree_routes_connect(routes, 13));
    assert_int_equal(tree_routes_hop(routes, 13), 3);
    assert_true(tree_routes_connect(routes, 3));
    assert_false(tree_routes_connect(routes, 3)); /* it is */
    assert_true(tree_routes_connect(routes, 0));  /* below the driver, as it was */
    assert_int_equal(tree_routes_hop(routes, 13), 0);
    assert_int_equal(routes->through, 2);
    assert_true(tree_routes_give_up(routes, 3));
    assert_false(tree_routes_give_up(routes, 3));
    assert_int_equal(tree_routes_hop(routes, 13), 3);
    assert_false(tree_routes_connect(routes, 3)); /* what it said before it knew */
    assert_false(tree_routes_renew(routes, 13));
    assert_true(tree_routes_renew(routes, 3));
    assert_true(tree_routes_is_direct(routes, 3));
    assert_true(tree_routes_connect(routes, 3));
    assert_int_equal(tree_routes_hop(routes, 13), 0);
    tree_routes_destroy(routes);
}

static bool is_in(void *context, int place)
{
    for (const int *late = context; *late >= 0; late++) {
        if (*late == place)
            return true;
    }
    return false;
}

static int blame(const struct tree_routes *routes, int a, int b, int c)
{
    int late[] = {a, b, c, -1};
    return tree_routes_blame(routes, a, is_in, late);
}

static void test_whose_connection_is_to_blame(void **state)
{
    (void)state;
    struct tree_routes *routes = tree_routes_create(20);
    assert_int_equal(blame(routes, 13, -1, -1), -1); /* it is direct */
    tree_routes_connect(routes, 13);
    tree_routes_connect(routes, 3);
    assert_int_equal(blame(routes, 13, -1, -1), 13);
    assert_int_equal(blame(routes, 13, 3, -1), 3);
    assert_int_equal(blame(routes, 13, 0, -1), 3); /* nothing comes through 0 */
    assert_int_equal(blame(routes, 13, 5, -1), 13);
    tree_routes_destroy(routes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_place_is_a_child_of_its_parent),
        cmocka_unit_test(test_few_copies),
        cmocka_unit_test(test_what_a_driver_never_sends),
        cmocka_unit_test(test_toward),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_whose_connection_is_to_blame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
