/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of several ranks on one terminal or pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "output/lines.h"
#include "output/surface.h"

#define ERASE "\r\033[K"

struct screen {
    struct surface *surface;
    struct buf text;
    int columns, owner, batches;
    struct lines lines[3]; /* by owner */
    bool no_label;
};

static void append(void *context, int stream, const void *bytes, size_t length)
{
    (void)stream;
    struct screen *screen = context;
    buf_append(&screen->text, bytes, length);
}

static void append_lines(void *context, int stream, struct stamp *lines)
{
    (void)stream;
    struct screen *screen = context;
    char *place = buf_reserve(&screen->text, 4096);
    buf_commit(&screen->text, stamp_lines(lines, place, 4096));
    assert_int_equal(lines->length, 0);
    screen->batches++;
}

static int columns(void *context)
{
    struct screen *screen = context;
    return screen->columns;
}

static struct screen *screen_create(struct surface_config config)
{
    struct screen *screen = calloc(1, sizeof(*screen));
    buf_init(&screen->text, 1 << 20);
    config.append = append;
    config.append_lines = append_lines;
    config.columns = columns;
    config.context = screen;
    screen->no_label = config.bytes;
    screen->surface = surface_create(&config);
    return screen;
}

static void screen_destroy(struct screen *screen)
{
    for (int i = 0; i < 3; i++)
        lines_clear(&screen->lines[i]);
    surface_destroy(screen->surface);
    buf_destroy(&screen->text);
    free(screen);
}

static void on_piece(void *context, const struct lines_piece *piece)
{
    struct screen *screen = context;
    char label[] = {(char)('A' + screen->owner), ':'};
    surface_piece(screen->surface, 0, screen->owner, label, screen->no_label ? 0 : 2, piece);
}

static void say(struct screen *screen, int owner, const char *text)
{
    screen->owner = owner;
    lines_add(&screen->lines[owner], text, strlen(text), on_piece, screen);
}

static void pause_of(struct screen *screen, int owner)
{
    screen->owner = owner;
    lines_show(&screen->lines[owner], on_piece, screen);
}

static void end(struct screen *screen, int owner)
{
    screen->owner = owner;
    lines_finish(&screen->lines[owner], on_piece, screen);
}

static void expect(struct screen *screen, const char *text)
{
    assert_string_equal(buf_text(&screen->text), text);
    buf_clear(&screen->text);
}

static void in_pipes(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){0});
    say(screen, 0, "one\ntwo");
    say(screen, 1, "other\n");
    expect(screen, "A:one\nB:other\n");
    pause_of(screen, 0);
    expect(screen, "A:two");
    say(screen, 0, " and a half\n"); /* nobody came between */
    expect(screen, " and a half\n");
    say(screen, 0, "Name: ");
    pause_of(screen, 0);
    say(screen, 1, "x\n");
    expect(screen, "A:Name: \nB:x\n");
    say(screen, 0, "Bob\nnext\n");
    expect(screen, "A:...Bob\nA:next\n");
    screen_destroy(screen);
}

static void an_ended_part_needs_no_line_for_its_newline(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){0});
    say(screen, 0, "part");
    pause_of(screen, 0);
    say(screen, 1, "x\n");
    say(screen, 0, "\n");
    expect(screen, "A:part\nB:x\n");
    say(screen, 0, "again");
    pause_of(screen, 0);
    end(screen, 0);
    expect(screen, "A:again\n");
    say(screen, 1, "no newline");
    end(screen, 1);
    expect(screen, "B:no newline\n");
    screen_destroy(screen);
}

/* Several lines in one piece look like several pieces, whatever stands in the way of the first. */
static void runs_of_lines(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true});
    for (int i = 0; i < 3; i++)
        screen->lines[i].runs = true;
    say(screen, 0, "one\ntwo\nthree\nfo");
    expect(screen, "A:one\nA:two\nA:three\n");
    assert_int_equal(screen->batches, 1);
    pause_of(screen, 0);
    say(screen, 1, "x\ny\nz\n"); /* a part of somebody else is open */
    say(screen, 0, "ur\nfive\nsix\n");
    expect(screen, "A:fo\nB:x\nB:y\nB:z\nA:...ur\nA:five\nA:six\n");
    say(screen, 0, "part");
    pause_of(screen, 0);
    pause_of(screen, 0);
    say(screen, 0, " of mine\nmore\nand more\n");
    expect(screen, "A:part of mine\nA:more\nA:and more\n");
    surface_progress(screen->surface, 0, "2 of 4");
    surface_settle(screen->surface);
    say(screen, 1, "p\nq\n");
    expect(screen, "2 of 4" ERASE "B:p\nB:q\n");
    screen_destroy(screen);
    screen = screen_create((struct surface_config){.crlf = true});
    screen->lines[0].runs = true;
    say(screen, 0, "a\nb\nc\n");
    expect(screen, "A:a\r\nA:b\r\nA:c\r\n");
    screen_destroy(screen);
}

