/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define SEGMENTS_MAX 512
#define DYNAMIC_MAX (1 << 16) /* bytes of a dynamic section that it reads */
#define NEEDED_MAX 256
#define VERSIONS_MAX 4096
#define NAME_MAX_BYTES 4096
#define NOTES_MAX 4096 /* bytes of a segment of notes that it reads */
#define BUILD_ID_MAX 64

struct segment {
    uint32_t type;
    uint64_t offset, address, size;
};

struct reader {
    const struct elf_source *source;
    struct elf_info *info;
    struct segment *segments;
    size_t segment_count;
};

/* An unsigned number of `size` bytes in the file's byte order. */
static uint64_t get(const struct reader *r, const unsigned char *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[r->info->big_endian ? i : size - 1 - i];
    return value;
}

static bool read_exactly(const struct reader *r, uint64_t offset, void *out, size_t length)
{
    return r->source->read(r->source->context, offset, out, length) == length;
}

/* A string of the file. NULL: it is empty, too long, or the file ends before the string does. */
static char *read_string(const struct reader *r, uint64_t offset, size_t max)
{
    char text[NAME_MAX_BYTES];
    size_t got = 0;
    if (max > sizeof(text))
        max = sizeof(text);
    /* most names are short: try a small read first */
    for (size_t want = 128; want < 2 * sizeof(text); want *= 32) {
        want = want < max ? want : max;
        got = r->source->read(r->source->context, offset, text, want);
        size_t length = strnlen(text, got);
        if (length < got)
            return length > 0 ? mem_strndup(text, length) : NULL;
        if (got < want || want == max)
            return NULL;
    }
    return NULL;
}

/* The fields of the header that have different offsets in the two classes. */
struct header {
    uint64_t table;
    size_t entry_size, count;
};

