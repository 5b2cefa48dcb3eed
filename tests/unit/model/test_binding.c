/* SPDX-License-Identifier: Apache-2.0 */
/* Golden bindings: the picture of each worker on machines of many shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "model/binding/binding.h"
#include "model/binding/picture.h"
#include "topology_fixture.h"

static const struct machine two_by_two = {2, 2, 0, 4, 2};

static struct binding *bind(const struct topology *topology, const struct binding_request *request)
{
    struct error err = ERROR_INIT;
    struct binding *binding = binding_create(topology, request, &err);
    if (binding == NULL)
        fail_msg("%s", err.text);
    return binding;
}

/* Binds as many workers as there are pictures, which end with NULL. */
static void expect(const struct topology *topology, struct binding_request request,
                   const char *const *pictures)
{
    while (pictures[request.slots] != NULL)
        request.slots++;
    struct binding *binding = bind(topology, &request);
    for (int i = 0; i < request.slots; i++) {
        struct buf text AUTO_BUF = BUF_INIT(4096);
        assert_int_equal(binding_picture(topology, &binding->ranks[i], &text), 0);
        assert_string_equal(buf_text(&text), pictures[i]);
    }
    binding_destroy(binding);
}
#define EXPECT(topology, request, ...) \
    expect(topology, (struct binding_request)request, (const char *const[]){__VA_ARGS__, NULL})
#define REQUEST(...) \
    {                \
        __VA_ARGS__  \
    }

static void test_core(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, two_by_two);
    EXPECT(&topology, REQUEST(.unit = BIND_CORE), "[B...|....][....|....]",
           "[.B..|....][....|....]", "[..B.|....][....|....]", "[...B|....][....|....]",
           "[....|B...][....|....]");
    struct binding *binding =
        bind(&topology, &(struct binding_request){.unit = BIND_CORE, .slots = 17});
    struct buf text AUTO_BUF = BUF_INIT(256);
    cpu_mask_list(&binding->ranks[3], &text);
    assert_string_equal(buf_text(&text), "3,19"); /* both threads of the core */
    assert_int_equal(binding->cores, 16);
    assert_int_equal(binding->sharing, 2); /* the first and the last one */
    assert_memory_equal(binding->ranks[16].words, binding->ranks[0].words, binding->ranks[0].bytes);
    assert_int_equal(binding->threads[16], 1);
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_numa_and_none(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, two_by_two);
    EXPECT(&topology, REQUEST(.unit = BIND_NUMA), "[BBBB|....][....|....]",
           "[....|BBBB][....|....]", "[....|....][BBBB|....]", "[....|....][....|BBBB]",
           "[BBBB|....][....|....]");
    EXPECT(&topology, REQUEST(.unit = BIND_NONE), "[BBBB|BBBB][BBBB|BBBB]",
           "[BBBB|BBBB][BBBB|BBBB]");
    /* two workers of a node have half of its four cores each: nobody lacks a core */
    struct binding *binding =
        bind(&topology, &(struct binding_request){.unit = BIND_NUMA, .slots = 7});
    assert_int_equal(binding->threads[0], 2);
    assert_int_equal(binding->threads[3], 4);
    assert_int_equal(binding->sharing, 0);
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_l3(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){2, 1, 3, 2, 1});
    EXPECT(&topology, REQUEST(.unit = BIND_L3), "[BB/../..][../../..]", "[../BB/..][../../..]",
           "[../../BB][../../..]", "[../../..][BB/../..]");
    EXPECT(&topology, REQUEST(.unit = BIND_L3, .round_numa = true), "[BB/../..][../../..]",
           "[../../..][BB/../..]", "[../BB/..][../../..]", "[../../..][../BB/..]");
    topology_destroy(&topology);
    make_machine(&topology, two_by_two); /* no cache is known: the memory nodes */
    EXPECT(&topology, REQUEST(.unit = BIND_L3), "[BBBB|....][....|....]", "[....|BBBB][....|....]");
    topology_destroy(&topology);
}

static void test_round_the_memory_nodes(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, two_by_two);
    EXPECT(&topology, REQUEST(.unit = BIND_CORE, .round_numa = true), "[B...|....][....|....]",
           "[....|B...][....|....]", "[....|....][B...|....]", "[....|....][....|B...]",
           "[.B..|....][....|....]");
    topology_destroy(&topology);
}

