/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/request.h"

static struct request tensor(enum kind kind, const char *name, int64_t rows, int64_t columns)
{
    struct request request = {.key = request_key(kind, name),
                              .kind = kind,
                              .type = HVD_FLOAT32,
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1,
                              .dims = 2};
    request.shape = mem_array(2, sizeof *request.shape);
    request.shape[0] = rows;
    request.shape[1] = columns;
    return request;
}

static void test_it_comes_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf buf = BUF_INIT(1000);
    AUTO_REQUEST struct request one = tensor(KIND_REDUCESCATTER, "name", 3, 70000), two = {0};
    one.prescale = 0.25;
    one.root = -7;
    one.priority = -70000;
    one.on_gpu = true;
    request_write(&one, &buf);
    struct reader in = {(const unsigned char *)buf_text(&buf), buf.length, false};
    assert_int_equal(request_read(&in, 4, &two), 0);
    assert_int_equal(in.left, 0);
    assert_string_equal(two.key, "tname");
    assert_string_equal(request_name(&two), "name");
    assert_null(request_difference(&one, &two));
    assert_int_equal(two.root, -7);
    assert_int_equal(two.priority, -70000);
    assert_true(two.on_gpu);
    assert_int_equal(request_elements(&two), 210000);
    assert_int_equal(request_bytes(&two), 840000);
    for (size_t length = 0; length < buf.length; length++) { /* cut off anywhere */
        AUTO_REQUEST struct request three = {0};
        struct reader part = {(const unsigned char *)buf_text(&buf), length, false};
        assert_int_equal(request_read(&part, 4, &three), -1);
        assert_null(three.key);
    }
}

static void expect_difference(struct request *a, struct request *b, const char *what,
                              const char *value_a, const char *value_b)
{
    AUTO_BUF struct buf first = BUF_INIT(100), second = BUF_INIT(100);
    const char *difference = request_difference(a, b);
    assert_string_equal(difference, what);
    request_describe(a, difference, &first);
    request_describe(b, difference, &second);
    assert_string_equal(buf_text(&first), value_a);
    assert_string_equal(buf_text(&second), value_b);
}

static void test_differences(void **state)
{
    (void)state;
    AUTO_REQUEST struct request a = tensor(KIND_ALLREDUCE, "x", 2, 3),
                                b = tensor(KIND_ALLREDUCE, "x", 2, 3);
    assert_null(request_difference(&a, &b));
    assert_true(request_fuses(&a, &b));
    b.on_gpu = true;
    assert_false(request_fuses(&a, &b));
    expect_difference(&a, &b, "kinds of memory", "host", "GPU");
    b.root = 1;
    expect_difference(&a, &b, "roots", "0", "1");
    b.op = HVD_MAX;
    expect_difference(&a, &b, "reductions", "sum", "max");
    b.postscale = 0.5;
    expect_difference(&a, &b, "scales", "1 and 1", "1 and 0.5");
    b.shape[0] = 5;
    expect_difference(&a, &b, "shapes", "[2, 3]", "[5, 3]");
    b.kind = KIND_ALLGATHER;
    expect_difference(&a, &b, "operations", "allreduce", "allgather");
    b.type = HVD_BFLOAT16;
    expect_difference(&a, &b, "types", "float32", "bfloat16");
}

static void test_first_dimension_of_an_allgather_is_free(void **state)
{
    (void)state;
    AUTO_REQUEST struct request a = tensor(KIND_ALLGATHER, "x", 2, 3),
                                b = tensor(KIND_ALLGATHER, "x", 0, 3);
    b.op = HVD_MAX; /* not used */
    b.prescale = 2;
    assert_null(request_difference(&a, &b));
    b.dims = 1;
    assert_non_null(request_difference(&a, &b));
    b.dims = 2;
    b.shape[1] = 4;
    assert_non_null(request_difference(&a, &b));
}

static void test_too_large_for_memory(void **state)
{
    (void)state;
    AUTO_REQUEST struct request a = tensor(KIND_ALLREDUCE, "x", INT64_MAX, INT64_MAX);
    assert_true(request_bytes(&a) == SIZE_MAX);
    a.shape[1] = 0;
    assert_int_equal(request_bytes(&a), 0);
    a.shape[0] = INT64_MAX / 2;
    a.shape[1] = 2;
    assert_true(request_bytes(&a) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_comes_back),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_first_dimension_of_an_allgather_is_free),
        cmocka_unit_test(test_too_large_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
