/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "line/packet.h"

struct exchange {
    struct line_packet in, out;
    uint8_t bytes[LINE_PACKET_MAX + 64];
    size_t length;
};

static void pass(struct exchange *x)
{
    memset(&x->out, 0xee, sizeof(x->out));
    x->length = line_packet_put(&x->in, x->bytes);
    assert_in_range(x->length, 4, LINE_PACKET_MAX);
    assert_int_equal(line_packet_get(x->bytes, x->length, &x->out, NULL), 0);
    assert_int_equal(x->out.type, x->in.type);
}

static struct line_packet stall(void)
{
    struct line_packet packet = {
        .type = LINE_STALLED, .set = 7, .seconds = 60, .others = 3, .operation = "allreduce"};
    memcpy(packet.name, "grad.17", 8);
    line_ranks_add(&packet.waiting, 0);
    line_ranks_add(&packet.waiting, 1);
    line_ranks_add(&packet.waiting, 4);
    line_ranks_add(&packet.missing, 3);
    return packet;
}

static void test_short_types(void **state)
{
    (void)state;
    struct exchange x = {.in = {.type = LINE_EPOCH, .epoch = 0xfffffffe}};
    pass(&x);
    assert_int_equal(x.out.epoch, 0xfffffffe);
    x.in = (struct line_packet){.type = LINE_HOSTS};
    pass(&x);
    assert_int_equal(x.length, 4);
    x.in = (struct line_packet){.type = LINE_ASK};
    pass(&x);
    assert_int_equal(x.length, 4);
    x.in = (struct line_packet){.type = LINE_ASK_WAITS, .round = 0xfffffffe};
    pass(&x);
    assert_int_equal(x.out.round, 0xfffffffe);
    x.in = (struct line_packet){.type = LINE_GOES_ON, .set = 5};
    pass(&x);
    assert_int_equal(x.out.set, 5);
    x.in = (struct line_packet){.type = LINE_PROGRESS, .operations = (uint64_t)1 << 40};
    pass(&x);
    assert_true(x.out.operations == (uint64_t)1 << 40);
}

static void test_ended(void **state)
{
    (void)state;
    struct exchange x = {.in = {.type = LINE_ENDED, .epoch = 3, .ended_count = LINE_ENDED_MAX}};
    for (uint32_t i = 0; i < LINE_ENDED_MAX; i++)
        x.in.ended[i] = (struct line_ended){i * 1000, LINE_KILLED, 9};
    pass(&x);
    assert_int_equal(x.out.epoch, 3);
    assert_int_equal(x.out.ended_count, LINE_ENDED_MAX);
    for (uint32_t i = 0; i < LINE_ENDED_MAX; i++) {
        assert_int_equal(x.out.ended[i].rank, i * 1000);
        assert_int_equal(x.out.ended[i].how, LINE_KILLED);
        assert_int_equal(x.out.ended[i].code, 9);
    }
}

static void test_stalled(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    pass(&x);
    assert_int_equal(x.out.set, 7);
    assert_int_equal(x.out.seconds, 60);
    assert_int_equal(x.out.others, 3);
    assert_string_equal(x.out.operation, "allreduce");
    assert_string_equal(x.out.name, "grad.17");
    assert_int_equal(x.out.waiting.count, 2);
    assert_int_equal(x.out.waiting.ranges[0].last, 1);
    assert_int_equal(x.out.waiting.ranges[1].first, 4);
    assert_int_equal(x.out.missing.count, 1);
    assert_int_equal(x.out.missing.ranges[0].first, 3);
    assert_false(x.out.missing.more);
}

static void test_waits(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    x.in.type = LINE_WAITS;
    x.in.round = 9;
    pass(&x);
    assert_int_equal(x.out.round, 9);
    assert_int_equal(x.out.set, 7);
    assert_string_equal(x.out.name, "grad.17");
    assert_int_equal(x.out.missing.ranges[0].first, 3);
    x.in = (struct line_packet){.type = LINE_WAITS, .round = 10}; /* nothing waits */
    pass(&x);
    assert_int_equal(x.out.waiting.count + x.out.missing.count, 0);
}

