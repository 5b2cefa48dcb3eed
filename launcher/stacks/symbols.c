/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 512
#define TABLE_MAX ((uint64_t)32 << 20) /* bytes of symbols, and of their names */
#define FILE_MAX ((size_t)64 << 20)    /* that are read of one file: its sections may overlap */
#define PAGE 4096u

struct file {
    const struct elf_source *source;
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    size_t budget; /* bytes that may still be read */
};

static bool read_at(const struct elf_source *source, uint64_t offset, void *out, size_t length)
{
    return source->read(source->context, offset, out, length) == length;
}

static int read_header(struct file *file)
{
    Elf64_Ehdr *header = &file->header;
    bool known = read_at(file->source, 0, header, sizeof(*header)) &&
                 memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                 header->e_ident[EI_CLASS] == ELFCLASS64 &&
                 header->e_ident[EI_DATA] == ELFDATA2LSB &&
                 header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= SEGMENTS_MAX &&
                 (header->e_shnum == 0 || header->e_shentsize == sizeof(Elf64_Shdr)) &&
                 header->e_shnum <= SECTIONS_MAX;
    return known ? 0 : -1;
}

static int read_segments(const struct file *file, struct symbols *out)
{
    for (uint16_t i = 0; i < file->header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(file->source, file->header.e_phoff + i * sizeof(segment), &segment,
                     sizeof(segment)))
            return -1;
        if (segment.p_type != PT_LOAD || out->segment_count == SYMBOLS_SEGMENTS_MAX)
            continue;
        out->segments[out->segment_count].offset = segment.p_offset;
        out->segments[out->segment_count].address = segment.p_vaddr;
        out->segments[out->segment_count++].size = segment.p_filesz;
    }
    return 0;
}

/* The content of a section, with a NUL after it; NULL: too large, or cut, or the file has cost
 * enough. The caller's. */
static unsigned char *read_section(struct file *file, const Elf64_Shdr *section)
{
    if (section->sh_size == 0 || section->sh_size > TABLE_MAX || section->sh_type == SHT_NOBITS ||
        section->sh_size > file->budget)
        return NULL;
    file->budget -= (size_t)section->sh_size;
    unsigned char *bytes = mem_alloc((size_t)section->sh_size + 1);
    if (read_at(file->source, section->sh_offset, bytes, (size_t)section->sh_size))
        return bytes;
    free(bytes);
    return NULL;
}

static void take_symbol(const Elf64_Sym *symbol, const char *name, struct symbols *out)
{
    if (symbol->st_shndx == SHN_UNDEF)
        return;
    if (strcmp(name, "_PyRuntime") == 0)
        out->runtime = symbol->st_value;
    else if (strcmp(name, "Py_Version") == 0)
        out->version = symbol->st_value;
    else if (strcmp(name, "_IO_2_1_stdout_") == 0)
        out->standard_output = symbol->st_value;
}

static void read_symbols(struct file *file, uint32_t type, struct symbols *out)
{
    for (size_t i = 0; i < file->header.e_shnum; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_type != type || section->sh_link >= file->header.e_shnum)
            continue;
        const Elf64_Shdr *names = &file->sections[section->sh_link];
        unsigned char *symbols AUTO_FREE = read_section(file, section);
        unsigned char *text AUTO_FREE = symbols != NULL ? read_section(file, names) : NULL;
        size_t count = text != NULL ? (size_t)section->sh_size / sizeof(Elf64_Sym) : 0;
        for (size_t j = 0; j < count; j++) {
            Elf64_Sym symbol;
            memcpy(&symbol, symbols + j * sizeof(symbol), sizeof(symbol));
            if (symbol.st_name < names->sh_size)
                take_symbol(&symbol, (const char *)text + symbol.st_name, out);
        }
    }
}

static void read_runtime_section(struct file *file, struct symbols *out)
{
    if (file->header.e_shstrndx >= file->header.e_shnum)
        return;
    const Elf64_Shdr *names = &file->sections[file->header.e_shstrndx];
    unsigned char *text AUTO_FREE = read_section(file, names);
    for (size_t i = 0; text != NULL && i < file->header.e_shnum; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_name < names->sh_size &&
            strcmp((const char *)text + section->sh_name, ".PyRuntime") == 0)
            out->runtime = section->sh_addr;
    }
}

int symbols_read(const struct elf_source *source, struct symbols *out)
{
    struct file file = {.source = source, .budget = FILE_MAX};
    *out = (struct symbols){.runtime = 0};
    if (read_header(&file) < 0 || read_segments(&file, out) < 0) {
        *out = (struct symbols){.runtime = 0};
        return -1;
    }
    size_t size = file.header.e_shnum * sizeof(Elf64_Shdr);
    file.sections = mem_alloc(size + 1);
    if (read_at(source, file.header.e_shoff, file.sections, size)) {
        read_symbols(&file, SHT_DYNSYM, out);
        if (out->runtime == 0)
            read_symbols(&file, SHT_SYMTAB, out);
        if (out->runtime == 0)
            read_runtime_section(&file, out);
    }
    free(file.sections);
    return 0;
}

int symbols_bias(const struct symbols *symbols, uint64_t offset, uint64_t mapped, uint64_t *bias)
{
    for (size_t i = 0; i < symbols->segment_count; i++) {
        uint64_t begin = symbols->segments[i].offset & ~(uint64_t)(PAGE - 1);
        uint64_t end = symbols->segments[i].offset + symbols->segments[i].size;
        if (offset < begin || offset >= end)
            continue;
        uint64_t address = symbols->segments[i].address & ~(uint64_t)(PAGE - 1);
        *bias = mapped - (address + (offset - begin));
        return 0;
    }
    return -1;
}
