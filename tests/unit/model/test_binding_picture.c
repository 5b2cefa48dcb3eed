/* SPDX-License-Identifier: Apache-2.0 */
/* The golden lines of --report-bindings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/binding/picture.h"
#include "topology_fixture.h"

/* Workers with the ranks 3, 4, ... of which each is near the GPU of its number, if there are any.
 */
static void report(const struct topology *topology, struct binding_request request,
                   const char *unit, struct strv *lines)
{
    static const struct device_list none = {.count = 0};
    const struct device_list *gpus = request.gpus != NULL ? request.gpus : &none;
    struct error err = ERROR_INIT;
    struct binding *binding = binding_create(topology, &request, &err);
    if (binding == NULL)
        fail_msg("%s", err.text);
    struct binding_worker *workers AUTO_FREE = mem_array(binding->count, sizeof(*workers));
    AUTO_STRV struct strv numbers = STRV_INIT;
    for (size_t i = 0; i < binding->count; i++) {
        workers[i] = (struct binding_worker){.rank = 3 + (unsigned)i, .mask = &binding->ranks[i]};
        if (gpus->count == 0)
            continue;
        strv_printf(&numbers, "%zu", i % gpus->count);
        workers[i].gpus = numbers.items[i];
    }
    binding_report(topology, gpus, unit, workers, binding->count, lines);
    binding_destroy(binding);
}

static void assert_lines(const struct strv *lines, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < count && i < lines->count; i++)
        assert_string_equal(lines->items[i], wanted[i]);
    assert_int_equal(lines->count, count);
}
#define ASSERT_LINES(lines, ...)                            \
    assert_lines(lines, (const char *const[]){__VA_ARGS__}, \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_small_machine(void **state)
{
    (void)state;
    struct topology topology;
    AUTO_STRV struct strv lines = STRV_INIT;
    make_machine(&topology, (struct machine){2, 2, 2, 2, 2});
    forbid(&topology, 15, 15);
    forbid(&topology, 31, 31);
    report(&topology, (struct binding_request){.unit = BIND_L3, .slots = 2}, "l3", &lines);
    ASSERT_LINES(&lines,
                 "2 packages, 4 memory nodes, 16 cores, 32 CPUs; bound to: l3; B bound, b partly, "
                 ". free, x not available",
                 "rank 3  CPUs 0-1,16-17  [BB/..|../..][../..|../.x]",
                 "rank 4  CPUs 2-3,18-19  [../BB|../..][../..|../.x]");
    topology_destroy(&topology);
}

/* One memory node of all packages, as on machines that have no others. */
static void test_memory_node_of_packages(void **state)
{
    (void)state;
    struct topology topology;
    AUTO_STRV struct strv lines = STRV_INIT;
    make_machine(&topology, (struct machine){4, 1, 0, 2, 1});
    for (size_t i = 0; i < topology.count; i++)
        topology.cpus[i].numa = 0;
    report(&topology, (struct binding_request){.unit = BIND_CORE, .slots = 1}, "core", &lines);
    ASSERT_LINES(&lines,
                 "4 packages, 1 memory node, 8 cores, 8 CPUs; bound to: core; B bound, b partly, "
                 ". free, x not available",
                 "rank 3  CPUs 0  [B.][..][..][..]");
    topology_destroy(&topology);
}

static void test_partly_bound(void **state)
{
    (void)state;
    struct topology topology;
    struct cpu_mask mask = {0};
    struct buf text AUTO_BUF = BUF_INIT(64);
    make_machine(&topology, (struct machine){1, 1, 0, 3, 2});
    forbid(&topology, 2, 2);
    cpu_mask_set_list(&mask, "0,5");
    assert_int_equal(binding_picture(&topology, &mask, &text), 0);
    assert_string_equal(buf_text(&text), "[b.B]"); /* of the last core one CPU is ours */
    struct buf small AUTO_BUF = BUF_INIT(3);
    assert_int_not_equal(binding_picture(&topology, &mask, &small), 0);
    cpu_mask_clear(&mask);
    topology_destroy(&topology);
}

/* 2 x 64 cores, 8 GPUs: each line fits on a screen, and columns stand below each other. */
static void test_large_machine(void **state)
{
    (void)state;
    struct topology topology;
    struct device_list gpus = {.count = 0};
    AUTO_STRV struct strv lines = STRV_INIT;
    make_machine(&topology, (struct machine){2, 1, 0, 64, 2});
    forbid(&topology, 124, 127);
    forbid(&topology, 252, 255);
    for (int i = 0; i < 8; i++)
        add_gpu(&gpus, i < 4 ? "0-63,128-191" : "64-127,192-255");
    for (int i = 0; i < 8; i++) {
        gpus.items[i].numa = i / 4;
        gpus.items[i].pci = mem_printf("0000:%x0:00.0", i + 1);
    }
    report(
        &topology,
        (struct binding_request){.unit = BIND_GPU, .cpus_per_proc = 16, .gpus = &gpus, .slots = 8},
        "gpu", &lines);
    ASSERT_LINES(&lines,
                 "2 packages, 2 memory nodes, 128 cores, 256 CPUs, 8 GPUs; bound to: gpu; B bound, "
                 "b partly, . free, x not available",
                 "GPU 0 at 0000:10:00.0, memory node 0, near CPUs 0-63,128-191: rank 3",
                 "GPU 1 at 0000:20:00.0, memory node 0, near CPUs 0-63,128-191: rank 4",
                 "GPU 2 at 0000:30:00.0, memory node 0, near CPUs 0-63,128-191: rank 5",
                 "GPU 3 at 0000:40:00.0, memory node 0, near CPUs 0-63,128-191: rank 6",
                 "GPU 4 at 0000:50:00.0, memory node 1, near CPUs 64-127,192-255: rank 7",
                 "GPU 5 at 0000:60:00.0, memory node 1, near CPUs 64-127,192-255: rank 8",
                 "GPU 6 at 0000:70:00.0, memory node 1, near CPUs 64-127,192-255: rank 9",
                 "GPU 7 at 0000:80:00.0, memory node 1, near CPUs 64-127,192-255: rank 10",
                 "rank 3   CPUs 0-15,128-143                   GPU 0  [16B 48.][60. 4x]",
                 "rank 4   CPUs 16-31,144-159                  GPU 1  [16. 16B 32.][60. 4x]",
                 "rank 5   CPUs 32-47,160-175                  GPU 2  [32. 16B 16.][60. 4x]",
                 "rank 6   CPUs 48-63,176-191                  GPU 3  [48. 16B][60. 4x]",
                 "rank 7   CPUs 64-79,192-207                  GPU 4  [64.][16B 44. 4x]",
                 "rank 8   CPUs 80-95,208-223                  GPU 5  [64.][16. 16B 28. 4x]",
                 "rank 9   CPUs 96-111,224-239                 GPU 6  [64.][32. 16B 12. 4x]",
                 "rank 10  CPUs 64-67,112-123,192-195,240-251  GPU 7  [64.][4B 44. 12B 4x]");
    device_list_destroy(&gpus);
    topology_destroy(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_machine),
        cmocka_unit_test(test_memory_node_of_packages),
        cmocka_unit_test(test_partly_bound),
        cmocka_unit_test(test_large_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
