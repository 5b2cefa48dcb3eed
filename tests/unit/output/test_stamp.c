/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/surface.h"

enum { ROOM = 4096, GUARD = 64, LABEL_MAX = 80 };

/* Line by line, as slowly as it is clear. */
static size_t slowly(char *out, const char *label, size_t label_length, const char *text,
                     size_t length)
{
    size_t put = 0;
    for (size_t i = 0; i < length; i++) {
        if (i == 0 || text[i - 1] == '\n') {
            memcpy(out + put, label, label_length);
            put += label_length;
        }
        out[put++] = text[i];
    }
    return put;
}

/* A buffer of its own for each text, so that a sanitizer sees a byte read beside it. */
static struct stamp stamp_of(const char *label, size_t label_length, const char *text,
                             size_t length)
{
    char *own_label = malloc(label_length + 1), *own_text = malloc(length);
    memcpy(own_label, label, label_length);
    memcpy(own_text, text, length);
    return (struct stamp){own_label, label_length, own_text, length};
}

static void each_line_has_its_label(void **state)
{
    (void)state;
    static const char text[] = "one\n\nthree is longer than any label is long, surely\nfour\n";
    char label[LABEL_MAX], out[ROOM], want[ROOM];
    memset(label, 'L', sizeof(label));
    for (size_t length = 0; length <= LABEL_MAX; length++) {
        struct stamp stamp = stamp_of(label, length, text, sizeof(text) - 1);
        const char *own_label = stamp.label, *own_text = stamp.text;
        size_t put = stamp_lines(&stamp, out, sizeof(out));
        assert_int_equal(stamp.length, 0);
        assert_int_equal(put, slowly(want, label, length, text, sizeof(text) - 1));
        assert_memory_equal(out, want, put);
        free((char *)own_label);
        free((char *)own_text);
    }
}

static void a_line_without_an_end_is_one_too(void **state)
{
    (void)state;
    char out[ROOM];
    struct stamp stamp = {"L", 1, "a\nb", 3};
    assert_int_equal(stamp_lines(&stamp, out, sizeof(out)), 5);
    assert_memory_equal(out, "La\nLb", 5);
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

static size_t random_lines(char *text, size_t room, unsigned *seed)
{
    size_t length = 0, lines = next(seed) % 12 + 1;
    for (size_t i = 0; i < lines && length < room; i++) {
        size_t line = next(seed) % 150;
        for (size_t j = 0; j < line && length + 1 < room; j++)
            text[length++] = (char)('a' + next(seed) % 26);
        text[length++] = '\n';
    }
    return length;
}

/* Whatever the room, only whole lines are taken, in their order, and nothing is written beyond. */
static void any_room(void **state)
{
    (void)state;
    unsigned seed = 5;
    for (int round = 0; round < 20000; round++) {
        char text[2048], label[LABEL_MAX], out[ROOM + GUARD], got[ROOM * 2], want[ROOM * 2];
        size_t length = random_lines(text, sizeof(text), &seed), label_length = next(&seed) % 40;
        for (size_t i = 0; i < label_length; i++)
            label[i] = (char)('A' + next(&seed) % 26);
        struct stamp stamp = {label, label_length, text, length};
        size_t all = 0;
        while (stamp.length > 0) {
            size_t room = next(&seed) % 600 + (all > 0 ? 0 : 1);
            memset(out, '#', sizeof(out));
            size_t put = stamp_lines(&stamp, out, room);
            assert_true(put <= room);
            assert_true(put == 0 || out[put - 1] == '\n');
            for (size_t i = room; i < room + GUARD; i++)
                assert_int_equal(out[i], '#');
            memcpy(got + all, out, put);
            all += put;
            assert_ptr_equal(stamp.text + stamp.length, text + length);
        }
        assert_int_equal(all, slowly(want, label, label_length, text, length));
        assert_memory_equal(got, want, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_has_its_label),
        cmocka_unit_test(a_line_without_an_end_is_one_too),
        cmocka_unit_test(any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
