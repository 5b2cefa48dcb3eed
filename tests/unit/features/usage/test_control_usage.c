/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "features/usage/usage_marks.h"
#include "features/usage/usage_test.h"

static void expect(const char *json, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    json_t *usage = json_loads(json, 0, NULL);
    assert_non_null(usage);
    usage_marks_set(usage);
    control_usage_text(usage, &text);
    json_decref(usage);
    assert_string_equal(buf_text(&text), expected);
}

#define RANK(rank, cpus) \
    "{\"rank\":" #rank ",\"host\":\"a\",\"cpus\":" #cpus ",\"resident_bytes\":3221225472}"

static void test_one_that_differs(void **state)
{
    (void)state;
    expect("{\"job\":\"hvdrun-n-1\",\"state\":\"running\",\"size\":4,\"up_s\":75.2,"
           "\"hosts\":[{\"host\":\"a\",\"load\":12.345,\"memory_bytes\":68719476736,"
           "\"memory_available_bytes\":17179869184,\"pressure\":{\"cpu\":1.6,\"io\":0}}],"
           "\"ranks\":[" RANK(0, 1.0) "," RANK(1, 1.01) "," RANK(2, 0.02) "," RANK(3, 0.99) "]}",
           "hvdrun-n-1: running, 4 ranks on 1 host, up 1 min 15 s\n"
           "\n"
           "   rank  host    cpu    last output   memory  read  written  threads  processes\n"
           "*     2  a       2 % <            -  3.0 GiB     -        -        -          -\n"
           "      0  a     100 %              -  3.0 GiB     -        -        -          -\n"
           "      1  a     101 %              -  3.0 GiB     -        -        -          -\n"
           "      3  a      99 %              -  3.0 GiB     -        -        -          -\n"
           "\n"
           "  host   load            memory  cpu waits  memory waits  io waits\n"
           "  a     12.35  48 GiB of 64 GiB        2 %             -       0 %\n");
}

static void test_little(void **state)
{
    (void)state;
    expect("{}", "job: state unknown, 0 ranks on 0 hosts, up 0 s\n"
                 "\n"
                 "  rank  host  cpu  last output  memory  read  written  threads  processes\n"
                 "\n"
                 "  host  load  memory  cpu waits  memory waits  io waits\n");
    expect("{\"job\":7,\"up_s\":\"x\",\"hosts\":[1],\"ranks\":[null,{\"cpus\":[]}]}",
           "job: state unknown, 2 ranks on 1 host, up 0 s\n"
           "\n"
           "  rank  host  cpu  last output  memory  read  written  threads  processes\n"
           "     0  ?       -            -       -     -        -        -          -\n"
           "     0  ?       -            -       -     -        -        -          -\n"
           "\n"
           "  host  load  memory  cpu waits  memory waits  io waits\n"
           "  ?        -       -          -             -         -\n");
}

/* A column of its own, and a rank that is behind comes first. */
static void test_progress(void **state)
{
    (void)state;
    expect(
        "{\"ranks\":[{\"rank\":0,\"progress\":{\"percent\":50.25}},"
        "{\"rank\":1,\"progress\":{\"percent\":51}},{\"rank\":2,\"progress\":{\"percent\":9}},"
        "{\"rank\":3,\"progress\":{\"text\":\"soon\"}}]}",
        "job: state unknown, 4 ranks on 0 hosts, up 0 s\n"
        "\n"
        "   rank  host  cpu  last output  progress    memory  read  written  threads  processes\n"
        "*     2  ?       -            -     9.0 % <       -     -        -        -          -\n"
        "      0  ?       -            -    50.2 %         -     -        -        -          -\n"
        "      1  ?       -            -    51.0 %         -     -        -        -          -\n"
        "      3  ?       -            -         -         -     -        -        -          -\n"
        "\n"
        "  host  load  memory  cpu waits  memory waits  io waits\n");
}

