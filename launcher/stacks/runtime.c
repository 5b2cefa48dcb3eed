/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/runtime.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/usage/proc_text.h"
#include "stacks/runtime_test.h"

/* ---- The symbols of an ELF file -------------------------------------------------------------- */

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

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    const int *fd = context;
    ssize_t got = offset <= INT64_MAX ? fd_pread(*fd, out, length, (off_t)offset) : -1;
    return got > 0 ? (size_t)got : 0;
}

int symbols_read_file(int fd, struct symbols *out)
{
    return symbols_read(&(struct elf_source){.read = read_file, .context = &fd}, out);
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

/* ---- The files that a process has mapped ----------------------------------------------------- */

static bool wanted(const char *path, const char *program)
{
    const char *name = strrchr(path, '/') + 1;
    return strcmp(path, program) == 0 || strncmp(name, "python", 6) == 0 ||
           strncmp(name, "libpython", 9) == 0;
}

static struct mapped_file *find(const struct mapped_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path) == 0)
            return &files->items[i];
    }
    return NULL;
}

static void add(struct mapped_files *files, const struct mapped_file *file, const char *program)
{
    struct mapped_file *known = find(files, file->path);
    if (known != NULL && file->offset < known->offset) {
        free(known->path);
        *known = *file;
    } else if (known == NULL && files->count < MAPPED_FILES_MAX && wanted(file->path, program)) {
        MEM_ADD(files->items, files->count) = *file;
    } else {
        free(file->path);
    }
}

void mapped_files_read(const char *text, const char *program, struct mapped_files *out)
{
    *out = (struct mapped_files){.items = NULL};
    for (const char *at = text; *at != '\0'; at = text_behind(at, '\n')) {
        struct proc_mapping line;
        if (proc_mapping_read(at, strcspn(at, "\n"), &line) < 0 || line.inode == 0)
            continue;
        char *path = mem_strndup(line.path, line.length);
        add(out, &(struct mapped_file){line.start, line.end, line.offset, line.inode, path},
            program);
    }
    struct mapped_file *first = find(out, program);
    if (first != NULL) {
        struct mapped_file other = out->items[0];
        out->items[0] = *first;
        *first = other;
    }
}

void mapped_files_destroy(struct mapped_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct mapped_files){.items = NULL};
}

int mapped_minor_version(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *at = strstr(slash != NULL ? slash : path, "python3.");
    if (at == NULL || !isdigit((unsigned char)at[8]))
        return -1;
    long minor = strtol(at + 8, NULL, 10);
    return minor < 100 ? (int)minor : -1;
}

/* ---- The interpreter ------------------------------------------------------------------------- */

#define FILES_MAX 32
#define MAPS_FIRST ((size_t)16 << 10) /* has the program, which comes first */
#define MAPS_MAX ((size_t)4 << 20)
#define OLDEST_WITH_VERSION 11

struct known_file {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    struct symbols symbols;
};

struct runtime_files {
    struct known_file items[FILES_MAX];
    size_t count, next;
};

struct runtime_files *runtime_files_create(void)
{
    return mem_alloc(sizeof(struct runtime_files));
}

void runtime_files_destroy(struct runtime_files *files)
{
    free(files);
}

static const struct symbols *symbols_of(struct runtime_files *files, int fd)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return NULL;
    for (size_t i = 0; i < files->count; i++) {
        const struct known_file *known = &files->items[i];
        if (known->device == info.st_dev && known->inode == info.st_ino &&
            known->size == info.st_size && known->changed.tv_sec == info.st_mtim.tv_sec &&
            known->changed.tv_nsec == info.st_mtim.tv_nsec)
            return &known->symbols;
    }
    struct known_file *place = &files->items[files->next];
    files->next = (files->next + 1) % FILES_MAX;
    files->count += files->count < FILES_MAX ? 1 : 0;
    *place = (struct known_file){
        .device = info.st_dev, .inode = info.st_ino, .size = info.st_size, .changed = info.st_mtim};
    (void)symbols_read_file(fd, &place->symbols);
    return &place->symbols;
}

