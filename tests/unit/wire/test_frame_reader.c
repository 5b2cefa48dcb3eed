/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/frame.h"

/* Appends a frame to the bytes; returns how many there are. */
static size_t put(uint8_t *bytes, size_t length, enum frame_type type, uint16_t number,
                  const char *body)
{
    struct frame_header header = {.version = FRAME_VERSION,
                                  .type = (uint8_t)type,
                                  .number = number,
                                  .length = (uint32_t)strlen(body)};
    frame_header_put(&header, bytes + length);
    memcpy(bytes + length + FRAME_HEADER_SIZE, body, strlen(body));
    return length + FRAME_HEADER_SIZE + strlen(body);
}

static void feed(struct frame_reader *reader, const uint8_t *bytes, size_t length)
{
    size_t room;
    uint8_t *place = frame_reader_reserve(reader, &room);
    assert_true(room >= length);
    memcpy(place, bytes, length);
    frame_reader_commit(reader, length);
}

static void expect(struct frame_reader *reader, enum frame_type type, const char *text)
{
    struct frame_header header;
    const uint8_t *body;
    struct error err = ERROR_INIT;
    assert_int_equal(frame_reader_next(reader, &header, &body, &err), 1);
    assert_int_equal(header.type, type);
    assert_int_equal(header.length, strlen(text));
    assert_memory_equal(body, text, strlen(text));
}

static void expect_nothing(struct frame_reader *reader, bool clean)
{
    struct frame_header header;
    const uint8_t *body;
    assert_int_equal(frame_reader_next(reader, &header, &body, NULL), 0);
    assert_int_equal(frame_reader_is_clean(reader), clean);
}

static void expect_error(struct frame_reader *reader, const char *text)
{
    struct frame_header header;
    const uint8_t *body;
    struct error err = ERROR_INIT;
    assert_int_equal(frame_reader_next(reader, &header, &body, &err), -1);
    assert_non_null(strstr(err.text, text));
}

static void test_bytes_as_they_come(void **state)
{
    (void)state;
    uint8_t bytes[200];
    size_t first = put(bytes, 0, FRAME_LOG, 0, "one"), length = put(bytes, first, FRAME_END, 1, "");
    struct frame_reader reader;
    frame_reader_init(&reader);
    for (size_t i = 0; i + 1 < first; i++) {
        feed(&reader, bytes + i, 1);
        expect_nothing(&reader, false);
    }
    feed(&reader, bytes + first - 1, length - first + 1);
    expect(&reader, FRAME_LOG, "one");
    expect(&reader, FRAME_END, "");
    expect_nothing(&reader, true);
    frame_reader_clear(&reader);
}

static void test_parts(void **state)
{
    (void)state;
    uint8_t bytes[200];
    size_t length = put(bytes, 0, FRAME_PART, 0, "ab");
    length = put(bytes, length, FRAME_PART, 1, "cd");
    size_t before = length;
    length = put(bytes, length, FRAME_LOG, 2, "e");
    length = put(bytes, length, FRAME_LOG, 3, "f");
    struct frame_reader reader;
    frame_reader_init(&reader);
    feed(&reader, bytes, before);
    expect_nothing(&reader, false);
    feed(&reader, bytes + before, length - before);
    expect(&reader, FRAME_LOG, "abcde");
    expect(&reader, FRAME_LOG, "f");
    expect_nothing(&reader, true);
    frame_reader_clear(&reader);
}

static void test_a_wrong_number(void **state)
{
    (void)state;
    uint8_t bytes[200];
    size_t length = put(bytes, 0, FRAME_LOG, 0, "one");
    length = put(bytes, length, FRAME_LOG, 2, "three");
    struct frame_reader reader;
    frame_reader_init(&reader);
    feed(&reader, bytes, length);
    expect(&reader, FRAME_LOG, "one");
    expect_error(&reader, "has number 2 instead of 1");
    frame_reader_clear(&reader);
}

static void test_too_large(void **state)
{
    (void)state;
    static uint8_t bytes[FRAME_HEADER_SIZE + FRAME_BODY_MAX];
    struct frame_reader reader;
    frame_reader_init(&reader);
    struct frame_header header = {
        .version = FRAME_VERSION, .type = FRAME_PART, .length = FRAME_BODY_MAX};
    for (; header.number < 64; header.number++) {
        frame_header_put(&header, bytes);
        for (size_t at = 0; at < sizeof(bytes); at += FRAME_READ_MAX / 2) {
            size_t rest = sizeof(bytes) - at;
            feed(&reader, bytes + at, rest < FRAME_READ_MAX / 2 ? rest : FRAME_READ_MAX / 2);
            expect_nothing(&reader, false);
        }
    }
    size_t length = put(bytes, 0, FRAME_LOG, header.number, "x");
    feed(&reader, bytes, length);
    expect_error(&reader, "too large");
    frame_reader_clear(&reader);
}

static size_t wanted(struct frame_reader *reader)
{
    size_t size;
    frame_reader_reserve(reader, &size);
    return size;
}

