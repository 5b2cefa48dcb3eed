/* SPDX-License-Identifier: Apache-2.0 */
/* The line assembler: every input is cut at every place and must give the same lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "output/lines.h"

/* Pieces written down as text: "<kind:bytes>", + for a continued one. Parts of one line are written
 * as one when `join` is set. */
struct record {
    struct buf text, bytes;
    bool join;
};

static void write_down(void *context, const struct lines_piece *piece)
{
    static const char kinds[] = "PNRF";
    struct record *record = context;
    buf_append(&record->bytes, piece->text, piece->length);
    if (!record->join || !piece->continued)
        buf_puts(&record->text, "<");
    if (!record->join && piece->continued)
        buf_puts(&record->text, "+");
    buf_append(&record->text, piece->text, piece->length);
    if (!record->join || piece->end != LINES_PART)
        buf_printf(&record->text, ":%c>", kinds[piece->end]);
}

static struct record record_new(bool join)
{
    return (struct record){.text = BUF_INIT(1 << 26), .bytes = BUF_INIT(1 << 26), .join = join};
}

static void record_free(struct record *record)
{
    buf_destroy(&record->text);
    buf_destroy(&record->bytes);
}

static void check(const char *input, const char *expected)
{
    size_t length = strlen(input);
    for (size_t first = 0; first <= length; first++) {
        for (size_t second = first; second <= length; second++) {
            struct record record = record_new(false);
            struct lines lines = {0};
            lines_add(&lines, input, first, write_down, &record);
            lines_add(&lines, input + first, second - first, write_down, &record);
            lines_add(&lines, input + second, length - second, write_down, &record);
            lines_finish(&lines, write_down, &record);
            assert_string_equal(buf_text(&record.text), expected);
            assert_string_equal(buf_text(&record.bytes), input);
            assert_null(lines.held);
            record_free(&record);
        }
    }
}

static void whole_lines_however_cut(void **state)
{
    (void)state;
    check("", "");
    check("a\n", "<a\n:N>");
    check("\n\n", "<\n:N><\n:N>");
    check("one\ntwo\nthree", "<one\n:N><two\n:N><three:F>");
    check("one\r\ntwo\r\n", "<one\r\n:N><two\r\n:N>");
    check("one\r\r\ntwo", "<one\r\r\n:N><two:F>");
    check("\r10%\r20%\r100%\n", "<\r:R><10%\r:R><20%\r:R><100%\n:N>");
    check("10%\r", "<10%\r:F>");
    check("a\r\rb\n\rc", "<a\r\r:R><b\n:N><\r:R><c:F>");
    check("gr\xc3\xbc\xc3\x9f\n\xf0\x9f\x9a\x80", "<gr\xc3\xbc\xc3\x9f\n:N><\xf0\x9f\x9a\x80:F>");
    check("\xff\xfe\x80\xc3\n\x80", "<\xff\xfe\x80\xc3\n:N><\x80:F>");
}

/* The late half of an input comes after the time is over: bytes and lines are still the same, only
 * the \r at a cut is told apart. */
static void shown_at_every_place(void **state)
{
    (void)state;
    const char *input = "one\ntw\xc3\xbc o\n5%\rr\xf0\x9f\x9a\x80st";
    size_t length = strlen(input);
    for (size_t cut = 0; cut <= length; cut++) {
        struct record record = record_new(true);
        struct lines lines = {0};
        lines_add(&lines, input, cut, write_down, &record);
        lines_show(&lines, write_down, &record);
        size_t shown = record.bytes.length;
        assert_int_equal(lines_utf8_tail(buf_text(&record.bytes), shown), 0);
        assert_true(cut - shown <= 3);
        assert_false(lines_waiting(&lines));
        lines_add(&lines, input + cut, length - cut, write_down, &record);
        lines_finish(&lines, write_down, &record);
        assert_string_equal(buf_text(&record.bytes), input);
        assert_string_equal(buf_text(&record.text), "<one\n:N><tw\xc3\xbc o\n:N><5%\r:R>"
                                                    "<r\xf0\x9f\x9a\x80st:F>");
        record_free(&record);
    }
}

