/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/binding/topology.h"

static void add(struct device_list *list, const char *name, const char *path, int numa)
{
    struct device device = {.kind = DEVICE_NIC, .number = 1, .numa = numa};
    device.name = mem_strdup(name);
    device.path = mem_strdup(path);
    device_list_add(list, &device);
}

static void expect(const struct device_list *nics, const struct device_list *gpus, size_t first,
                   size_t count, const char *nccl, const char *ucx)
{
    struct buf one AUTO_BUF = BUF_INIT(256), other AUTO_BUF = BUF_INIT(256);
    nic_near_values(nics, gpus, first, count, &one, &other);
    assert_string_equal(buf_text(&one), nccl);
    assert_string_equal(buf_text(&other), ucx);
}

static void test_by_the_switch(void **state)
{
    (void)state;
    struct device_list gpus = {.count = 0}, nics = {.count = 0};
    add(&gpus, "a", "pci0000:00/01.0/02.0/03.0/gpu", 0);
    add(&gpus, "b", "pci0000:40/01.0/02.0/03.0/gpu", 0);
    add(&nics, "mlx5_0", "pci0000:00/09.0/nic", 0); /* same root, another way */
    add(&nics, "mlx5_1", "pci0000:40/01.0/02.0/04.0/nic", 0);
    add(&nics, "mlx5_2", "pci0000:00/01.0/02.0/04.0/nic", 0);
    expect(&nics, &gpus, 0, 1, "=mlx5_2:1", "mlx5_2:1");
    expect(&nics, &gpus, 1, 1, "=mlx5_1:1", "mlx5_1:1");
    expect(&nics, &gpus, 0, 2, "=mlx5_2:1,mlx5_1:1", "mlx5_2:1,mlx5_1:1");
    expect(&nics, &gpus, 2, 1, "", "");
    device_list_destroy(&gpus);
    device_list_destroy(&nics);
}

/* No bridge in common: by the memory node, where GPUs take turns. */
static void test_by_the_memory_node(void **state)
{
    (void)state;
    struct device_list gpus = {.count = 0}, nics = {.count = 0};
    for (int i = 0; i < 5; i++) {
        char *path AUTO_FREE = mem_printf("pci0000:0%d/gpu", i);
        add(&gpus, "g", path, i < 4 ? i % 2 : 7);
    }
    add(&nics, "ib0", "pci0000:a0/nic", 0);
    add(&nics, "ib1", "pci0000:a1/nic", 0);
    add(&nics, "ib2", NULL, 1);
    nics.items[2].number = 2;
    expect(&nics, &gpus, 0, 1, "=ib0:1", "ib0:1");
    expect(&nics, &gpus, 1, 1, "=ib2:2", "ib2:2");
    expect(&nics, &gpus, 2, 1, "=ib1:1", "ib1:1");
    expect(&nics, &gpus, 3, 1, "=ib2:2", "ib2:2");
    expect(&nics, &gpus, 1, 3, "=ib2:2,ib1:1", "ib2:2,ib1:1");
    expect(&nics, &gpus, 4, 1, "", ""); /* near none */
    device_list_destroy(&nics);
    expect(&nics, &gpus, 0, 5, "", "");
    device_list_destroy(&gpus);
}

static void test_unknown_places(void **state)
{
    (void)state;
    struct device_list gpus = {.count = 0}, nics = {.count = 0};
    add(&gpus, "g", NULL, -1);
    add(&nics, "ib0", NULL, -1);
    expect(&nics, &gpus, 0, 1, "", "");
    assert_null(nic_near(&nics, &gpus, 0));
    device_list_destroy(&gpus);
    device_list_destroy(&nics);
}

static void test_distance(void **state)
{
    (void)state;
    struct device a = {.path = (char *)"p0/a/b/c"}, b = {.path = (char *)"p0/a/d"},
                  c = {.path = (char *)"p01/a/b/c"}, none = {0};
    assert_int_equal(device_distance(&a, &a), 0);
    assert_int_equal(device_distance(&a, &b), 3);
    assert_int_equal(device_distance(&b, &a), 3);
    assert_int_equal(device_distance(&a, &c), -1);
    assert_int_equal(device_distance(&a, &none), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_the_switch),
        cmocka_unit_test(test_by_the_memory_node),
        cmocka_unit_test(test_unknown_places),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