static void progress_bars_in_pipes_are_lines(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){0});
    say(screen, 0, "\r10%\r20%\r100%\n");
    expect(screen, "A:10%\nA:20%\nA:100%\n");
    say(screen, 0, "30%\r");
    pause_of(screen, 0);
    say(screen, 0, "\nwindows\r\n");
    expect(screen, "A:30%\nA:windows\r\n");
    say(screen, 0, "40%");
    pause_of(screen, 0);
    say(screen, 0, "\r50%\r");
    end(screen, 0);
    expect(screen, "A:40%\nA:50%\n");
    screen_destroy(screen);
}

static void progress_bars_on_a_terminal_are_live(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true});
    say(screen, 0, "\r10%\r20%\r");
    pause_of(screen, 0);
    expect(screen, "A:10%" ERASE "A:20%");
    say(screen, 1, "x\n");
    expect(screen, ERASE "B:x\n");
    say(screen, 0, "30%");
    pause_of(screen, 0);
    say(screen, 0, "\r");
    pause_of(screen, 0);
    say(screen, 0, "100%\n");
    expect(screen, "A:30%" ERASE "A:100%\n");
    say(screen, 0, "50%\r");
    pause_of(screen, 0);
    say(screen, 0, "\n");
    expect(screen, "A:50%\n");
    say(screen, 0, "60%\r");
    pause_of(screen, 0);
    surface_finish(screen->surface);
    expect(screen, "A:60%\n");
    screen->columns = 7;
    say(screen, 1, "\xc3\xbc\xc3\xbc\033[1m345678\r.");
    expect(screen, "B:\xc3\xbc\xc3\xbc\033[1m34");
    screen_destroy(screen);
}

static void bytes_stay_bytes(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.bytes = true});
    say(screen, 0, "a\r\nb\rc\r");
    end(screen, 0);
    expect(screen, "a\r\nb\rc\r");
    say(screen, 1, "x\ny");
    end(screen, 1);
    surface_finish(screen->surface);
    expect(screen, "\nx\ny");
    screen_destroy(screen);
}

static void own_words_never_inside_a_line(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true});
    say(screen, 0, "half");
    pause_of(screen, 0);
    surface_text(screen->surface, 1, "hvdrun: hello", 13);
    say(screen, 0, " rest\n");
    expect(screen, "A:half\nhvdrun: hello\nA:... rest\n");
    surface_text(screen->surface, 1, "1\n\n2\n", 5);
    expect(screen, "1\n\n2\n");
    screen_destroy(screen);
}

static void the_progress_line(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true});
    surface_progress(screen->surface, 1, "3 of 8 hosts");
    surface_settle(screen->surface);
    surface_settle(screen->surface);
    expect(screen, "3 of 8 hosts");
    say(screen, 0, "a\nb\n");
    surface_settle(screen->surface);
    expect(screen, ERASE "A:a\nA:b\n3 of 8 hosts");
    say(screen, 0, "part");
    pause_of(screen, 0);
    surface_settle(screen->surface);
    expect(screen, ERASE "A:part"); /* not while a line is unfinished */
    say(screen, 0, "\n");
    screen->columns = 5;
    surface_progress(screen->surface, 1, "8 of 8 hosts");
    surface_settle(screen->surface);
    expect(screen, "\n8 of");
    surface_progress(screen->surface, 1, NULL);
    surface_settle(screen->surface);
    expect(screen, ERASE);
    screen_destroy(screen);

    screen = screen_create((struct surface_config){0});
    surface_progress(screen->surface, 1, "not here");
    surface_settle(screen->surface);
    expect(screen, "");
    screen_destroy(screen);
}

static void a_raw_terminal_needs_returns(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true, .crlf = true});
    surface_raw(screen->surface, 0, 0, "(gdb) ", 6);
    say(screen, 1, "x\ny\r\n");
    surface_raw(screen->surface, 0, 0, "run\r\n", 5);
    surface_text(screen->surface, 1, "bye\n", 4);
    expect(screen, "(gdb) \r\nB:x\r\nB:y\r\nrun\r\nbye\r\n");
    screen_destroy(screen);
}

/* Three owners say words in parts at random: take the labels and marks away, and each one's text is
 * what it said; every line begins with a label. */