static void a_part_is_continued(void **state)
{
    (void)state;
    struct record record = record_new(false);
    struct lines lines = {0};
    lines_add(&lines, "Name: ", 6, write_down, &record);
    assert_true(lines_waiting(&lines));
    lines_show(&lines, write_down, &record);
    lines_show(&lines, write_down, &record); /* nothing more to show */
    assert_string_equal(buf_text(&record.text), "<Name: :P>");
    lines_add(&lines, "Bob", 3, write_down, &record);
    lines_add(&lines, "\nx\n", 3, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<Name: :P><+Bob\n:N><x\n:N>");
    lines_add(&lines, "end", 3, write_down, &record);
    lines_show(&lines, write_down, &record);
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<Name: :P><+Bob\n:N><x\n:N><end:P><+:F>");
    lines_add(&lines, "next\n", 5, write_down, &record); /* of the next worker */
    assert_string_equal(buf_text(&record.text),
                        "<Name: :P><+Bob\n:N><x\n:N><end:P><+:F><next\n:N>");
    lines_clear(&lines);
    record_free(&record);
}

static void a_return_shown_in_time_keeps_its_newline(void **state)
{
    (void)state;
    struct record record = record_new(false);
    struct lines lines = {0};
    lines_add(&lines, "50%\r", 4, write_down, &record);
    assert_string_equal(buf_text(&record.text), "");
    lines_show(&lines, write_down, &record);
    lines_add(&lines, "\nnext\n", 6, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<50%\r:R><+\n:N><next\n:N>");
    lines_add(&lines, "60%\r", 4, write_down, &record);
    lines_show(&lines, write_down, &record);
    lines_add(&lines, "70%", 3, write_down, &record);
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<50%\r:R><+\n:N><next\n:N><60%\r:R><70%:F>");
    record_free(&record);
}

static void half_a_character_is_not_waiting(void **state)
{
    (void)state;
    struct record record = record_new(false);
    struct lines lines = {0};
    lines_add(&lines, "\xf0\x9f", 2, write_down, &record);
    assert_false(lines_waiting(&lines));
    lines_show(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "");
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<\xf0\x9f:F>");
    record_free(&record);
}

static size_t most_held;

static void watch(void *context, const struct lines_piece *piece)
{
    write_down(context, piece);
    if (piece->length > most_held)
        most_held = piece->length;
}

static void endless_line(const char *unit, size_t chunk)
{
    size_t total = 10 << 20, length = strlen(unit);
    char *input = malloc(total);
    for (size_t i = 0; i < total; i++)
        input[i] = unit[i % length];
    struct record record = record_new(true);
    struct lines lines = {0};
    for (size_t at = 0; at < total; at += chunk) {
        size_t part = total - at < chunk ? total - at : chunk;
        lines_add(&lines, input + at, part, watch, &record);
        assert_true(lines.length <= LINES_HOLD_MAX);
        assert_true(lines.room <= 4 * (LINES_HOLD_MAX + chunk));
    }
    lines_finish(&lines, watch, &record);
    assert_int_equal(record.bytes.length, total);
    assert_memory_equal(buf_text(&record.bytes), input, total);
    record_free(&record);
    free(input);
}

static void long_lines_in_bounded_memory(void **state)
{
    (void)state;
    most_held = 0;
    endless_line("x", 777);
    endless_line("x", 64 * 1024);
    endless_line("\xe2\x82\xac", 1000);
    endless_line("\r", 5000);
    endless_line("\xf0", 5000);
    assert_true(most_held <= LINES_HOLD_MAX + 64 * 1024);
}

static void runs_are_one_piece(void **state)
{
    (void)state;
    struct record record = record_new(false);
    struct lines lines = {.runs = true};
    lines_add(&lines, "a\nb\nc", 5, write_down, &record);
    lines_add(&lines, "d\ne\nf\n", 6, write_down, &record);
    lines_add(&lines, "1\r2\n3\n", 6, write_down, &record);
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text),
                        "<a\nb\n:N><cd\n:N><e\nf\n:N><1\r:R><2\n:N><3\n:N>");
    record_free(&record);
}