static int read_header(struct reader *r, struct header *header)
{
    unsigned char bytes[sizeof(Elf64_Ehdr)] = {0};
    size_t got = r->source->read(r->source->context, 0, bytes, sizeof(bytes));
    if (got < sizeof(Elf32_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return -1;
    unsigned char class = bytes[EI_CLASS], data = bytes[EI_DATA];
    if ((class != ELFCLASS32 && class != ELFCLASS64) ||
        (data != ELFDATA2LSB && data != ELFDATA2MSB))
        return -1;
    bool wide = r->info->wide = class == ELFCLASS64;
    r->info->big_endian = data == ELFDATA2MSB;
    if (wide && got < sizeof(Elf64_Ehdr))
        return -1;
    r->info->type = (uint16_t)get(r, bytes + 16, 2);
    r->info->machine = (uint16_t)get(r, bytes + 18, 2);
    header->table = get(r, bytes + (wide ? 32 : 28), wide ? 8 : 4);
    header->entry_size = (size_t)get(r, bytes + (wide ? 54 : 42), 2);
    header->count = (size_t)get(r, bytes + (wide ? 56 : 44), 2);
    return 0;
}

static int read_segments(struct reader *r)
{
    struct header header = {0};
    if (read_header(r, &header) < 0)
        return -1;
    bool wide = r->info->wide;
    size_t minimum = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    if (header.count == 0)
        return 0; /* an object file: nothing to load */
    if (header.entry_size < minimum || header.entry_size > 256 || header.count > SEGMENTS_MAX)
        return -1;
    size_t size = header.entry_size * header.count;
    unsigned char *bytes AUTO_FREE = mem_alloc(size);
    if (!read_exactly(r, header.table, bytes, size))
        return -1;
    r->segments = mem_array(header.count, sizeof(*r->segments));
    r->segment_count = header.count;
    for (size_t i = 0; i < header.count; i++) {
        const unsigned char *at = bytes + i * header.entry_size;
        r->segments[i] = (struct segment){
            .type = (uint32_t)get(r, at, 4),
            .offset = get(r, at + (wide ? 8 : 4), wide ? 8 : 4),
            .address = get(r, at + (wide ? 16 : 8), wide ? 8 : 4),
            .size = get(r, at + (wide ? 32 : 16), wide ? 8 : 4),
        };
    }
    return 0;
}

static const struct segment *segment_of_type(const struct reader *r, uint32_t type)
{
    size_t i = 0;
    while (i < r->segment_count && r->segments[i].type != type)
        i++;
    return i < r->segment_count ? &r->segments[i] : NULL;
}

/* The offset in the file of a loaded address. False: it is not in any segment. */
static bool offset_of(const struct reader *r, uint64_t address, uint64_t *offset)
{
    for (size_t i = 0; i < r->segment_count; i++) {
        const struct segment *s = &r->segments[i];
        if (s->type == PT_LOAD && address >= s->address && address - s->address < s->size) {
            *offset = s->offset + (address - s->address);
            return true;
        }
    }
    return false;
}

static void take_path(const struct reader *r, char **place, uint64_t offset, uint64_t room)
{
    free(*place);
    *place = read_string(r, offset, room < NAME_MAX_BYTES ? (size_t)room : NAME_MAX_BYTES);
}

/* The versions are lists in a list, one for each library. Both classes have the same entries. */
static void read_versions(const struct reader *r, uint64_t at, uint64_t strings, uint64_t room)
{
    unsigned char library[sizeof(Elf64_Verneed)], version[sizeof(Elf64_Vernaux)];
    int left = VERSIONS_MAX;
    for (uint64_t next = 1; next != 0 && left-- > 0; at += next) {
        if (!read_exactly(r, at, library, sizeof(library)))
            return;
        uint64_t aux = at + get(r, library + 8, 4);
        for (uint64_t count = get(r, library + 2, 2); count > 0 && left-- > 0; count--) {
            if (!read_exactly(r, aux, version, sizeof(version)))
                return;
            uint64_t name = get(r, version + 8, 4);
            char *text = name < room ? read_string(r, strings + name, (size_t)(room - name)) : NULL;
            if (text != NULL)
                strv_add_take(&r->info->versions, text);
            aux += get(r, version + 12, 4);
        }
        next = get(r, library + 12, 4);
    }
}

/* Reads the entries of the dynamic section: first the string table, then the entries that use it.
 */
static void read_dynamic(struct reader *r, const unsigned char *bytes, size_t size)
{
    size_t word = r->info->wide ? 8 : 4;
    uint64_t table = 0, table_size = 0, strings = 0, versions = 0;
    size_t count = 0;
    for (; (count + 1) * 2 * word <= size; count++) {
        uint64_t tag = get(r, bytes + count * 2 * word, word);
        uint64_t value = get(r, bytes + count * 2 * word + word, word);
        if (tag == DT_NULL)
            break;
        table = tag == DT_STRTAB ? value : table;
        table_size = tag == DT_STRSZ ? value : table_size;
        versions = tag == DT_VERNEED ? value : versions;
    }
    if (!offset_of(r, table, &strings))
        return;
    if (r->source->versions && offset_of(r, versions, &versions))
        read_versions(r, versions, strings, table_size);
    for (size_t i = 0; i < count; i++) {
        uint64_t tag = get(r, bytes + i * 2 * word, word);
        uint64_t value = get(r, bytes + i * 2 * word + word, word);
        bool wanted = tag == DT_NEEDED || tag == DT_RPATH || tag == DT_RUNPATH;
        if (!wanted || value >= table_size || strings > UINT64_MAX - value)
            continue;
        uint64_t at = strings + value, room = table_size - value;
        if (tag == DT_RPATH) {
            take_path(r, &r->info->rpath, at, room);
        } else if (tag == DT_RUNPATH) {
            take_path(r, &r->info->runpath, at, room);
        } else if (r->info->needed.count < NEEDED_MAX) {
            char *name = NULL;
            take_path(r, &name, at, room);
            if (name != NULL)
                strv_add_take(&r->info->needed, name);
        }
    }
}

/* The hexadecimal digits of a build id. The caller frees them. */
static char *digits_of(const unsigned char *bytes, size_t length)
{
    char *text = mem_alloc(2 * length + 1);
    text_hex(bytes, length, text);
    return text;
}

/* A note is three numbers, a name and a value, both padded to four bytes. */
static char *find_build_id(const struct reader *r, const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        uint64_t name = get(r, bytes + at, 4), value = get(r, bytes + at + 4, 4);
        uint64_t type = get(r, bytes + at + 8, 4);
        const unsigned char *text = bytes + at + sizeof(Elf64_Nhdr);
        uint64_t name_room = (name + 3) & ~(uint64_t)3,
                 room = name_room + ((value + 3) & ~(uint64_t)3);
        at += sizeof(Elf64_Nhdr);
        if (room > size - at)
            return NULL;
        at += (size_t)room;
        if (type == NT_GNU_BUILD_ID && name == sizeof(ELF_NOTE_GNU) &&
            memcmp(text, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && value > 0 &&
            value <= BUILD_ID_MAX)
            return digits_of(text + name_room, (size_t)value);
    }
    return NULL;
}

static void read_notes(const struct reader *r)
{
    for (size_t i = 0; i < r->segment_count && r->info->build_id == NULL; i++) {
        const struct segment *notes = &r->segments[i];
        unsigned char bytes[NOTES_MAX];
        if (notes->type != PT_NOTE)
            continue;
        size_t size = notes->size < sizeof(bytes) ? (size_t)notes->size : sizeof(bytes);
        size = r->source->read(r->source->context, notes->offset, bytes, size);
        r->info->build_id = find_build_id(r, bytes, size);
    }
}

int elf_read(const struct elf_source *source, struct elf_info *out)
{
    *out = (struct elf_info){.wide = false};
    struct reader r = {.source = source, .info = out};
    if (read_segments(&r) < 0) {
        free(r.segments);
        elf_info_destroy(out);
        return -1;
    }
    const struct segment *interpreter = segment_of_type(&r, PT_INTERP);
    if (interpreter != NULL)
        take_path(&r, &out->interpreter, interpreter->offset, interpreter->size);
    const struct segment *dynamic = segment_of_type(&r, PT_DYNAMIC);
    if (dynamic != NULL) {
        size_t size = dynamic->size < DYNAMIC_MAX ? (size_t)dynamic->size : DYNAMIC_MAX;
        unsigned char *bytes AUTO_FREE = mem_alloc(size);
        size = source->read(source->context, dynamic->offset, bytes, size);
        out->dynamic = true;
        read_dynamic(&r, bytes, size);
    }
    if (source->notes)
        read_notes(&r);
    free(r.segments);
    return 0;
}

struct memory {
    const unsigned char *bytes;
    size_t length;
};

static size_t read_memory(void *context, uint64_t offset, void *out, size_t length)
{
    const struct memory *memory = context;
    if (offset >= memory->length)
        return 0;
    size_t left = memory->length - (size_t)offset;
    size_t got = length < left ? length : left;
    memcpy(out, memory->bytes + offset, got);
    return got;
}

int elf_parse(const void *bytes, size_t length, struct elf_info *out)
{
    struct memory memory = {bytes, length};
    const struct elf_source source = {read_memory, &memory, true, true};
    return elf_read(&source, out);
}

void elf_info_destroy(struct elf_info *info)
{
    free(info->interpreter);
    free(info->rpath);
    free(info->runpath);
    free(info->build_id);
    strv_destroy(&info->needed);
    strv_destroy(&info->versions);
    *info = (struct elf_info){.wide = false};
}
