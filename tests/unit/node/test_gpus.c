/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs in folders that look like the /proc, /sys and /dev of machines that have some. */
#include "fake_root.h"
#include "node/gpus.h"

static void put_information(const char *root, const char *address, const char *id, int minor,
                            const char *more)
{
    char *name AUTO_FREE = mem_printf("proc/driver/nvidia/gpus/%s/information", address);
    char *text AUTO_FREE =
        mem_printf("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 257\nGPU UUID: \t %s\n"
                   "Bus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %d\n%s",
                   id, address, minor, more);
    put_file(root, name, text);
}

static void put_device(const char *root, const char *name)
{
    char *path AUTO_FREE = mem_printf("dev/%s", name);
    put_file(root, path, "");
}

/* "PCI address=id@memory node/CPUs", a blank between two; "-" for what is not known. */
static void expect(const char *root, const char *wanted)
{
    struct device_list gpus;
    struct buf text AUTO_BUF = BUF_INIT(4096);
    gpus_read(root, &gpus);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct device *gpu = &gpus.items[i];
        struct buf cpus AUTO_BUF = BUF_INIT(256);
        cpu_mask_list(&gpu->cpus, &cpus);
        buf_printf(&text, "%s%s=%s@%d/%s", i > 0 ? " " : "", gpu->pci == NULL ? "-" : gpu->pci,
                   gpu->name == NULL ? "-" : gpu->name, gpu->numa, buf_text(&cpus));
    }
    assert_string_equal(buf_text(&text), wanted);
    device_list_destroy(&gpus);
}

struct machine_root {
    char path[sizeof(FAKE_ROOT)];
};

static int open_root(void **state)
{
    struct machine_root *root = mem_alloc(sizeof(*root));
    memcpy(root->path, FAKE_ROOT, sizeof(FAKE_ROOT));
    assert_non_null(mkdtemp(root->path));
    *state = root;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
    return 0;
}

static int close_root(void **state)
{
    fake_remove(((struct machine_root *)*state)->path);
    free(*state);
    return 0;
}

static void test_none(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    expect(root, "");
    assert_int_equal(gpus_count(root), 0);
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1); /* of a login profile: no reason to believe it */
    assert_int_equal(gpus_count(root), 0);
}

static void test_control_devices(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    assert_false(gpus_have_control(root));
    put_device(root, "dxg");
    assert_true(gpus_have_control(root));
}

static void test_control_device_of_nvidia(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_device(root, "nvidiactl");
    assert_true(gpus_have_control(root));
}

/* The driver's own list. The minor numbers need not follow the PCI addresses. */
static void test_nvidia(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_information(root, "0000:c3:00.0", "GPU-cccc", 0, "");
    put_information(root, "0000:1b:00.0", "GPU-bbbb", 1, "GPU Excluded:\t No\n");
    put_information(root, "0000:43:00.0", "GPU-????????", 2, "");
    put_information(root, "0000:52:00.0", "GPU-eeee", 3, "GPU Excluded:\t Yes\n");
    put_pci(root, "pci0000:15/0000:15:01.0/0000:1b:00.0", "0x030200\n", "0\n", "0-3,8-11\n");
    put_pci(root, "pci0000:c0/0000:c3:00.0", "0x030200\n", "1\n", "4-7,12-15\n");
    put_pci(root, "pci0000:40/0000:43:00.0", "0x030200\n", "-1\n", "0-15\n");
    for (int i = 0; i < 4; i++) {
        char *name AUTO_FREE = mem_printf("nvidia%d", i);
        put_device(root, name);
    }
    expect(root, "0000:1b:00.0=GPU-bbbb@0/0-3,8-11 0000:43:00.0=-@-1/0-15 "
                 "0000:c3:00.0=GPU-cccc@1/4-7,12-15");
    assert_int_equal(gpus_count(root), 3);
    setenv("CUDA_VISIBLE_DEVICES", "2,GPU-bbbb", 1);
    assert_int_equal(gpus_count(root), 2);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_int_equal(gpus_count(root), 0);
}

/* The list shows all of the host, but there are device files for some alone. */
static void test_container(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    for (int i = 0; i < 4; i++) {
        char *address AUTO_FREE = mem_printf("0000:0%d:00.0", i);
        put_information(root, address, "GPU-x", i, "");
    }
    expect(root, "");
    put_device(root, "nvidiactl");
    put_device(root, "nvidia2");
    expect(root, "0000:02:00.0=GPU-x@-1/");
    assert_int_equal(gpus_count(root), 1);
}

