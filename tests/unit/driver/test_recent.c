/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "driver/tell/recent.h"

static void add(struct recent *recent, int rank, const char *text, size_t length)
{
    struct recent_piece piece = {.rank = rank,
                                 .is_stderr = rank % 2 == 1,
                                 .wall_ns = 1000 + rank,
                                 .text = text,
                                 .length = length};
    recent_add(recent, &piece);
}

static void append(void *context, const struct recent_piece *piece)
{
    struct buf *out = context;
    assert_int_equal(piece->is_stderr, piece->rank % 2 == 1);
    assert_int_equal(piece->wall_ns, 1000 + piece->rank);
    buf_append(out, piece->text, piece->length);
}

static void test_few(void **state)
{
    (void)state;
    struct recent *recent = recent_create(RECENT_BYTES);
    struct buf out AUTO_BUF = BUF_INIT(1 << 20);
    recent_walk(recent, append, &out);
    assert_int_equal(out.length, 0);
    assert_int_equal(recent_last_ns(recent), 0);
    add(recent, 0, "one\n", 4);
    add(recent, 3, "", 0);
    add(recent, 1, "two\nthree\n", 10);
    recent_walk(recent, append, &out);
    assert_string_equal(buf_text(&out), "one\ntwo\nthree\n");
    assert_int_equal(recent_last_ns(recent), 1001);
    recent_destroy(recent);
    recent_destroy(NULL);
}

static void test_launcher(void **state)
{
    (void)state;
    struct recent *recent = recent_create(RECENT_BYTES);
    struct recent_piece piece = {.rank = RECENT_LAUNCHER, .wall_ns = 5, .text = "m", .length = 1};
    recent_add(recent, &piece);
    assert_int_equal(recent_last_ns(recent), 0); /* not an output of the job */
    recent_destroy(recent);
}

/* What is kept is the end of all that was added, whatever the sizes of the pieces. */
static void test_ring(void **state)
{
    (void)state;
    struct recent *recent = recent_create(RECENT_BYTES);
    struct buf all AUTO_BUF = BUF_INIT((size_t)1 << 26);
    uint32_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        char text[3000];
        seed = seed * 1664525 + 1013904223;
        size_t length = (seed >> 16) % (i % 7 == 0 ? sizeof(text) : 60);
        for (size_t at = 0; at < length; at++)
            text[at] = (char)('a' + (i + (int)at) % 26);
        add(recent, i % 5, text, length);
        buf_append(&all, text, length);
        if (i % 97 != 0)
            continue;
        struct buf kept AUTO_BUF = BUF_INIT((size_t)1 << 20);
        recent_walk(recent, append, &kept);
        assert_true(kept.length <= RECENT_BYTES);
        assert_true(kept.length >= all.length || kept.length >= RECENT_BYTES / 4);
        assert_memory_equal(buf_text(&kept), buf_text(&all) + all.length - kept.length,
                            kept.length);
    }
    recent_destroy(recent);
}

/* The ring ends with room for a head, or is full to its last byte. */
static void test_edges(void **state)
{
    (void)state;
    const size_t head = 24; /* of a piece in the ring */
    struct recent *recent = recent_create(RECENT_BYTES);
    char text[RECENT_BYTES / 64];
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 63; i++)
        add(recent, 0, text, sizeof(text) - head);
    add(recent, 0, text, sizeof(text) - 2 * head);
    add(recent, 1, "next", 4);
    struct buf kept AUTO_BUF = BUF_INIT((size_t)1 << 20);
    recent_walk(recent, append, &kept);
    assert_int_equal(kept.length, 62 * (sizeof(text) - head) + sizeof(text) - 2 * head + 4);
    recent_destroy(recent);
}

static void test_long_piece(void **state)
{
    (void)state;
    struct recent *recent = recent_create(RECENT_BYTES);
    struct buf kept AUTO_BUF = BUF_INIT((size_t)1 << 20);
    char *text AUTO_FREE = mem_alloc(RECENT_BYTES * 2);
    memset(text, 'x', RECENT_BYTES * 2);
    text[RECENT_BYTES * 2 - 1] = 'e';
    add(recent, 0, text, RECENT_BYTES * 2);
    recent_walk(recent, append, &kept);
    assert_true(kept.length >= 10000 && kept.length < RECENT_BYTES);
    assert_int_equal(buf_text(&kept)[kept.length - 1], 'e');
    recent_destroy(recent);
}

static void append_line(void *context, const struct recent_piece *line)
{
    struct buf *out = context;
    assert_int_equal(line->wall_ns, 1000 + line->rank);
    buf_printf(out, "%d %d [%.*s]\n", line->rank, line->is_stderr, (int)line->length, line->text);
}

static void expect_lines(const struct recent *recent, size_t most, const char *expected)
{
    struct buf out AUTO_BUF = BUF_INIT(1 << 20);
    recent_walk_lines(recent, most, append_line, &out);
    assert_string_equal(buf_text(&out), expected);
}

static void test_last_lines(void **state)
{
    (void)state;
    struct recent *recent = recent_create(RECENT_BYTES);
    expect_lines(recent, 2, "");
    add(recent, 0, "one\n\nthree\n", 11);
    add(recent, 1, "four\nfi", 7);
    add(recent, 2, "six\n", 4);
    expect_lines(recent, 0, "");
    expect_lines(recent, 1, "2 0 [six]\n");
    expect_lines(recent, 4, "0 0 [three]\n1 1 [four]\n1 1 [fi]\n2 0 [six]\n"); /* amid a piece */
    expect_lines(recent, 6, "0 0 [one]\n0 0 []\n0 0 [three]\n1 1 [four]\n1 1 [fi]\n2 0 [six]\n");
    expect_lines(recent, SIZE_MAX,
                 "0 0 [one]\n0 0 []\n0 0 [three]\n1 1 [four]\n1 1 [fi]\n2 0 [six]\n");
    recent_destroy(recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),        cmocka_unit_test(test_launcher),
        cmocka_unit_test(test_ring),       cmocka_unit_test(test_edges),
        cmocka_unit_test(test_long_piece), cmocka_unit_test(test_last_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
