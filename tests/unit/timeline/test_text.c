/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "timeline/text_test.h"

#define ORIGIN 5000000

struct fixture {
    struct timeline_text *text;
    struct buf out;
    int64_t now; /* microseconds */
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    f->text = timeline_text_create(ORIGIN);
    buf_init(&f->out, 1 << 20);
    timeline_text_head(f->text, 1700000000000000, &f->out);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    timeline_text_destroy(f->text);
    timeline_text_destroy(NULL);
    buf_destroy(&f->out);
    free(f);
    return 0;
}

static void send_event(struct fixture *f, struct trace_event event)
{
    event.time_ns = ORIGIN + 1000 * ++f->now + 999;
    timeline_text_event(f->text, &event, &f->out);
}

static void send_kind(struct fixture *f, enum trace_kind kind, const char *what)
{
    send_event(f, (struct trace_event){.kind = kind, .tensor = "grad.1", .what = what});
}

static json_t *parse(struct fixture *f)
{
    json_error_t error;
    AUTO_FREE char *whole = mem_printf("[\n%s\n]", buf_text(&f->out));
    json_t *list = json_loads(whole, 0, &error);
    if (list == NULL)
        fail_msg("%s in line %d: %s", error.text, error.line, whole);
    return list;
}

/* "B NEGOTIATE_ALLREDUCE 1" for each event of a row; the M events are left out. */
static char *story(struct fixture *f)
{
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    json_t *list = parse(f);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        const char *phase = json_string_value(json_object_get(object, "ph"));
        const char *name = json_string_value(json_object_get(object, "name"));
        if (strcmp(phase, "M") == 0)
            continue;
        buf_printf(&out, "%s%s%s@%d ", phase, name == NULL ? "" : ":", name == NULL ? "" : name,
                   (int)json_integer_value(json_object_get(object, "ts")));
    }
    json_decref(list);
    return mem_strdup(buf_text(&out));
}

static void expect_story(struct fixture *f, const char *expected)
{
    AUTO_FREE char *told = story(f);
    assert_string_equal(told, expected);
}

static void test_a_negotiated_tensor(void **state)
{
    struct fixture *f = *state;
    const int64_t shape[] = {2, 3};
    send_kind(f, TRACE_NEGOTIATE_BEGIN, "allreduce");
    send_event(f, (struct trace_event){.kind = TRACE_RANK_READY, .tensor = "grad.1", .rank = 1});
    send_event(f, (struct trace_event){.kind = TRACE_RANK_READY, .tensor = "grad.1", .rank = 0});
    send_kind(f, TRACE_NEGOTIATE_END, NULL);
    send_kind(f, TRACE_OPERATION_BEGIN, "allreduce");
    send_kind(f, TRACE_ACTIVITY_BEGIN, "MEMCPY_IN_FUSION_BUFFER");
    send_kind(f, TRACE_ACTIVITY_END, NULL);
    send_kind(f, TRACE_ACTIVITY_BEGIN, "GLOO_ALLREDUCE");
    send_kind(f, TRACE_ACTIVITY_END, NULL);
    send_event(f, (struct trace_event){.kind = TRACE_OPERATION_END,
                                       .tensor = "grad.1",
                                       .type = "float32",
                                       .shape = shape,
                                       .dims = 2});
    expect_story(f, "B:NEGOTIATE_ALLREDUCE@1 X:1@2 X:0@3 E@4 B:ALLREDUCE@5 "
                    "B:MEMCPY_IN_FUSION_BUFFER@6 E@7 B:GLOO_ALLREDUCE@8 E@9 E@10 ");
    json_t *list = parse(f), *ready = json_array_get(list, 5), *end = json_array_get(list, 13);
    assert_int_equal(json_integer_value(json_object_get(ready, "dur")), 0);
    assert_true(json_is_integer(json_object_get(ready, "dur")));
    assert_int_equal(json_integer_value(json_object_get(end, "pid")), 1);
    const json_t *args = json_object_get(end, "args");
    assert_string_equal(json_string_value(json_object_get(args, "dtype")), "float32");
    assert_string_equal(json_string_value(json_object_get(args, "shape")), "[2, 3]");
    json_decref(list);
}

static void test_head_and_rows(void **state)
{
    struct fixture *f = *state;
    send_kind(f, TRACE_OPERATION_BEGIN, "broadcast");
    send_kind(f, TRACE_OPERATION_END, NULL);
    json_t *list = parse(f);
    assert_int_equal(json_array_size(list), 6);
    const json_t *start = json_object_get(json_array_get(list, 0), "args");
    assert_true(json_integer_value(json_object_get(start, "start_time_since_epoch_in_micros")) ==
                1700000000000000);
    const json_t *row = json_array_get(list, 2);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "process_name");
    assert_string_equal(json_string_value(json_object_get(row, "ph")), "M");
    assert_int_equal(json_integer_value(json_object_get(row, "pid")), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(row, "args"), "name")),
                        "grad.1");
    const json_t *order = json_object_get(json_array_get(list, 3), "args");
    assert_int_equal(json_integer_value(json_object_get(order, "sort_index")), 1);
    assert_null(json_object_get(json_array_get(list, 5), "args")); /* it failed: no type */
    json_decref(list);
}