static void expect_mark(const json_t *ranks, size_t place, int rank, const char *marks)
{
    const json_t *one = json_array_get(ranks, place);
    char *text = json_dumps(json_object_get(one, "marks"), JSON_COMPACT);
    assert_int_equal(json_integer_value(json_object_get(one, "rank")), rank);
    assert_string_equal(text, marks);
    free(text);
}

/* A column of GPUs is there if any rank has the value. */
static void test_gpus(void **state)
{
    (void)state;
    expect("{\"job\":\"j\",\"state\":\"running\",\"up_s\":1,\"hosts\":[],\"ranks\":["
           "{\"rank\":0,\"host\":\"a\",\"gpus\":1,\"gpu_use_percent\":100,\"gpu_power_w\":122.4},"
           "{\"rank\":1,\"host\":\"a\"},"
           "{\"rank\":2,\"host\":\"a\",\"gpus\":1,\"gpu_use_percent\":98,\"gpu_power_w\":690.5},"
           "{\"rank\":3,\"host\":\"a\",\"gpus\":1,\"gpu_use_percent\":99,\"gpu_power_w\":691}]}",
           "j: running, 4 ranks on 0 hosts, up 1 s\n"
           "\n"
           "   rank  host  cpu  last output  memory    gpu  gpu power    read  written  threads  "
           "processes\n"
           "*     0  a       -            -       -  100 %      122 W <     -        -        -    "
           "      -\n"
           "      1  a       -            -       -      -          -       -        -        -    "
           "      -\n"
           "      2  a       -            -       -   98 %      690 W       -        -        -    "
           "      -\n"
           "      3  a       -            -       -   99 %      691 W       -        -        -    "
           "      -\n"
           "\n"
           "  host  load  memory  cpu waits  memory waits  io waits\n");
}

static void test_marks(void **state)
{
    (void)state;
    json_t *usage =
        json_loads("{\"ranks\":["
                   "{\"rank\":0,\"resident_bytes\":2000000000,\"read_bytes\":999999999999},"
                   "{\"rank\":1,\"threads\":10,\"resident_bytes\":0},"
                   "{\"rank\":2,\"threads\":40,\"resident_bytes\":2000000000},"
                   "{\"rank\":3,\"threads\":10,\"resident_bytes\":2000000000},"
                   "{\"rank\":4,\"threads\":10,\"resident_bytes\":9000000000}]}",
                   0, NULL);
    usage_marks_set(usage);
    const json_t *ranks = json_object_get(usage, "ranks");
    expect_mark(ranks, 0, 1, "{\"resident_bytes\":\"less\"}");
    expect_mark(ranks, 1, 2, "{\"threads\":\"more\"}");
    expect_mark(ranks, 2, 4, "{\"resident_bytes\":\"more\"}");
    expect_mark(ranks, 3, 0, "{}"); /* it alone reads */
    expect_mark(ranks, 4, 3, "{}");
    json_decref(usage);
}

/* The user chooses another order; what is not known is last. */
static void test_orders(void **state)
{
    (void)state;
    static const char *const wanted[] = {"2 0 1 ", "0 1 2 ", "1 2 0 ",
                                         "0 1 2 ", "0 1 2 ", "2 0 1 "};
    for (size_t order = 0; order < 6; order++) {
        json_t *usage = json_loads("{\"ranks\":[{\"rank\":2,\"cpus\":0.5},{\"rank\":0},"
                                   "{\"rank\":1,\"cpus\":0.9}]}",
                                   0, NULL);
        struct buf got AUTO_BUF = BUF_INIT(256);
        control_usage_sort(usage, order);
        for (size_t i = 0; i < 3; i++)
            buf_printf(&got, "%lld ",
                       (long long)json_integer_value(json_object_get(
                           json_array_get(json_object_get(usage, "ranks"), i), "rank")));
        json_decref(usage);
        if (order != 3 && order != 4) /* nobody has these: any order */
            assert_string_equal(buf_text(&got), wanted[order]);
    }
    assert_string_equal(control_usage_order_name(0), control_usage_order_name(5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_differs),
        cmocka_unit_test(test_little),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