/* Random bytes of a mean alphabet, cut and shown at random: nothing may be lost or moved. */
static void noise_passes_unharmed(void **state)
{
    (void)state;
    static const char alphabet[] = "\r\r\n\na\0\xc3\xbc\xf0\x9f\xff";
    unsigned seed = 1;
    for (int round = 0; round < 3000; round++) {
        char input[40];
        size_t length = (size_t)rand_r(&seed) % sizeof(input);
        for (size_t i = 0; i < length; i++)
            input[i] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
        struct record record = record_new(false);
        struct lines lines = {.runs = round % 2 == 0};
        for (size_t at = 0; at < length;) {
            size_t part = 1 + (size_t)rand_r(&seed) % (length - at);
            lines_add(&lines, input + at, part, write_down, &record);
            at += part;
            if (rand_r(&seed) % 3 == 0)
                lines_show(&lines, write_down, &record);
        }
        lines_finish(&lines, write_down, &record);
        assert_int_equal(record.bytes.length, length);
        assert_memory_equal(buf_text(&record.bytes), input, length);
        record_free(&record);
    }
}

static void utf8_tails(void **state)
{
    (void)state;
    assert_int_equal(lines_utf8_tail("", 0), 0);
    assert_int_equal(lines_utf8_tail("abc", 3), 0);
    assert_int_equal(lines_utf8_tail("a\xc3", 2), 1);
    assert_int_equal(lines_utf8_tail("a\xc3\xbc", 3), 0);
    assert_int_equal(lines_utf8_tail("\xe2\x82", 2), 2);
    assert_int_equal(lines_utf8_tail("\xe0\xa0", 2), 2);
    assert_int_equal(lines_utf8_tail("\xf0\x9f\x9a", 3), 3);
    assert_int_equal(lines_utf8_tail("\xf0\x9f\x9a\x80", 4), 0);
    assert_int_equal(lines_utf8_tail("\x80\x80\x80\x80", 4), 0);
    assert_int_equal(lines_utf8_tail("\xff", 1), 0);
    assert_int_equal(lines_utf8_tail("\xc1", 1), 0);
}

static void a_return_shown_in_time_and_then_the_end(void **state)
{
    (void)state;
    struct record record = record_new(false);
    struct lines lines = {0};
    lines_add(&lines, "50%\r", 4, write_down, &record);
    lines_show(&lines, write_down, &record);
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<50%\r:R><+:F>");
    lines_finish(&lines, write_down, &record);
    assert_string_equal(buf_text(&record.text), "<50%\r:R><+:F>");
    record_free(&record);
}

/* Each character is incomplete until its last byte, whatever its length. */
static void characters_of_each_length(void **state)
{
    (void)state;
    static const char *const characters[] = {"x",
                                             "\xc2\x80",
                                             "\xdf\xbf",
                                             "\xe0\xa0\x80",
                                             "\xef\xbf\xbd",
                                             "\xf0\x90\x80\x80",
                                             "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
        size_t length = strlen(characters[i]);
        for (size_t part = 1; part <= length; part++)
            assert_int_equal(lines_utf8_tail(characters[i], part), part < length ? part : 0);
    }
    assert_int_equal(lines_utf8_tail("\xf8\x80", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_however_cut),
        cmocka_unit_test(shown_at_every_place),
        cmocka_unit_test(a_part_is_continued),
        cmocka_unit_test(a_return_shown_in_time_keeps_its_newline),
        cmocka_unit_test(half_a_character_is_not_waiting),
        cmocka_unit_test(long_lines_in_bounded_memory),
        cmocka_unit_test(runs_are_one_piece),
        cmocka_unit_test(noise_passes_unharmed),
        cmocka_unit_test(utf8_tails),
        cmocka_unit_test(a_return_shown_in_time_and_then_the_end),
        cmocka_unit_test(characters_of_each_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
