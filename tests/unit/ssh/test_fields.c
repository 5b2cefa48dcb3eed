/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4251, section 5: its examples, and reading past the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/ssh_module/fields.h"

static void expect_mpint(const char *number, size_t length, const char *wanted, size_t size)
{
    unsigned char own[16];
    AUTO_BUF struct buf out = BUF_INIT(100);
    memcpy(own, number, length);
    assert_int_equal(fields_put_mpint(&out, own, length), 0);
    assert_int_equal(out.length, size);
    assert_memory_equal(buf_text(&out), wanted, size);
}

static void numbers(void **state)
{
    (void)state;
    expect_mpint("", 0, "\0\0\0\0", 4);
    expect_mpint("\0", 1, "\0\0\0\0", 4);
    expect_mpint("\x09\xa3\x78\xf9\xb2\xe3\x32\xa7", 8,
                 "\0\0\0\x08\x09\xa3\x78\xf9\xb2\xe3\x32\xa7", 12);
    expect_mpint("\x80", 1, "\0\0\0\x02\0\x80", 6);
    expect_mpint("\0\0\x7f\x01", 4, "\0\0\0\x02\x7f\x01", 6);
    expect_mpint("\0\x80\0", 3, "\0\0\0\x03\0\x80\0", 7);
}

/* Every beginning of a message: what is cut off is empty, and all that follows it. */
static void reading_past_the_end(void **state)
{
    (void)state;
    static const char message[] = "\x07\0\0\x01\x02\0\0\0\x03"
                                  "abc\0\0\0\0\0\0\0\x01z";
    size_t whole = sizeof(message) - 1;
    for (size_t length = 0; length <= whole; length++) {
        unsigned char *own = malloc(length > 0 ? length : 1);
        memcpy(own, message, length);
        struct fields fields = fields_of(own, length);
        assert_int_equal(fields_u8(&fields), length >= 1 ? 7 : 0);
        assert_int_equal(fields_u32(&fields), length >= 5 ? 258 : 0);
        struct byte_view text = fields_string(&fields);
        assert_int_equal(text.length, length >= 12 ? 3 : 0);
        assert_true(view_is(text, length >= 12 ? "abc" : ""));
        struct byte_view empty = fields_string(&fields);
        assert_int_equal(empty.length, 0);
        assert_non_null(empty.at); /* to be compared without a question */
        struct byte_view last = fields_string(&fields);
        assert_int_equal(last.length, length >= whole ? 1 : 0);
        assert_int_equal(fields.bad, length < whole);
        free(own);
    }
}

static void views(void **state)
{
    (void)state;
    static const unsigned char abc[] = "abcabd";
    struct byte_view one = {abc, 3}, other = {abc + 3, 3}, shorter = {abc + 3, 2};
    assert_true(view_is(one, "abc"));
    assert_false(view_is(one, "ab"));
    assert_false(view_is(one, "abcd"));
    assert_false(view_equal(one, other));
    assert_true(view_equal((struct byte_view){abc, 2}, shorter));
    assert_false(view_equal(one, (struct byte_view){abc, 2}));
    assert_false(view_equal((struct byte_view){abc, 1}, (struct byte_view){abc + 1, 1}));
    assert_true(view_equal((struct byte_view){abc, 1}, (struct byte_view){abc + 3, 1}));
}

/* A number that does not fit says so, wherever the room ends. */
static void no_room(void **state)
{
    (void)state;
    for (size_t room = 0; room < 6; room++) {
        AUTO_BUF struct buf out = BUF_INIT(room);
        assert_int_equal(fields_put_mpint(&out, (const unsigned char *)"\x80", 1), -1);
    }
    AUTO_BUF struct buf out = BUF_INIT(6);
    assert_int_equal(fields_put_mpint(&out, (const unsigned char *)"\x80", 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(reading_past_the_end),
        cmocka_unit_test(views),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