/* In one memory node, else in one package, else somewhere. */
static void test_cores_for_each(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, two_by_two);
    EXPECT(&topology, REQUEST(.cpus_per_proc = 3), "[BBB.|....][....|....]",
           "[....|BBB.][....|....]", "[....|....][BBB.|....]", "[....|....][....|BBB.]",
           "[...B|...B][...B|....]", "[BBB.|....][....|....]");
    EXPECT(&topology, REQUEST(.cpus_per_proc = 6), "[BBBB|BB..][....|....]",
           "[....|....][BBBB|BB..]", "[BBBB|..BB][....|....]");
    EXPECT(&topology, REQUEST(.unit = BIND_CORE, .cpus_per_proc = 2, .round_numa = true),
           "[BB..|....][....|....]", "[....|BB..][....|....]", "[....|....][BB..|....]");
    EXPECT(&topology, REQUEST(.unit = BIND_NUMA, .cpus_per_proc = 2), "[BB..|....][....|....]",
           "[....|BB..][....|....]", "[....|....][BB..|....]", "[....|....][....|BB..]",
           "[..BB|....][....|....]");
    struct binding *binding =
        bind(&topology, &(struct binding_request){.cpus_per_proc = 20, .slots = 1});
    assert_true(binding->narrow);
    assert_int_equal(binding->threads[0], 16);
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_gpu(void **state)
{
    (void)state;
    struct topology topology;
    struct device_list gpus = {.count = 0};
    make_machine(&topology, two_by_two);
    add_gpu(&gpus, "0-3,16-19");
    add_gpu(&gpus, "0-3,16-19");
    add_gpu(&gpus, "8-11,24-27");
    add_gpu(&gpus, ""); /* near whom nobody knows */
    EXPECT(&topology, REQUEST(.unit = BIND_GPU, .gpus = &gpus), "[BBBB|....][....|....]",
           "[BBBB|....][....|....]", "[....|....][BBBB|....]", "[BBBB|BBBB][BBBB|BBBB]",
           "[BBBB|....][....|....]");
    EXPECT(&topology, REQUEST(.unit = BIND_GPU, .gpus = &gpus, .cpus_per_proc = 2),
           "[BB..|....][....|....]", "[..BB|....][....|....]", "[....|....][BB..|....]");
    EXPECT(&topology, REQUEST(.unit = BIND_GPU, .gpus = &gpus, .gpus_per_proc = 2),
           "[BBBB|....][....|....]", "[BBBB|BBBB][BBBB|BBBB]");
    forbid(&topology, 8, 11);
    forbid(&topology, 24, 27);
    EXPECT(&topology, REQUEST(.unit = BIND_GPU, .gpus = &gpus), "[BBBB|....][xxxx|....]",
           "[BBBB|....][xxxx|....]", "[BBBB|BBBB][xxxx|BBBB]");
    struct binding *binding =
        bind(&topology, &(struct binding_request){.unit = BIND_GPU, .gpus = &gpus, .slots = 3});
    assert_int_equal(binding->far, 1);
    binding_destroy(binding);
    device_list_destroy(&gpus);
    struct error err = ERROR_INIT;
    assert_null(binding_create(
        &topology, &(struct binding_request){.unit = BIND_GPU, .gpus = &gpus, .slots = 1}, &err));
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.text, "no GPU"));
    topology_destroy(&topology);
}

static void test_only_what_is_ours(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){2, 1, 0, 2, 2});
    forbid(&topology, 0, 0); /* all of core 0, one thread of core 2 */
    forbid(&topology, 4, 4);
    forbid(&topology, 6, 6);
    EXPECT(&topology, REQUEST(.unit = BIND_CORE), "[xB][..]", "[x.][B.]", "[x.][.B]", "[xB][..]");
    EXPECT(&topology, REQUEST(.unit = BIND_NUMA), "[xB][..]", "[x.][BB]");
    forbid(&topology, 0, 5);
    EXPECT(&topology, REQUEST(.unit = BIND_NUMA), "[xx][xB]", "[xx][xB]");
    topology_destroy(&topology);
}

static void test_one_cpu(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){1, 1, 0, 1, 1});
    for (int unit = BIND_NONE; unit <= BIND_L3; unit++)
        EXPECT(&topology, REQUEST(.unit = (enum bind_unit)unit), "[B]", "[B]", "[B]");
    EXPECT(&topology, REQUEST(.cpus_per_proc = 4), "[B]", "[B]");
    topology_destroy(&topology);
}

static void test_lists(void **state)
{
    (void)state;
    struct topology topology;
    char *lists[] = {(char *)"1:0-1", NULL, (char *)"", (char *)"0,8"};
    make_machine(&topology, two_by_two);
    EXPECT(&topology, REQUEST(.unit = BIND_CORE, .cpu_lists = lists), "[....|....][BB..|....]",
           "[B...|....][....|....]", "[.B..|....][....|....]", "[B...|....][B...|....]");
    /* who was given fewer cores than --cpus-per-proc shares them with nobody */
    struct error err = ERROR_INIT;
    struct binding *binding = binding_create(
        &topology, &(struct binding_request){.cpu_lists = lists, .cpus_per_proc = 3, .slots = 2},
        &err);
    assert_int_equal(binding->sharing, 0);
    binding_destroy(binding);
    char *wrong[] = {(char *)"0", (char *)"99"};
    assert_null(
        binding_create(&topology, &(struct binding_request){.cpu_lists = wrong, .slots = 2}, &err));
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.text, "'99'"));
    topology_destroy(&topology);
}

static void test_no_cpu(void **state)
{
    (void)state;
    struct topology topology = {0};
    struct error err = ERROR_INIT;
    const struct binding_request request = {.unit = BIND_CORE, .slots = 2};
    assert_null(binding_create(&topology, &request, &err));
    assert_non_null(strstr(err.text, "may not use any"));
    topology_add(&topology, (struct topology_cpu){.cpu = 3, .allowed = false});
    topology_add(&topology, (struct topology_cpu){.cpu = -1, .allowed = true});
    assert_int_equal(topology.count, 1);
    assert_null(binding_create(&topology, &request, &err));
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
    EXPECT(&topology, REQUEST(.unit = BIND_NUMA), "[BB|..]", "[..|BB]");
    struct binding *binding =
        bind(&topology, &(struct binding_request){.unit = BIND_NUMA, .slots = 2});
    struct buf text AUTO_BUF = BUF_INIT(64);
    cpu_mask_list(&binding->ranks[1], &text);
    assert_string_equal(buf_text(&text), "5,300");
    binding_destroy(binding);
    topology_destroy(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core),
        cmocka_unit_test(test_numa_and_none),
        cmocka_unit_test(test_l3),
        cmocka_unit_test(test_round_the_memory_nodes),
        cmocka_unit_test(test_cores_for_each),
        cmocka_unit_test(test_gpu),
        cmocka_unit_test(test_only_what_is_ours),
        cmocka_unit_test(test_one_cpu),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_no_cpu),
        cmocka_unit_test(test_large_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