/* The longest packet there is. */
static void test_limits(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    x.in.type = LINE_WAITS;
    memset(x.in.name, 'n', LINE_NAME_MAX);
    memset(x.in.operation, 'o', LINE_OPERATION_MAX);
    x.in.waiting = x.in.missing = (struct line_ranks){0};
    for (uint32_t rank = 0; rank < 1000; rank += 2) {
        line_ranks_add(&x.in.waiting, rank);
        line_ranks_add(&x.in.missing, rank + 1);
    }
    assert_int_equal(x.in.waiting.count, LINE_RANGES_MAX);
    assert_true(x.in.waiting.more);
    pass(&x);
    assert_true(x.out.waiting.more && x.out.missing.more);
    assert_int_equal(strlen(x.out.name), LINE_NAME_MAX);
    assert_int_equal(x.out.missing.ranges[LINE_RANGES_MAX - 1].first, 2 * LINE_RANGES_MAX - 1);
}

/* A range that did not fit is not made longer by a later rank that happens to follow the last one
 * that did. */
static void test_ranks_that_do_not_fit(void **state)
{
    (void)state;
    struct line_ranks ranks = {0};
    for (uint32_t i = 0; i < LINE_RANGES_MAX; i++)
        line_ranks_add(&ranks, 2 * i);
    line_ranks_add(&ranks, 1000);
    line_ranks_add(&ranks, 1001);
    assert_int_equal(ranks.count, LINE_RANGES_MAX);
    assert_int_equal(ranks.ranges[LINE_RANGES_MAX - 1].last, 2 * (LINE_RANGES_MAX - 1));
}

/* However many bytes are missing, it is an error and nothing is read behind the end. */
static void test_every_beginning_is_refused(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    x.in.type = LINE_WAITS;
    x.length = line_packet_put(&x.in, x.bytes);
    for (size_t length = 0; length < x.length; length++) {
        uint8_t *copy = test_malloc(length + 1);
        struct error err = ERROR_INIT;
        memcpy(copy, x.bytes, length);
        assert_int_equal(line_packet_get(copy, length, &x.out, &err), -1);
        assert_string_not_equal(err.text, "");
        test_free(copy);
    }
}

/* What a later version appends, and the types that it adds, are skipped. */
static void test_later_versions(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    x.length = line_packet_put(&x.in, x.bytes);
    x.bytes[0] = LINE_VERSION + 1;
    assert_int_equal(line_packet_get(x.bytes, x.length + 10, &x.out, NULL), 0);
    assert_int_equal(x.out.type, LINE_STALLED);
    x.bytes[1] = 99;
    assert_int_equal(line_packet_get(x.bytes, x.length, &x.out, NULL), 0);
    assert_int_equal(x.out.type, LINE_UNKNOWN);
    x.bytes[0] = 0;
    assert_int_equal(line_packet_get(x.bytes, x.length, &x.out, NULL), -1);
}

static int refused(struct exchange *x, size_t at, uint8_t byte)
{
    uint8_t old = x->bytes[at];
    x->bytes[at] = byte;
    int result = line_packet_get(x->bytes, x->length, &x->out, NULL);
    x->bytes[at] = old;
    return result;
}

static void test_bad_fields(void **state)
{
    (void)state;
    struct exchange x = {.in = stall()};
    x.length = line_packet_put(&x.in, x.bytes);
    const size_t operation = 4 + 12, name = operation + 2 + 9, waiting = name + 2 + 7;
    assert_int_equal(refused(&x, operation + 1, 9), 0);
    assert_int_equal(refused(&x, operation + 1, 200), -1);  /* too long */
    assert_int_equal(refused(&x, name + 2, '\n'), -1);      /* would be two lines */
    assert_int_equal(refused(&x, name + 2, '\x1b'), -1);    /* would control a terminal */
    assert_int_equal(refused(&x, name + 2, 0), -1);         /* would end the text */
    assert_int_equal(refused(&x, waiting, 1), -1);          /* 258 ranges */
    assert_int_equal(refused(&x, waiting + 3 + 3, 2), -1);  /* 2-1 */
    assert_int_equal(refused(&x, waiting + 3 + 11, 1), -1); /* 0-1,1-4 */
    x.in = (struct line_packet){.type = LINE_ENDED, .ended_count = 1};
    x.length = line_packet_put(&x.in, x.bytes);
    assert_int_equal(refused(&x, 4 + 4 + 1, 2), -1);
    assert_int_equal(refused(&x, 4 + 4, 1), -1);
    memset(x.bytes + x.length, 0, sizeof(x.bytes) - x.length);
    assert_int_equal(line_packet_get(x.bytes, LINE_PACKET_MAX, &x.out, NULL), 0);
    assert_int_equal(line_packet_get(x.bytes, LINE_PACKET_MAX + 1, &x.out, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_types),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ranks_that_do_not_fit),
        cmocka_unit_test(test_every_beginning_is_refused),
        cmocka_unit_test(test_later_versions),
        cmocka_unit_test(test_bad_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