static void nothing_is_lost_between_owners(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 500; round++) {
        struct screen *screen = screen_create((struct surface_config){0});
        struct buf said[3] = {BUF_INIT(10000), BUF_INIT(10000), BUF_INIT(10000)};
        struct buf seen[3] = {BUF_INIT(10000), BUF_INIT(10000), BUF_INIT(10000)};
        for (int i = 0; i < 60; i++) {
            int owner = rand_r(&seed) % 3;
            const char *word = rand_r(&seed) % 3 == 0 ? "w\n" : "v";
            say(screen, owner, word);
            buf_putc(&said[owner], word[0]);
            if (rand_r(&seed) % 2 == 0)
                pause_of(screen, owner);
        }
        for (int owner = 0; owner < 3; owner++)
            end(screen, owner);
        const char *line = buf_text(&screen->text);
        while (*line != '\0') {
            int owner = line[0] - 'A';
            assert_in_range(owner, 0, 2);
            assert_int_equal(line[1], ':');
            size_t length = strcspn(line, "\n");
            for (size_t i = 2; i < length; i++)
                if (line[i] != '.')
                    buf_putc(&seen[owner], line[i]);
            assert_int_equal(line[length], '\n');
            line += length + 1;
        }
        for (int owner = 0; owner < 3; owner++) {
            assert_string_equal(buf_text(&seen[owner]), buf_text(&said[owner]));
            buf_destroy(&seen[owner]);
            buf_destroy(&said[owner]);
        }
        screen_destroy(screen);
    }
}

static void a_later_owner_with_the_same_number(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.bytes = true});
    say(screen, 1, "old");
    pause_of(screen, 1);
    surface_leave(screen->surface, 2); /* somebody else */
    say(screen, 1, " and");
    pause_of(screen, 1);
    surface_leave(screen->surface, 1);
    say(screen, 1, "new\n");
    assert_string_equal(buf_text(&screen->text), "old and\nnew\n");
    screen_destroy(screen);
}

static void escapes_take_no_columns(void **state)
{
    (void)state;
    assert_int_equal(surface_fit("abc", 3, 2), 2);
    assert_int_equal(surface_fit("abc", 3, 0), 0);
    assert_int_equal(surface_fit("\033[1m\033[36mabc", 12, 2), 11);
    assert_int_equal(surface_fit("ab\033[0m", 6, 2), 6);
    assert_int_equal(surface_fit("ab\033[0mc", 7, 2), 6);
    assert_int_equal(surface_fit("a\033[", 3, 5), 3);
    assert_int_equal(surface_fit("\033[mab", 5, 1), 4);
    assert_int_equal(surface_fit("\033[1~\033[@x", 8, 1), 8);
    assert_int_equal(surface_fit("\033[@x", 4, 0), 3);
    assert_int_equal(surface_fit("\033[~x", 4, 0), 3);
    assert_int_equal(surface_fit("\033x", 2, 1), 1);
    assert_int_equal(surface_fit("\xc3\xbc\xe2\x82\xac!", 6, 2), 5);
}

static void append_with_stream(void *context, int stream, const void *bytes, size_t length)
{
    struct screen *screen = context;
    buf_printf(&screen->text, "%d(%.*s)", stream, (int)length, (const char *)bytes);
}

/* The newline that ends an unfinished line goes to the stream which has that line. */
static void a_line_is_ended_where_it_was_written(void **state)
{
    (void)state;
    struct screen *screen = calloc(1, sizeof(*screen));
    buf_init(&screen->text, 1 << 20);
    screen->surface =
        surface_create(&(struct surface_config){.append = append_with_stream, .context = screen});
    const struct lines_piece part = {"part", 4, LINES_PART, false};
    surface_piece(screen->surface, 1, 0, "A:", 2, &part);
    surface_text(screen->surface, 0, "own", 3);
    expect(screen, "1(A:)1(part)1(\n)0(own)0(\n)");
    surface_piece(screen->surface, 1, 0, "A:", 2, &part);
    surface_finish(screen->surface);
    expect(screen, "1(A:)1(part)1(\n)");
    screen_destroy(screen);
}

static void a_bar_at_the_end_of_its_stream(void **state)
{
    (void)state;
    struct screen *screen = screen_create((struct surface_config){.live = true});
    say(screen, 0, "70%\r");
    pause_of(screen, 0);
    end(screen, 0);
    expect(screen, "A:70%\n");
    screen_destroy(screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_owner_with_the_same_number),
        cmocka_unit_test(in_pipes),
        cmocka_unit_test(runs_of_lines),
        cmocka_unit_test(an_ended_part_needs_no_line_for_its_newline),
        cmocka_unit_test(progress_bars_in_pipes_are_lines),
        cmocka_unit_test(progress_bars_on_a_terminal_are_live),
        cmocka_unit_test(bytes_stay_bytes),
        cmocka_unit_test(own_words_never_inside_a_line),
        cmocka_unit_test(the_progress_line),
        cmocka_unit_test(a_raw_terminal_needs_returns),
        cmocka_unit_test(nothing_is_lost_between_owners),
        cmocka_unit_test(escapes_take_no_columns),
        cmocka_unit_test(a_line_is_ended_where_it_was_written),
        cmocka_unit_test(a_bar_at_the_end_of_its_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
