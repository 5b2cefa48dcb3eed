/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/binding/gpu_visible.h"

/* GPUs with these ids; "" is one that nobody could read. */
static void make(struct device_list *gpus, enum device_kind kind, const char *const *ids)
{
    *gpus = (struct device_list){0};
    for (int i = 0; ids[i] != NULL; i++) {
        struct device gpu = {.kind = kind, .numa = i};
        gpu.name = ids[i][0] == '\0' ? NULL : mem_strdup(ids[i]);
        device_list_add(gpus, &gpu);
    }
}

/* What is seen through `value`: words and memory nodes, "0@0 GPU-a@1"; -1: without a place. */
static void expect(const struct device_list *gpus, const char *value, const char *wanted)
{
    struct gpu_visible visible;
    struct buf text AUTO_BUF = BUF_INIT(1024);
    gpu_visible_fill(&visible, gpus, value);
    assert_int_equal(visible.words.count, visible.devices.count);
    for (size_t i = 0; i < visible.words.count; i++)
        buf_printf(&text, "%s%s@%d", i > 0 ? " " : "", visible.words.items[i],
                   visible.devices.items[i].numa);
    assert_string_equal(buf_text(&text), wanted);
    gpu_visible_clear(&visible);
}

static const char *const four[] = {"GPU-aaaa-1", "GPU-aabb-2", "GPU-cccc-3", "GPU-dddd-4", NULL};

static void test_numbers_and_ids(void **state)
{
    (void)state;
    struct device_list gpus;
    make(&gpus, DEVICE_NVIDIA, four);
    expect(&gpus, NULL, "0@0 1@1 2@2 3@3");
    expect(&gpus, "2,0", "2@2 0@0");
    expect(&gpus, " 1 , 3", "1@1 3@3");
    expect(&gpus, "1\t,\t", "1@1");
    expect(&gpus, "GPU-cccc-3,GPU-aab", "GPU-cccc-3@2 GPU-aab@1");
    expect(&gpus, "MIG-1234", "MIG-1234@-1");
    expect(&gpus, "MIG-GPU-aaaa-1/3/0,1", "MIG-GPU-aaaa-1/3/0@-1 1@1");
    device_list_destroy(&gpus);
}

/* As CUDA does it. */
static void test_the_list_ends(void **state)
{
    (void)state;
    struct device_list gpus;
    make(&gpus, DEVICE_NVIDIA, four);
    expect(&gpus, "", "");
    expect(&gpus, "-1", "");
    expect(&gpus, "NoDevFiles", "");
    expect(&gpus, "0,-1,2", "0@0");
    expect(&gpus, "1,4,0", "1@1");
    expect(&gpus, "1,,0", "1@1");
    expect(&gpus, "3,GPU-eeee,0", "3@3");
    expect(&gpus, "3,GPU-,0", "3@3");
    expect(&gpus, "0000000000000000000000001", "");
    expect(&gpus, "all", "");
    device_list_destroy(&gpus);
}

/* An id is believed where ids could not be read, and a list where no GPU was found. */
static void test_a_list_without_end(void **state)
{
    (void)state;
    struct device_list gpus;
    struct gpu_visible visible;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    make(&gpus, DEVICE_NVIDIA, four);
    for (int i = 0; i < 100000; i++)
        buf_puts(&text, "0,");
    gpu_visible_fill(&visible, &gpus, buf_text(&text));
    assert_int_equal(visible.words.count, 1024);
    gpu_visible_clear(&visible);
    device_list_destroy(&gpus);
}

static void test_unknown_ones(void **state)
{
    (void)state;
    struct device_list gpus;
    make(&gpus, DEVICE_NVIDIA, (const char *const[]){"GPU-aaaa-1", "", NULL});
    expect(&gpus, "GPU-eeee,GPU-aaaa-1", "GPU-eeee@-1 GPU-aaaa-1@0");
    device_list_destroy(&gpus);
    expect(&gpus, NULL, "");
    expect(&gpus, "0,1", "0@-1 1@-1");
    expect(&gpus, "rubbish", "");
}

static void test_parts(void **state)
{
    (void)state;
    struct device_list gpus;
    struct gpu_visible visible;
    make(&gpus, DEVICE_NVIDIA, four);
    static const struct {
        const char *value;
        size_t slot, each;
        const char *part; /* NULL: there is none */
    } cases[] = {{NULL, 0, 1, "0"},      {NULL, 3, 1, "3"},  {NULL, 4, 1, NULL},
                 {NULL, 1, 2, "2,3"},    {NULL, 1, 3, NULL}, {NULL, 0, 4, "0,1,2,3"},
                 {NULL, 0, 5, NULL},     {NULL, 0, 0, NULL}, {"3,GPU-cc,1", 1, 1, "GPU-cc"},
                 {"3,1,0", 0, 2, "3,1"}, {"", 0, 1, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gpu_visible_fill(&visible, &gpus, cases[i].value);
        char *part AUTO_FREE = gpu_visible_part(&visible, cases[i].slot, cases[i].each);
        if (cases[i].part == NULL)
            assert_null(part);
        else
            assert_string_equal(part == NULL ? "none" : part, cases[i].part);
        gpu_visible_clear(&visible);
    }
    device_list_destroy(&gpus);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(gpu_visible_name(DEVICE_NVIDIA), "CUDA_VISIBLE_DEVICES");
    assert_string_equal(gpu_visible_name(DEVICE_AMD), "ROCR_VISIBLE_DEVICES");
}

/* By address, else by name, else by number; those of AMD by number alone. */
static void test_order(void **state)
{
    (void)state;
    static const struct device devices[] = {
        {.kind = DEVICE_NIC, .name = (char *)"n", .number = 0},
        {.kind = DEVICE_NIC, .name = (char *)"n", .number = 2},
        {.kind = DEVICE_NIC, .name = (char *)"m", .number = 3},
        {.kind = DEVICE_NIC, .name = (char *)"z", .pci = (char *)"0000:02:00.0", .number = 4},
        {.kind = DEVICE_NIC, .name = (char *)"y", .pci = (char *)"0000:03:00.0", .number = 5},
        {.kind = DEVICE_NIC, .name = (char *)"n", .number = 1},
    };
    static const int wanted[] = {3, 0, 1, 2, 4, 5};
    struct device_list list = {0};
    for (size_t i = 0; i < 6; i++) {
        struct device copy;
        device_copy(&copy, &devices[i]);
        device_list_add(&list, &copy);
    }
    device_list_sort(&list);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(list.items[i].number, wanted[i]);
    device_list_destroy(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_and_ids), cmocka_unit_test(test_the_list_ends),
        cmocka_unit_test(test_unknown_ones),    cmocka_unit_test(test_parts),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_a_list_without_end),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
