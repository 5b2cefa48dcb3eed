/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs: the kernel's, and those of a rankfile on a machine of 2 x 8 CPUs; CUDA's list of
 * GPUs. */
#include "base/buf.h"
#include "fuzz.h"
#include "model/binding/binding.h"
#include "model/binding/gpu_visible.h"

static void make_machine(struct topology *topology)
{
    for (int cpu = 0; cpu < 16; cpu++)
        topology_add(topology, (struct topology_cpu){.cpu = cpu,
                                                     .core = cpu / 2,
                                                     .l3 = cpu / 4,
                                                     .numa = cpu / 8,
                                                     .package = cpu / 8,
                                                     .allowed = cpu != 5});
}

static void read_gpus(const char *text)
{
    struct device_list gpus = {.count = 0};
    struct gpu_visible visible = {.words = STRV_INIT};
    for (int i = 0; i < 3; i++) {
        struct device device = {.kind = DEVICE_NVIDIA,
                                .name = mem_printf("GPU-%d-abc", i),
                                .pci = mem_printf("0000:%02d:00.0", i),
                                .numa = -1};
        device_list_add(&gpus, &device);
    }
    gpu_visible_fill(&visible, &gpus, text);
    for (size_t slot = 0; slot < 3; slot++)
        free(gpu_visible_part(&visible, slot, 2));
    gpu_visible_clear(&visible);
    device_list_destroy(&gpus);
}

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    AUTO_BUF struct buf list = BUF_INIT((size_t)1 << 20), again = BUF_INIT((size_t)1 << 20);
    struct cpu_mask mask = {.bytes = 0}, copy = {.bytes = 0}, bound = {.bytes = 0};
    struct topology topology = {.count = 0};
    struct error err = ERROR_INIT;
    cpu_mask_set_list(&mask, text);
    FUZZ_CHECK(cpu_mask_count(&mask) <= CPU_NUMBER_MAX + 1);
    if (cpu_mask_list(&mask, &list) == 0) {
        cpu_mask_set_list(&copy, buf_text(&list));
        FUZZ_CHECK(cpu_mask_list(&copy, &again) == 0);
        FUZZ_CHECK(strcmp(buf_text(&list), buf_text(&again)) == 0);
    }
    make_machine(&topology);
    fuzz_check_error(binding_cpus_parse(text, &topology, &bound, &err), &err);
    FUZZ_CHECK(cpu_mask_count(&bound) <= 16 && !cpu_mask_has(&bound, 5));
    read_gpus(text);
    cpu_mask_clear(&mask);
    cpu_mask_clear(&copy);
    cpu_mask_clear(&bound);
    topology_destroy(&topology);
    return 0;
}
