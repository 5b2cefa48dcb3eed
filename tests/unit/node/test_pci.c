/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_root.h"
#include "node/pci.h"

static void put_port(const char *root, const char *name, int port, const char *state)
{
    char *path AUTO_FREE = mem_printf("sys/class/infiniband/%s/ports/%d/state", name, port);
    put_file(root, path, state);
}

static void test_active_ports(void **state)
{
    (void)state;
    char root[] = FAKE_ROOT;
    struct device_list nics;
    assert_non_null(mkdtemp(root));
    nics_read(root, &nics);
    assert_int_equal(nics.count, 0);
    put_pci(root, "pci0000:15/0000:18:00.0", "0x020700\n", "1\n", "4-7\n");
    put_link(root, "sys/class/infiniband/mlx5_0/device", "sys/devices/pci0000:15/0000:18:00.0");
    put_port(root, "mlx5_0", 1, "4: ACTIVE\n");
    put_port(root, "mlx5_0", 2, "1: DOWN\n");
    put_port(root, "mlx5_0", 3, "4: ACTIVE\n");
    put_port(root, "rxe0", 1, "4: ACTIVE\n"); /* software: no PCI device */
    put_file(root, "sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    nics_read(root, &nics);
    assert_int_equal(nics.count, 3);
    assert_string_equal(nics.items[0].name, "rxe0");
    assert_null(nics.items[0].path);
    assert_int_equal(nics.items[0].numa, -1);
    for (int i = 1; i < 3; i++) {
        assert_string_equal(nics.items[i].name, "mlx5_0");
        assert_int_equal(nics.items[i].number, 2 * i - 1);
        assert_string_equal(nics.items[i].path, "pci0000:15/0000:18:00.0");
        assert_int_equal(nics.items[i].numa, 1);
        assert_true(cpu_mask_has(&nics.items[i].cpus, 7));
    }
    device_list_destroy(&nics);
    fake_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_active_ports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
