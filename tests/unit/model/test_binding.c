/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/binding.h"

/* Two packages of two cores of two CPUs; the second CPUs are numbered 4 to 7, as on most machines.
 */
static void make(struct topology *topology)
{
    *topology = (struct topology){0};
    for (int core = 0; core < 4; core++) {
        for (int thread = 0; thread < 2; thread++)
            topology_add(topology, (struct topology_cpu){.cpu = core + 4 * thread,
                                                         .core = core,
                                                         .numa = core / 2,
                                                         .package = core / 2,
                                                         .allowed = true});
    }
}

static void forbid(struct topology *topology, int cpu)
{
    for (size_t i = 0; i < topology->count; i++) {
        if (topology->cpus[i].cpu == cpu)
            topology->cpus[i].allowed = false;
    }
}

static void assert_rank(const struct topology *topology, const struct binding *binding, size_t rank,
                        const char *list, const char *picture)
{
    struct buf text AUTO_BUF = BUF_INIT(256);
    assert_true(rank < binding->count);
    assert_int_equal(binding_list(&binding->ranks[rank], &text), 0);
    assert_string_equal(buf_text(&text), list);
    buf_clear(&text);
    assert_int_equal(binding_picture(topology, &binding->ranks[rank], &text), 0);
    assert_string_equal(buf_text(&text), picture);
}

static void test_core(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology);
    struct binding *binding = binding_create(&topology, BIND_CORE, 6, NULL);
    assert_int_equal(binding->count, 6);
    assert_int_equal(binding->places, 4);
    assert_rank(&topology, binding, 0, "0,4", "[BB/..][../..]");
    assert_rank(&topology, binding, 1, "1,5", "[../BB][../..]");
    assert_rank(&topology, binding, 3, "3,7", "[../..][../BB]");
    assert_rank(&topology, binding, 4, "0,4", "[BB/..][../..]"); /* round again */
    assert_int_equal(cpu_mask_count(&binding->ranks[5]), 2);
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_numa_and_none(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology);
    struct binding *binding = binding_create(&topology, BIND_NUMA, 3, NULL);
    assert_int_equal(binding->places, 2);
    assert_rank(&topology, binding, 0, "0-1,4-5", "[BB/BB][../..]");
    assert_rank(&topology, binding, 1, "2-3,6-7", "[../..][BB/BB]");
    assert_rank(&topology, binding, 2, "0-1,4-5", "[BB/BB][../..]");
    binding_destroy(binding);
    binding = binding_create(&topology, BIND_NONE, 1, NULL);
    assert_rank(&topology, binding, 0, "0-7", "[BB/BB][BB/BB]");
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_only_allowed_cpus(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology);
    forbid(&topology, 0);
    forbid(&topology, 4);
    forbid(&topology, 6);
    struct binding *binding = binding_create(&topology, BIND_CORE, 3, NULL);
    assert_int_equal(binding->places, 3);
    assert_rank(&topology, binding, 0, "1,5", "[xx/BB][.x/..]");
    assert_rank(&topology, binding, 1, "2", "[xx/..][Bx/..]");
    assert_rank(&topology, binding, 2, "3,7", "[xx/..][.x/BB]");
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_partly_allowed_core(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology);
    forbid(&topology, 4);
    struct binding *binding = binding_create(&topology, BIND_CORE, 2, NULL);
    assert_rank(&topology, binding, 0, "0", "[Bx/..][../..]");
    assert_rank(&topology, binding, 1, "1,5", "[.x/BB][../..]");
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_no_cpu(void **state)
{
    (void)state;
    struct topology topology = {0};
    struct error err = ERROR_INIT;
    assert_null(binding_create(&topology, BIND_CORE, 2, &err));
    assert_non_null(strstr(err.text, "may use none"));
    topology_add(&topology, (struct topology_cpu){.cpu = 3, .allowed = false});
    topology_add(&topology, (struct topology_cpu){.cpu = -1, .allowed = true});
    assert_int_equal(topology.count, 1);
    assert_null(binding_create(&topology, BIND_NUMA, 2, &err));
    topology_destroy(&topology);
    binding_destroy(NULL);
}

/* Memory nodes inside of one package, CPU numbers beyond one word, an unsorted source. */
static void test_large_numbers(void **state)
{
    (void)state;
    struct topology topology = {0};
    static const int cpus[] = {300, 5, 128, 64};
    for (int i = 0; i < 4; i++)
        topology_add(&topology, (struct topology_cpu){
                                    .cpu = cpus[i], .core = 3 - i, .numa = i < 2, .allowed = true});
    topology_sort(&topology);
    struct binding *binding = binding_create(&topology, BIND_NUMA, 2, NULL);
    assert_rank(&topology, binding, 0, "64,128", "[B/B|./.]");
    assert_rank(&topology, binding, 1, "5,300", "[./.|B/B]");
    assert_false(cpu_mask_has(&binding->ranks[0], -1));
    assert_false(cpu_mask_has(&binding->ranks[0], 100000));
    assert_int_equal(binding->ranks[0].bytes % sizeof(unsigned long), 0);
    struct buf small AUTO_BUF = BUF_INIT(4);
    assert_int_not_equal(binding_picture(&topology, &binding->ranks[0], &small), 0);
    binding_destroy(binding);
    topology_destroy(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core),
        cmocka_unit_test(test_numa_and_none),
        cmocka_unit_test(test_only_allowed_cpus),
        cmocka_unit_test(test_partly_allowed_core),
        cmocka_unit_test(test_no_cpu),
        cmocka_unit_test(test_large_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
