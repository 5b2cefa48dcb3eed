/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "features/debug/session_wire.h"

#define ROOM ((size_t)1 << 20)
#define ROUNDS 20000

static int take(const struct buf *bytes, bool from_driver, struct session_piece *piece,
                size_t *used)
{
    return session_take(buf_text(bytes), bytes->length, from_driver, piece, used);
}

static void test_pieces_come_out_as_they_went_in(void **state)
{
    struct buf bytes AUTO_BUF = BUF_INIT(ROOM);
    struct session_piece piece;
    size_t used;
    (void)state;
    session_put(&bytes, SESSION_DATA, "\0ab", 3);
    session_put_size(&bytes, 24, 65535);
    session_put(&bytes, SESSION_DATA, "", 0);
    assert_int_equal(take(&bytes, false, &piece, &used), 1);
    assert_int_equal(piece.kind, SESSION_DATA);
    assert_int_equal(piece.length, 3);
    assert_memory_equal(piece.body, "\0ab", 3);
    buf_consume(&bytes, used);
    assert_int_equal(take(&bytes, false, &piece, &used), 1);
    assert_int_equal(piece.kind, SESSION_SIZE);
    assert_int_equal(piece.rows, 24);
    assert_int_equal(piece.columns, 65535);
    buf_consume(&bytes, used);
    assert_int_equal(take(&bytes, false, &piece, &used), 1);
    assert_int_equal(piece.length, 0);
    buf_consume(&bytes, used);
    assert_int_equal(take(&bytes, false, &piece, &used), 0);

    session_put_status(&bytes, 139, "it goes on");
    assert_int_equal(take(&bytes, true, &piece, &used), 1);
    assert_int_equal(piece.status, 139);
    assert_int_equal(piece.length, 10);
    assert_memory_equal(piece.body, "it goes on", 10);
    assert_int_equal(used, bytes.length);
}

/* Each beginning of a piece asks for more, and nothing behind it is read. */
static void test_a_piece_in_parts(void **state)
{
    struct buf bytes AUTO_BUF = BUF_INIT(ROOM);
    struct session_piece piece;
    size_t used;
    (void)state;
    session_put_status(&bytes, 3, "remark");
    for (size_t length = 0; length < bytes.length; length++) {
        uint8_t *copy = malloc(length + 1);
        memcpy(copy, buf_text(&bytes), length);
        assert_int_equal(session_take(copy, length, true, &piece, &used), 0);
        free(copy);
    }
}

static void test_each_side_has_its_kinds(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        int of_client, of_driver;
    } cases[] = {
        {"\1\0\0\0", 4, 1, 1},        {"\2\0\0\4abcd", 8, 1, -1}, {"\2\0\0\3abc", 7, -1, -1},
        {"\2\0\0\5abcde", 9, -1, -1}, {"\3\0\0\1\7", 5, -1, 1},   {"\3\0\0\0", 4, -1, -1},
        {"\4\0\0\2no", 6, -1, 1},     {"\0\0\0\0", 4, -1, -1},    {"\5\0\0\0", 4, -1, -1},
        {"\1\1\0\0", 4, -1, -1},      {"\1\0\x40\0", 4, 0, 0},    {"\1\0\x40\1", 4, -1, -1},
        {"\1\0\xff\xff", 4, -1, -1},  {"GET / HTTP", 10, -1, -1}, {"{\"do\":1}", 8, -1, -1},
    };
    struct session_piece piece;
    size_t used;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(session_take(cases[i].bytes, cases[i].length, false, &piece, &used),
                         cases[i].of_client);
        assert_int_equal(session_take(cases[i].bytes, cases[i].length, true, &piece, &used),
                         cases[i].of_driver);
    }
}

static void test_what_is_too_long_is_cut(void **state)
{
    struct buf bytes AUTO_BUF = BUF_INIT(ROOM);
    struct session_piece piece;
    size_t used;
    char *text = malloc(SESSION_BODY_MAX + 100);
    (void)state;
    memset(text, 'x', SESSION_BODY_MAX + 99);
    text[SESSION_BODY_MAX + 99] = '\0';
    session_put(&bytes, SESSION_DATA, text, SESSION_BODY_MAX + 99);
    assert_int_equal(take(&bytes, true, &piece, &used), 1);
    assert_int_equal(piece.length, SESSION_BODY_MAX);
    assert_int_equal(used, bytes.length);
    buf_clear(&bytes);
    session_put_status(&bytes, 1, text);
    assert_int_equal(take(&bytes, true, &piece, &used), 1);
    assert_int_equal(piece.length, SESSION_BODY_MAX - 1);
    assert_int_equal(used, bytes.length);
    free(text);
}

/* Random changes to a stream of pieces, in memory of just that size: what comes out lies inside of
 * it, and each step makes progress or ends. */
static void test_any_bytes(void **state)
{
    struct buf bytes AUTO_BUF = BUF_INIT(ROOM);
    uint32_t seed = 1;
    (void)state;
    session_put(&bytes, SESSION_DATA, "some bytes", 10);
    session_put_size(&bytes, 1, 2);
    session_put_status(&bytes, 0, "");
    session_put(&bytes, SESSION_BROKEN, "why", 3);
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1664525 + 1013904223;
        size_t length = (seed >> 8) % (bytes.length + 1), at = 0;
        uint8_t *copy = malloc(length + (length == 0));
        memcpy(copy, buf_text(&bytes), length);
        for (int change = 0; change < (int)(seed >> 30) && length > 0; change++) {
            seed = seed * 1664525 + 1013904223;
            copy[(seed >> 8) % length] = (uint8_t)(seed >> 24);
        }
        struct session_piece piece;
        size_t used = 0;
        while (session_take(copy + at, length - at, (seed & 1) != 0, &piece, &used) == 1) {
            assert_in_range(used, SESSION_HEADER, length - at);
            assert_true(piece.body >= copy + at && piece.body + piece.length <= copy + at + used);
            at += used;
        }
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_come_out_as_they_went_in),
        cmocka_unit_test(test_a_piece_in_parts),
        cmocka_unit_test(test_each_side_has_its_kinds),
        cmocka_unit_test(test_what_is_too_long_is_cut),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
