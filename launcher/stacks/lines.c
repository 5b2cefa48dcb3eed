/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/lines.h"

#include <stdbool.h>

#define LINE_MAX_NUMBER 100000000
#define NO_LINE (-128)

static int checked(int64_t line)
{
    return line > 0 && line <= LINE_MAX_NUMBER ? (int)line : 0;
}

/* Pairs: unsigned step of the address, signed step of the line. */
static int from_lnotab(const unsigned char *table, size_t length, int64_t line, int64_t offset)
{
    int64_t address = 0;
    for (size_t i = 0; i + 1 < length; i += 2) {
        address += table[i];
        if (address > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return checked(line);
}

/* Pairs: unsigned length of a range, signed step of the line. */
static int from_ranges(const unsigned char *table, size_t length, int64_t line, int64_t offset)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < length; i += 2) {
        int step = (int8_t)table[i + 1];
        end += table[i];
        if (step != NO_LINE)
            line += step;
        if (offset < end)
            return step == NO_LINE ? 0 : checked(line);
    }
    return 0;
}

struct cursor {
    const unsigned char *table;
    size_t at, length;
};

/* 6 bits a byte, the lowest first; bit 6: another byte follows. */
static bool read_varint(struct cursor *cursor, uint32_t *out)
{
    uint32_t value = 0;
    for (unsigned shift = 0; cursor->at < cursor->length && shift < 30; shift += 6) {
        unsigned char byte = cursor->table[cursor->at++];
        value |= (uint32_t)(byte & 63) << shift;
        if ((byte & 64) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* The step of the line of an entry whose first byte was read. The bytes that follow it are passed
 * over by the caller, which looks for the next first byte. */
static bool line_step(struct cursor *cursor, unsigned form, int64_t *step)
{
    uint32_t value = 0;
    *step = form >= 10 && form <= 12 ? (int64_t)form - 10 : 0;
    if (form != 13 && form != 14)
        return true;
    if (!read_varint(cursor, &value))
        return false;
    *step = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
    return true;
}

static int from_locations(const unsigned char *table, size_t length, int64_t line, int64_t offset)
{
    struct cursor cursor = {.table = table, .length = length};
    int64_t address = 0, step;
    while (cursor.at < length) {
        unsigned char first = table[cursor.at++];
        unsigned form = first >> 3 & 15;
        if ((first & 128) == 0 || !line_step(&cursor, form, &step))
            return 0;
        address += 2 * ((first & 7) + 1);
        line += step;
        if (offset < address)
            return form == 15 ? 0 : checked(line);
        /* only first bytes have bit 7, in forms without columns; columns may have it as well */
        cursor.at += form < 10 ? 1 : form <= 12 ? 2 : 0;
        while (form == 14 && cursor.at < length && (table[cursor.at] & 128) == 0)
            cursor.at++;
    }
    return 0;
}

int line_of_offset(int minor, const unsigned char *table, size_t length, int first_line,
                   int64_t offset)
{
    if (offset < 0)
        return checked(first_line);
    if (minor >= 11)
        return from_locations(table, length, first_line, offset);
    return minor == 10 ? from_ranges(table, length, first_line, offset)
                       : from_lnotab(table, length, first_line, offset);
}