/* Feeds the header of a frame with so many bytes, and the first of them. */
static void begin_frame(struct frame_reader *reader, uint8_t version, uint32_t length, size_t come)
{
    static uint8_t bytes[FRAME_READ_MAX];
    struct frame_header header = {.version = version, .type = FRAME_LOG, .length = length};
    frame_reader_init(reader);
    frame_header_put(&header, bytes);
    feed(reader, bytes, come);
}

/* So the next frame begins a read, and there is nothing to move to the front. */
static void test_the_rest_of_a_large_frame_is_read_alone(void **state)
{
    (void)state;
    static const struct row {
        uint32_t length;
        size_t come, wanted;
    } rows[] = {
        {100000, FRAME_HEADER_SIZE + 1000, 99000 + FRAME_HEADER_SIZE},
        {100000, FRAME_HEADER_SIZE, 100000 + FRAME_HEADER_SIZE},
        {100000, FRAME_HEADER_SIZE - 1, FRAME_READ_MAX}, /* nobody knows how long it is */
        {100000, 0, FRAME_READ_MAX},
        {100000, FRAME_HEADER_SIZE + 100000 - 16 * 1024, 16 * 1024 + FRAME_HEADER_SIZE},
        {100000, FRAME_HEADER_SIZE + 100001 - 16 * 1024, FRAME_READ_MAX}, /* so little is left */
        {100, FRAME_HEADER_SIZE, FRAME_READ_MAX},
        {FRAME_READ_MAX, 2 * FRAME_HEADER_SIZE, FRAME_READ_MAX},
        {FRAME_READ_MAX, 2 * FRAME_HEADER_SIZE - 1, FRAME_READ_MAX}, /* more than one read */
        {FRAME_BODY_MAX, FRAME_HEADER_SIZE, FRAME_READ_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct frame_reader reader;
        begin_frame(&reader, FRAME_VERSION, rows[i].length, rows[i].come);
        assert_int_equal(wanted(&reader), rows[i].wanted);
        frame_reader_clear(&reader);
    }
}

static void test_a_damaged_header(void **state)
{
    (void)state;
    struct frame_reader reader;
    begin_frame(&reader, FRAME_VERSION + 1, 100000, FRAME_HEADER_SIZE);
    assert_int_equal(wanted(&reader), FRAME_READ_MAX);
    expect_error(&reader, "");
    frame_reader_clear(&reader);
}

/* Other frames go between pieces, also those that are larger than a frame. */
static void test_pieces(void **state)
{
    (void)state;
    uint8_t bytes[400];
    size_t length = put(bytes, 0, FRAME_PIECE, 0, "one ");
    length = put(bytes, length, FRAME_HEARTBEAT, 1, "now");
    length = put(bytes, length, FRAME_PIECE, 2, "two ");
    length = put(bytes, length, FRAME_PART, 3, "large ");
    length = put(bytes, length, FRAME_LOG, 4, "log");
    length = put(bytes, length, FRAME_PIECES_END, 5, "\x05three"); /* START */
    length = put(bytes, length, FRAME_PIECES_END, 6, "\x04");      /* READY */
    length = put(bytes, length, FRAME_END, 7, "");
    struct frame_reader reader;
    frame_reader_init(&reader);
    feed(&reader, bytes, length);
    expect(&reader, FRAME_HEARTBEAT, "now");
    expect(&reader, FRAME_LOG, "large log");
    expect(&reader, FRAME_START, "one two three");
    expect(&reader, FRAME_READY, "");
    expect(&reader, FRAME_END, "");
    expect_nothing(&reader, true);
    frame_reader_clear(&reader);
}

static void test_wrong_pieces(void **state)
{
    (void)state;
    static const struct {
        enum frame_type first, second;
        const char *body, *says;
    } wrong[] = {{FRAME_PIECE, FRAME_PIECES_END, "", "unknown message"},
                 {FRAME_PIECE, FRAME_PIECES_END, "\x7frest", "unknown message"},
                 {FRAME_PIECE, FRAME_PIECES_END, "\x21rest", "unknown message"}, /* PART */
                 {FRAME_PIECE, FRAME_PIECES_END, "\x5brest", "unknown message"}, /* PIECE */
                 {FRAME_PART, FRAME_PIECE, "x", "inside a message"},
                 {FRAME_PART, FRAME_PIECES_END, "\x05x", "inside a message"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t bytes[200];
        size_t length = put(bytes, 0, wrong[i].first, 0, "x");
        length = put(bytes, length, wrong[i].second, 1, wrong[i].body);
        struct frame_reader reader;
        frame_reader_init(&reader);
        feed(&reader, bytes, length);
        expect_error(&reader, wrong[i].says);
        frame_reader_clear(&reader);
    }
}

static void test_an_end_inside_pieces(void **state)
{
    (void)state;
    uint8_t bytes[100];
    struct frame_reader reader;
    frame_reader_init(&reader);
    feed(&reader, bytes, put(bytes, 0, FRAME_PIECE, 0, "begun"));
    expect_nothing(&reader, false);
    frame_reader_clear(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_wrong_pieces),
        cmocka_unit_test(test_an_end_inside_pieces),
        cmocka_unit_test(test_bytes_as_they_come),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_a_wrong_number),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_the_rest_of_a_large_frame_is_read_alone),
        cmocka_unit_test(test_a_damaged_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