static int open_mapped(pid_t pid, const struct mapped_file *file, const char *program)
{
    char *exe AUTO_FREE = mem_printf("/proc/%d/exe", (int)pid);
    if (strcmp(file->path, program) == 0)
        return fd_open_regular(exe);
    char *inside AUTO_FREE = mem_printf("/proc/%d/root%s", (int)pid, file->path);
    int fd = fd_open_regular(inside);
    if (fd < 0 && errno == ENOENT) /* after chroot(), the paths are still as we see them */
        fd = fd_open_regular(file->path);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    char *mapped AUTO_FREE =
        mem_printf("/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)file->start,
                   (unsigned long long)file->end);
    return fd_open_regular(mapped);
}

/* Is it the file that the process has mapped? Numbers of devices differ on some file systems. */
static bool same_file(int fd, const struct mapped_file *file, struct memory *memory)
{
    unsigned char there[sizeof(Elf64_Ehdr)], here[sizeof(Elf64_Ehdr)];
    return file->offset != 0 || (memory_read(memory, file->start, there, sizeof(there)) == 0 &&
                                 fd_pread(fd, here, sizeof(here), 0) == (ssize_t)sizeof(here) &&
                                 memcmp(there, here, sizeof(here)) == 0);
}

static int minor_of(const struct symbols *symbols, uint64_t bias, struct memory *memory,
                    const char *path)
{
    uint32_t version = 0;
    if (symbols->version == 0) {
        int minor = mapped_minor_version(path);
        return minor < OLDEST_WITH_VERSION ? minor : -1;
    }
    if (memory_read(memory, symbols->version + bias, &version, sizeof(version)) < 0 ||
        version >> 24 != 3)
        return -1;
    return (int)(version >> 16 & 255);
}

static int look_in(struct runtime_files *files, pid_t pid, const struct mapped_file *file,
                   const char *program, struct memory *memory, struct runtime *out)
{
    int fd AUTO_FD = open_mapped(pid, file, program);
    const struct symbols *symbols =
        fd >= 0 && same_file(fd, file, memory) ? symbols_of(files, fd) : NULL;
    uint64_t bias = 0;
    if (symbols == NULL || symbols->runtime == 0 ||
        symbols_bias(symbols, file->offset, file->start, &bias) < 0)
        return 0;
    *out = (struct runtime){.address = symbols->runtime + bias,
                            .minor = minor_of(symbols, bias, memory, file->path)};
    return 1;
}

/* Up to `limit` bytes of maps, cut after a line. The kernel makes them while we read. */
static int read_maps(pid_t pid, size_t limit, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/maps", (int)pid);
    int fd AUTO_FD = fd_open(path, O_RDONLY, 0);
    ssize_t got = fd >= 0 ? 1 : -1;
    buf_clear(out);
    while (got > 0 && out->length < limit) {
        void *room = buf_reserve(out, 4096);
        got = room != NULL ? fd_read(fd, room, 4096) : -1;
        buf_commit(out, got > 0 ? (size_t)got : 0);
    }
    const char *text = buf_text(out), *last = strrchr(text, '\n');
    buf_truncate(out, last != NULL ? (size_t)(last - text) + 1 : 0);
    return fd >= 0 ? 0 : -1;
}

int runtime_find(struct runtime_files *files, pid_t pid, struct memory *memory, struct runtime *out)
{
    static const size_t limits[] = {MAPS_FIRST, MAPS_MAX};
    char *exe AUTO_FREE = mem_printf("/proc/%d/exe", (int)pid), program[PATH_MAX];
    ssize_t length = readlink(exe, program, sizeof(program) - 1);
    struct buf text AUTO_BUF = BUF_INIT(MAPS_MAX + 8192);
    int found = 0;
    if (length <= 0)
        return 0;
    program[length] = '\0';
    for (size_t i = 0; found == 0 && i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct mapped_files mapped;
        if (read_maps(pid, limits[i], &text) < 0)
            return 0;
        mapped_files_read(buf_text(&text), program, &mapped);
        for (size_t j = 0; found == 0 && j < mapped.count; j++)
            found = look_in(files, pid, &mapped.items[j], program, memory, out);
        mapped_files_destroy(&mapped);
        if (text.length < limits[i])
            break;
    }
    return found;
}
