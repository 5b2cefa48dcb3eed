/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/request.h"

enum { COUNT = 6, RANKS = 3 };

static void expect(const struct request *requests, size_t threshold, const size_t *expected,
                   size_t groups)
{
    const struct request *list[COUNT];
    size_t found[COUNT];
    for (int i = 0; i < COUNT; i++)
        list[i] = &requests[i];
    assert_int_equal(fusion_groups(list, COUNT, RANKS, threshold, found), groups);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(found[i], expected[i]);
}

static void test_groups(void **state)
{
    (void)state;
    int64_t ten = 10, forty = 40;
    struct request requests[COUNT];
    for (int i = 0; i < COUNT; i++)
        requests[i] = (struct request){.key = "tx",
                                       .kind = KIND_ALLREDUCE,
                                       .type = HVD_FLOAT32,
                                       .op = HVD_SUM,
                                       .prescale = 1,
                                       .postscale = 1,
                                       .dims = 1,
                                       .shape = &ten}; /* 40 bytes */
    expect(requests, 240, (size_t[]){0, 0, 0, 0, 0, 0}, 1);
    expect(requests, 239, (size_t[]){0, 0, 0, 0, 0, 1}, 2);
    expect(requests, 80, (size_t[]){0, 0, 1, 1, 2, 2}, 3);
    expect(requests, 40, (size_t[]){0, 1, 2, 3, 4, 5}, 6);
    expect(requests, 0, (size_t[]){0, 1, 2, 3, 4, 5}, 6);
    requests[1].type = HVD_FLOAT64;
    requests[2].kind = KIND_BROADCAST;
    requests[4].prescale = 2;
    expect(requests, 1000, (size_t[]){0, 1, 2, 0, 3, 0}, 4);
    requests[1].type = HVD_FLOAT32;
    requests[1].shape = &forty; /* alone, and the others still fuse around it */
    expect(requests, 120, (size_t[]){0, 1, 2, 0, 3, 0}, 4);
}

static void test_large_tensors_run_alone(void **state)
{
    (void)state;
    int64_t lengths[COUNT] = {FUSION_ALONE, 1, FUSION_ALONE + 1, FUSION_ALONE, 5, FUSION_ALONE * 2};
    struct request requests[COUNT];
    for (int i = 0; i < COUNT; i++)
        requests[i] = (struct request){.key = "tx",
                                       .kind = KIND_ALLREDUCE,
                                       .type = HVD_INT8,
                                       .prescale = 1,
                                       .postscale = 1,
                                       .dims = 1,
                                       .shape = &lengths[i]};
    /* FUSION_ALONE itself still fits. */
    expect(requests, (size_t)1 << 30, (size_t[]){0, 0, 1, 0, 0, 2}, 3);
}

/* Reductions must be alike, broadcasts have one root, and gathered tensors may have any types. */
static void test_other_operations(void **state)
{
    (void)state;
    int64_t ten = 10;
    struct request requests[COUNT];
    for (int i = 0; i < COUNT; i++)
        requests[i] = (struct request){.key = "tx",
                                       .kind = KIND_ALLGATHER,
                                       .type = i % 2 == 0 ? HVD_INT8 : HVD_FLOAT64,
                                       .prescale = 1,
                                       .postscale = 1,
                                       .dims = 1,
                                       .shape = &ten};
    /* 30 and 240 bytes from three ranks */
    expect(requests, 1000, (size_t[]){0, 0, 0, 0, 0, 0}, 1);
    expect(requests, 300, (size_t[]){0, 0, 0, 1, 1, 2}, 3);
    for (int i = 0; i < COUNT; i++)
        requests[i].kind = KIND_REDUCESCATTER;
    expect(requests, 1000, (size_t[]){0, 1, 0, 1, 0, 1}, 2);
    requests[4].op = HVD_SUM;
    expect(requests, 1000, (size_t[]){0, 1, 0, 1, 2, 1}, 3);
    for (int i = 0; i < COUNT; i++) {
        requests[i].kind = KIND_BROADCAST;
        requests[i].root = i / 4;
    }
    expect(requests, 1000, (size_t[]){0, 0, 0, 0, 1, 1}, 2);
    for (int i = 0; i < COUNT; i++)
        requests[i].kind = KIND_ALLTOALL;
    expect(requests, 1000, (size_t[]){0, 1, 2, 3, 4, 5}, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_large_tensors_run_alone),
                                       cmocka_unit_test(test_other_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