static void test_cycles(void **state)
{
    struct fixture *f = *state;
    send_event(f, (struct trace_event){.kind = TRACE_CYCLE});
    json_t *list = parse(f), *mark = json_array_get(list, 2);
    assert_string_equal(json_string_value(json_object_get(mark, "ph")), "i");
    assert_string_equal(json_string_value(json_object_get(mark, "name")), "CYCLE_START");
    assert_string_equal(json_string_value(json_object_get(mark, "s")), "g");
    assert_null(json_object_get(mark, "pid"));
    json_decref(list);
}

/* The timeline was started in the middle, or events were dropped. */
static void test_ends_without_beginnings(void **state)
{
    struct fixture *f = *state;
    send_kind(f, TRACE_ACTIVITY_END, NULL);
    send_kind(f, TRACE_OPERATION_END, NULL);
    send_kind(f, TRACE_NEGOTIATE_END, NULL);
    send_kind(f, TRACE_RANK_READY, NULL);
    send_kind(f, TRACE_ACTIVITY_BEGIN, "GLOO_ALLREDUCE");
    expect_story(f, "");
}

static void test_beginnings_without_ends(void **state)
{
    struct fixture *f = *state;
    send_kind(f, TRACE_NEGOTIATE_BEGIN, "allreduce");
    send_kind(f, TRACE_OPERATION_BEGIN, "allreduce");
    send_kind(f, TRACE_ACTIVITY_BEGIN, "A");
    send_kind(f, TRACE_ACTIVITY_BEGIN, "B");
    send_kind(f, TRACE_OPERATION_BEGIN, "error");
    send_kind(f, TRACE_OPERATION_END, NULL);
    expect_story(f, "B:NEGOTIATE_ALLREDUCE@1 E@2 B:ALLREDUCE@2 B:A@3 E@4 B:B@4 E@5 E@5 B:ERROR@5 "
                    "E@6 ");
}

/* Whatever the order: in each row as many ends as beginnings before them. */
static void test_any_order_is_balanced(void **state)
{
    struct fixture *f = *state;
    unsigned int seed = 7;
    int depth[4] = {0};
    for (int i = 0; i < 3000; i++) {
        char name[] = "t0";
        seed = seed * 1103515245 + 12345;
        name[1] = (char)('0' + (seed >> 16) % 3);
        enum trace_kind kind = (enum trace_kind)((seed >> 20) % TRACE_CYCLE);
        send_event(f, (struct trace_event){.kind = kind, .tensor = name, .what = "x"});
    }
    json_t *list = parse(f);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        const char *phase = json_string_value(json_object_get(object, "ph"));
        size_t row = (size_t)json_integer_value(json_object_get(object, "pid"));
        assert_in_range(row, 0, 3);
        depth[row] += strcmp(phase, "B") == 0;
        depth[row] -= strcmp(phase, "E") == 0;
        assert_in_range(depth[row], 0, 2);
    }
    json_decref(list);
}

static void expect_quoted(const char *string, const char *expected)
{
    AUTO_BUF struct buf out = BUF_INIT(1000);
    timeline_text_quote(string, &out);
    json_t *value = json_loads(buf_text(&out), JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    assert_string_equal(json_string_value(value), expected);
    json_decref(value);
}

static void test_names(void **state)
{
    (void)state;
    expect_quoted("plain", "plain");
    expect_quoted("\"\\/\b\n\x1f\x7f", "\"\\/\b\n\x1f\x7f");
    expect_quoted("gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac \xf0\x9f\x98\x80",
                  "gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac \xf0\x9f\x98\x80");
    expect_quoted("a\xff", "a\xef\xbf\xbd");
    expect_quoted("\xc3", "\xef\xbf\xbd");                 /* ends too early */
    expect_quoted("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"); /* likewise */
    expect_quoted("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"); /* a longer form of '/' */
    expect_quoted("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
}

/* Names of any bytes give a string that another parser reads. */
static void test_random_names(void **state)
{
    (void)state;
    unsigned int seed = 11;
    for (int round = 0; round < 20000; round++) {
        AUTO_BUF struct buf out = BUF_INIT(1000);
        char name[12];
        for (size_t i = 0; i + 1 < sizeof(name); i++) {
            seed = seed * 1103515245 + 12345;
            name[i] = (char)(seed >> 16);
        }
        name[sizeof(name) - 1] = '\0';
        timeline_text_quote(name, &out);
        json_t *value = json_loads(buf_text(&out), JSON_DECODE_ANY, NULL);
        if (value == NULL)
            fail_msg("not JSON: %s", buf_text(&out));
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_negotiated_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_head_and_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cycles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_without_beginnings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_beginnings_without_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_order_is_balanced, setup, teardown),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_random_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
