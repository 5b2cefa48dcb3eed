/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/json_compact.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define NUMBER_MAX 32
#define MICRO 1000000
#define MICRO_MAX 9e9 /* below it, a double and its millionths are both exact enough */

struct writer {
    struct buf *out;
    bool full;
};

static void put(struct writer *writer, const json_t *value);

static void add(struct writer *writer, const char *bytes, size_t length)
{
    if (!writer->full)
        writer->full = buf_append(writer->out, bytes, length) < 0;
}

static void add_byte(struct writer *writer, char byte)
{
    add(writer, &byte, 1);
}

static void put_literal(struct writer *writer, const char *text)
{
    add(writer, text, strlen(text));
}

/* The digits of a number, right-justified before `end`. */
static char *digits_before(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

static void put_integer(struct writer *writer, int64_t number)
{
    char text[NUMBER_MAX], *end = text + sizeof(text);
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char *at = digits_before(end, size);
    if (number < 0)
        *--at = '-';
    add(writer, at, (size_t)(end - at));
}

/* false: it has more than six decimals, or is too large. */
static bool put_decimal(struct writer *writer, double number)
{
    double size = number < 0 ? -number : number;
    if (size >= MICRO_MAX)
        return false;
    uint64_t micro = (uint64_t)(size * MICRO + 0.5);
    if ((double)micro / MICRO != size)
        return false;
    char text[NUMBER_MAX], *end = text + sizeof(text);
    char *fraction = digits_before(end, micro % MICRO + MICRO); /* behind a 1 */
    *fraction = '.';
    char *at = digits_before(fraction, micro / MICRO);
    if (number < 0)
        *--at = '-';
    while (end[-1] == '0' && end[-2] != '.')
        end--;
    add(writer, at, (size_t)(end - at));
    return true;
}

static void put_real(struct writer *writer, double number)
{
    if (put_decimal(writer, number))
        return;
    char text[NUMBER_MAX];
    snprintf(text, sizeof(text), "%.17g", number);
    put_literal(writer, text);
    if (strpbrk(text, ".e") == NULL)
        put_literal(writer, ".0"); /* else a reader would take it for an integer */
}

static void put_control(struct writer *writer, unsigned char byte)
{
    const char *known = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (; *known != '\0'; known += 2) {
        if ((unsigned char)known[0] == byte) {
            add_byte(writer, '\\');
            add_byte(writer, known[1]);
            return;
        }
    }
    char text[NUMBER_MAX];
    snprintf(text, sizeof(text), "\\u%04X", byte);
    put_literal(writer, text);
}

static bool is_plain(unsigned char byte)
{
    return byte >= ' ' && byte != '"' && byte != '\\';
}

static void put_text(struct writer *writer, const char *text, size_t length)
{
    const char *end = text + length;
    add_byte(writer, '"');
    while (text < end) {
        const char *plain = text;
        while (text < end && is_plain((unsigned char)*text))
            text++;
        add(writer, plain, (size_t)(text - plain));
        if (text < end)
            put_control(writer, (unsigned char)*text++);
    }
    add_byte(writer, '"');
}

static void put_array(struct writer *writer, const json_t *array)
{
    add_byte(writer, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            add_byte(writer, ',');
        put(writer, json_array_get(array, i));
    }
    add_byte(writer, ']');
}

static void put_object(struct writer *writer, const json_t *object)
{
    json_t *walked = (json_t *)object; /* jansson has no iterator for const */
    add_byte(writer, '{');
    for (void *at = json_object_iter(walked); at != NULL;) {
        const char *key = json_object_iter_key(at);
        put_text(writer, key, strlen(key));
        add_byte(writer, ':');
        put(writer, json_object_iter_value(at));
        at = json_object_iter_next(walked, at);
        if (at != NULL)
            add_byte(writer, ',');
    }
    add_byte(writer, '}');
}

static void put(struct writer *writer, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: put_object(writer, value); break;
    case JSON_ARRAY: put_array(writer, value); break;
    case JSON_STRING: put_text(writer, json_string_value(value), json_string_length(value)); break;
    case JSON_INTEGER: put_integer(writer, json_integer_value(value)); break;
    case JSON_REAL: put_real(writer, json_real_value(value)); break;
    case JSON_TRUE: put_literal(writer, "true"); break;
    case JSON_FALSE: put_literal(writer, "false"); break;
    case JSON_NULL: put_literal(writer, "null"); break;
    }
}

int json_compact(const json_t *value, struct buf *out)
{
    struct writer writer = {.out = out};
    size_t before = out->length;
    put(&writer, value);
    if (writer.full)
        buf_truncate(out, before);
    return writer.full ? -1 : 0;
}