/* Nothing has used a GPU since the boot, and the program that makes the device files is there. */
static void test_files_made_later(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_information(root, "0000:01:00.0", "GPU-x", 0, "");
    put_file(root, "usr/bin/nvidia-modprobe", "");
    char *program AUTO_FREE = mem_printf("%s/usr/bin/nvidia-modprobe", root);
    assert_int_equal(chmod(program, 0700), 0);
    expect(root, "0000:01:00.0=GPU-x@-1/");
    put_device(root, "nvidiactl");
    expect(root, "");
}

/* Without the driver's list: the devices it is bound to, if they are GPUs. */
static void test_bound(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_pci(root, "pci0000:15/0000:1b:00.0", "0x030200\n", "0\n", "0-3\n");
    put_pci(root, "pci0000:15/0000:1c:00.0", "0x030000\n", "0\n", "0-3\n");
    put_pci(root, "pci0000:15/0000:1d:00.0", "0x068000\n", "0\n", "0-3\n"); /* a switch */
    put_pci(root, "pci0000:15/0000:1e:00.0", "0x030000\n", "0\n", "0-3\n"); /* of vfio-pci */
    for (int i = 0xb; i <= 0xd; i++) {
        char *link AUTO_FREE = mem_printf("sys/bus/pci/drivers/nvidia/0000:1%x:00.0", i);
        char *to AUTO_FREE = mem_printf("sys/devices/pci0000:15/0000:1%x:00.0", i);
        put_link(root, link, to);
    }
    put_file(root, "sys/bus/pci/drivers/nvidia/new_id", "");
    expect(root, ""); /* no device file */
    put_device(root, "nvidiactl");
    put_device(root, "nvidia0");
    expect(root, "-=-@-1/"); /* one of the two */
    put_device(root, "nvidia1");
    expect(root, "0000:1b:00.0=-@0/0-3 0000:1c:00.0=-@0/0-3");
}

static void test_device_files_alone(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_device(root, "nvidiactl");
    put_device(root, "nvidia0");
    put_device(root, "nvidia5");
    put_device(root, "nvidia-uvm");
    expect(root, "-=-@-1/ -=-@-1/");
    assert_int_equal(gpus_count(root), 2);
}

static void put_amd(const char *root, int node, int simd, int minor, unsigned location)
{
    char *name AUTO_FREE = mem_printf("sys/class/kfd/kfd/topology/nodes/%d/properties", node);
    char *text AUTO_FREE = mem_printf("cpu_cores_count %d\nsimd_count %d\ndomain 0\n"
                                      "location_id %u\ndrm_render_minor %d\nunique_id %d\n",
                                      simd == 0 ? 64 : 0, simd, location, minor, node);
    put_file(root, name, text);
}

static void test_amd(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_amd(root, 0, 0, 0, 0);
    put_amd(root, 2, 1216, 128, 0xc1 << 8);
    put_amd(root, 10, 1216, 129, 0x04 << 8 | 1 << 3);
    put_amd(root, 11, 1216, 130, 0x07 << 8);
    put_pci(root, "pci0000:c0/0000:c1:00.0", "0x038000\n", "1\n", "4-7\n");
    put_device(root, "dri/renderD128");
    put_device(root, "dri/renderD129");
    expect(root, "0000:c1:00.0=GPU-0000000000000002@1/4-7 0000:04:01.0=GPU-000000000000000a@-1/");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_equal(gpus_count(root), 2);
    setenv("ROCR_VISIBLE_DEVICES", "1", 1);
    assert_int_equal(gpus_count(root), 1);
    put_information(root, "0000:99:00.0", "GPU-x", 0, ""); /* then that one alone */
    put_device(root, "nvidia0");
    expect(root, "0000:99:00.0=GPU-x@-1/");
}

/* What no driver writes. */
static void test_rubbish(void **state)
{
    const char *root = ((struct machine_root *)*state)->path;
    put_file(root, "proc/driver/nvidia/gpus/x/information", "Device Minor\nGPU UUID:\n\n\n");
    put_file(root, "proc/driver/nvidia/gpus/y", "a file");
    put_file(root, "sys/class/kfd/kfd/topology/nodes/z/properties", "simd_count -1\n");
    struct device_list gpus;
    gpus_read(root, &gpus);
    assert_true(gpus.count <= 2);
    device_list_destroy(&gpus);
}

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_control_devices, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_control_device_of_nvidia, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_nvidia, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_container, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_files_made_later, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_bound, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_device_files_alone, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_amd, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_rubbish, open_root, close_root),
        cmocka_unit_test(test_active_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
