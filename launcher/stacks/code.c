/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define CACHE_MAX 4096
#define TEXT_MAX 1024 /* characters of a name or of a path */
#define TABLE_MAX ((uint64_t)1 << 20)
#define LINE_MAX_NUMBER 100000000
#define NO_LINE (-128)

/* ---- Lines ----------------------------------------------------------------------------------- */

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

/* ---- Code objects ---------------------------------------------------------------------------- */

static void destroy(struct code *code)
{
    free(code->function);
    free(code->file);
    free(code->table);
    free(code);
}

void code_cache_destroy(struct code_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        destroy(cache->items[i]);
    free(cache->items);
    *cache = (struct code_cache){.items = NULL};
}

/* Is it an object of the type with this name? Learns the type if it is not known. */
static bool has_type(struct memory *memory, const struct python_layout *layout, uint64_t object,
                     const char *name, uint64_t *known)
{
    uint64_t type = 0, name_at = 0;
    char text[8] = "";
    if (!memory_is_pointer(object) ||
        memory_pointer(memory, object + layout->object_type, &type) < 0 || type == 0)
        return false;
    if (*known != 0)
        return type == *known;
    if (memory_u64(memory, type + layout->type_name, &name_at) < 0 ||
        memory_read(memory, name_at, text, strlen(name) + 1) < 0 ||
        memcmp(text, name, strlen(name) + 1) != 0)
        return false;
    *known = type;
    return true;
}

static void put_utf8(struct buf *out, uint32_t point)
{
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    buf_putc(out, (char)(leads[more] | point >> 6 * more));
    while (more-- > 0)
        buf_putc(out, (char)(0x80 | (point >> 6 * more & 63)));
}

/* Control characters and halves of pairs become '?'. */
static uint32_t printable(uint32_t point)
{
    bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    bool half = point >= 0xd800 && point < 0xe000;
    return control || half || point > 0x10ffff ? '?' : point;
}

static char *utf8_of(const unsigned char *data, size_t length, unsigned kind)
{
    struct buf out = BUF_INIT(4 * TEXT_MAX);
    for (size_t i = 0; i < length; i++) {
        uint32_t point = 0;
        memcpy(&point, data + i * kind, kind);
        put_utf8(&out, printable(point));
    }
    return buf_take(&out);
}

struct str_head {
    uint64_t length;
    unsigned kind; /* bytes a character */
    uint32_t data; /* the offset of the characters */
};

static int read_head(struct memory *memory, const struct python_layout *layout, uint64_t object,
                     struct str_head *out)
{
    uint32_t state = 0;
    if (memory_u64(memory, object + layout->str_length, &out->length) < 0 ||
        memory_read(memory, object + layout->str_state, &state, sizeof(state)) < 0)
        return -1;
    if (layout->free_threaded)
        state >>= 6; /* "interned" takes 8 bits there, and 2 elsewhere */
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    out->kind = state >> 2 & 7;
    out->data = ascii ? layout->str_ascii : layout->str_wide;
    bool known = out->kind == 1 || out->kind == 2 || out->kind == 4;
    return known && compact && (!ascii || out->kind == 1) && out->length <= TEXT_MAX ? 0 : -1;
}

/* The text of a str, or NULL. The caller's. */
static char *read_str(struct code_cache *cache, struct memory *memory,
                      const struct python_layout *layout, uint64_t object)
{
    struct str_head head;
    unsigned char data[4 * TEXT_MAX];
    if (!has_type(memory, layout, object, "str", &cache->str_type) ||
        read_head(memory, layout, object, &head) < 0)
        return NULL;
    size_t size = (size_t)head.length * head.kind;
    if (size > 0 && memory_read(memory, object + head.data, data, size) < 0)
        return NULL;
    return utf8_of(data, (size_t)head.length, head.kind);
}

static int read_table(struct code_cache *cache, struct memory *memory,
                      const struct python_layout *layout, struct code *code)
{
    uint64_t size = 0;
    if (!has_type(memory, layout, code->table_at, "bytes", &cache->bytes_type) ||
        memory_u64(memory, code->table_at + layout->bytes_size, &size) < 0 || size > TABLE_MAX ||
        size + MEMORY_READ_COST > memory->budget)
        return -1;
    code->table = mem_alloc((size_t)size + 1);
    code->table_length = (size_t)size;
    return size == 0 ? 0
                     : memory_read(memory, code->table_at + layout->bytes_data, code->table,
                                   (size_t)size);
}

static const struct code *find(const struct code_cache *cache, const struct code *wanted)
{
    for (size_t i = 0; i < cache->count; i++) {
        const struct code *code = cache->items[i];
        if (code->address == wanted->address && code->name_at == wanted->name_at &&
            code->file_at == wanted->file_at && code->table_at == wanted->table_at &&
            code->copies == wanted->copies && code->first_line == wanted->first_line)
            return code;
    }
    return NULL;
}

const struct code *code_read(struct code_cache *cache, struct memory *memory,
                             const struct python_layout *layout, uint64_t address)
{
    unsigned char bytes[4096];
    uint32_t size = python_layout_code_size(layout);
    if (!has_type(memory, layout, address, "code", &cache->code_type) || size > sizeof(bytes) ||
        memory_read(memory, address, bytes, size) < 0)
        return NULL;
    uint32_t name =
        layout->code_qualname != LAYOUT_NONE ? layout->code_qualname : layout->code_name;
    struct code wanted = {
        .address = address,
        .name_at = memory_u64_at(bytes + name),
        .file_at = memory_u64_at(bytes + layout->code_file),
        .table_at = memory_u64_at(bytes + layout->code_table),
        .first_line = (int)memory_u32_at(bytes + layout->code_first_line),
        .copies =
            layout->code_copies != LAYOUT_NONE ? memory_u64_at(bytes + layout->code_copies) : 0,
    };
    const struct code *known = find(cache, &wanted);
    if (known != NULL || cache->count == CACHE_MAX)
        return known;
    struct code *code = mem_dup(&wanted, sizeof(wanted));
    code->function = read_str(cache, memory, layout, code->name_at);
    code->file = code->function != NULL ? read_str(cache, memory, layout, code->file_at) : NULL;
    if (code->file == NULL || read_table(cache, memory, layout, code) < 0) {
        destroy(code);
        return NULL;
    }
    MEM_ADD(cache->items, cache->count) = code;
    return code;
}
