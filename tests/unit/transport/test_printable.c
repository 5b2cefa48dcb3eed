/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts print, as one line of a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/boot/inside_test.h"

static void expect_bytes(const char *bytes, size_t length, const char *wanted)
{
    char out[PRINTABLE_ROOM];
    char *own = malloc(length + 1); /* so that a sanitizer sees a byte read behind them */
    memcpy(own, bytes, length);
    own = realloc(own, length > 0 ? length : 1);
    printable_line(own, length, out);
    assert_string_equal(out, wanted);
    free(own);
}

static void expect(const char *text, const char *wanted)
{
    expect_bytes(text, strlen(text), wanted);
}

static void blanks_at_the_ends(void **state)
{
    (void)state;
    expect("", "");
    expect(" \t\r\n", "");
    expect("x", "x");
    expect("\r\n \tdenied: try again \t\r\n", "denied: try again");
    expect("two  blanks\tand a tab", "two  blanks and a tab");
}

static void control_characters(void **state)
{
    (void)state;
    expect("a\033[31mb\x07\x7f", "a?[31mb??");
    expect("one\nline\rmore", "one?line?more");
    expect_bytes("a\0b", 3, "a?b");
    expect("\xc2\x80-\xc2\x9f-\xc2\xa0", "??"
                                         "-"
                                         "??"
                                         "-\xc2\xa0"); /* C1 and the first behind it */
}

/* The bytes behind the text do not complete its last character. */
static void cut_character(void **state)
{
    (void)state;
    char out[PRINTABLE_ROOM];
    printable_line("a\xc3\xbc", 2, out);
    assert_string_equal(out, "a?");
    expect("\xf5\x80\x80\x80", "????");
}

static void utf8(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xbc",         "\xe0\xa4\x85",
                                             "\xe2\x82\xac",     "\xef\xbf\xbd",
                                             "\xf0\x9f\x9a\x80", "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
        expect(characters[i], characters[i]);
        for (size_t cut = 1; cut < strlen(characters[i]); cut++)
            expect_bytes(characters[i], cut, "???" + 3 - cut);
    }
    expect("\xff\x80\xc1\xbf\xf5", "?????");
    expect("\xe2(\xac", "?("
                        "?");
}

/* Cut where a character ends, whatever the line consists of. */
static void what_does_not_fit(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\x80"};
    for (size_t unit = 0; unit < 4; unit++) {
        char text[2000] = "", out[PRINTABLE_ROOM];
        size_t size = strlen(units[unit]);
        for (size_t i = 0; i < 400; i++)
            memcpy(text + i * size, units[unit], size);
        printable_line(text, strlen(text), out);
        size_t length = strlen(out);
        assert_int_equal(length % size, 0);
        assert_in_range(length, PRINTABLE_ROOM - 8, PRINTABLE_ROOM - 1);
        assert_memory_equal(out, text, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_at_the_ends),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(utf8),
        cmocka_unit_test(cut_character),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
