/* SPDX-License-Identifier: Apache-2.0 */
#include "features/libraries/loaded.h"

#include <stdlib.h>
#include <string.h>

#include "base/elf.h"
#include "base/mem.h"

const char libraries_feature[] = "which libraries each rank has loaded";

static const struct {
    const char *key, *title;
} kinds[LIBRARY_KINDS] = {
#define LIBRARY_ROW(name, key, title) [name] = {key, title},
    LIBRARY_LIST(LIBRARY_ROW)
#undef LIBRARY_ROW
};

const char *library_key(enum library_kind kind)
{
    return kinds[kind].key;
}

const char *library_title(enum library_kind kind)
{
    return kinds[kind].title;
}

/* Does the name go on with ".so", or as in "libcudart-d0da41ae.so"? libnccl-net.so is a plugin. */
static bool is_end_of_stem(const char *rest)
{
    size_t digits = rest[0] == '-' ? strspn(rest + 1, "0123456789abcdef") : 0;
    return rest[digits > 0 ? digits + 1 : 0] == '.';
}

/* A star stands for the names of compilers, as in Cray's libmpi_gnu_123.so.12. MPI's libraries for
 * Fortran and C++ are only companions. */
enum library_kind library_kind_of(const char *name)
{
    static const struct {
        const char *stem;
        enum library_kind kind;
    } stems[] = {
        {"libnccl", LIBRARY_NCCL},      {"libcuda", LIBRARY_CUDA},
        {"libcudart", LIBRARY_CUDART},  {"libmpi", LIBRARY_MPI},
        {"libmpich", LIBRARY_MPI},      {"libmpi_abi", LIBRARY_MPI},
        {"libmpi_cray*", LIBRARY_MPI},  {"libmpi_gnu*", LIBRARY_MPI},
        {"libmpi_intel*", LIBRARY_MPI}, {"libtorch_cpu", LIBRARY_TORCH},
        {"libhvd", LIBRARY_HVD},        {"libtorch_cuda", LIBRARY_TORCH_CUDA},
    };
    const char *so = strstr(name, ".so");
    if (so == NULL || (so[3] != '\0' && so[3] != '.'))
        return LIBRARY_KINDS;
    for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++) {
        size_t length = strcspn(stems[i].stem, "*");
        bool any = stems[i].stem[length] == '*';
        if (strncmp(name, stems[i].stem, length) == 0 && (any || is_end_of_stem(name + length)))
            return stems[i].kind;
    }
    return LIBRARY_KINDS;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *library_version(const char *path)
{
    const char *so = strstr(base_name(path), ".so.");
    return so != NULL ? so + 4 : "";
}

bool library_is_stub(const char *path)
{
    return strstr(path, "/stubs/") != NULL;
}

/* A line of maps: "7f12-7f34 r-xp 00001000 103:02 4711   /usr/lib/libmpi.so.40.30.4". */
struct line {
    struct loaded_mapping mapping;
    bool writable, deleted;
    uint64_t inode;
    const char *path;
    size_t length; /* of the path */
};

static bool read_line(const char *text, size_t length, struct line *out)
{
    static const char deleted[] = " (deleted)";
    const size_t mark = sizeof(deleted) - 1;
    const char *path = memchr(text, '/', length);
    char *at;
    if (path == NULL || text + length - path > LOADED_PATH_MAX)
        return false;
    *out = (struct line){.path = path, .length = (size_t)(text + length - path)};
    out->mapping.start = strtoull(text, &at, 16);
    if (*at != '-')
        return false;
    out->mapping.end = strtoull(at + 1, &at, 16);
    if (at[0] != ' ' || path - at < 6)
        return false;
    out->writable = at[2] == 'w';
    out->mapping.offset = strtoull(at + 6, &at, 16);
    at = at < path ? memchr(at + 1, ' ', (size_t)(path - at)) : NULL; /* behind the device */
    out->inode = at != NULL ? strtoull(at, NULL, 10) : 0;
    out->deleted = out->length > mark && memcmp(path + out->length - mark, deleted, mark) == 0;
    out->length -= out->deleted ? mark : 0;
    return out->mapping.end > out->mapping.start;
}

static enum library_kind kind_of_line(const struct line *line)
{
    char name[128];
    const char *slash = memrchr(line->path, '/', line->length);
    size_t length = (size_t)(line->path + line->length - slash) - 1;
    if (length < 3 || length >= sizeof(name) || memcmp(slash + 1, "lib", 3) != 0)
        return LIBRARY_KINDS;
    memcpy(name, slash + 1, length);
    name[length] = '\0';
    return library_kind_of(name);
}

static bool is_file_of(const struct loaded_library *library, const struct line *line)
{
    return library->inode == line->inode && strlen(library->path) == line->length &&
           memcmp(library->path, line->path, line->length) == 0;
}

static int by_path(const void *one, const void *other)
{
    const struct loaded_library *a = one, *b = other;
    return strcmp(a->path, b->path);
}

size_t loaded_read(const char *maps, struct loaded_library *out)
{
    size_t count = 0;
    for (const char *at = maps; *at != '\0';) {
        struct line line;
        size_t length = strcspn(at, "\n"), i = 0;
        enum library_kind kind = read_line(at, length, &line) ? kind_of_line(&line) : LIBRARY_KINDS;
        at += length + (at[length] == '\n');
        if (kind == LIBRARY_KINDS)
            continue;
        while (i < count && !is_file_of(&out[i], &line))
            i++;
        if (i == LOADED_MAX)
            continue;
        if (i == count)
            out[count++] = (struct loaded_library){.kind = kind,
                                                   .path = mem_strndup(line.path, line.length),
                                                   .deleted = line.deleted,
                                                   .inode = line.inode};
        if (!line.writable && out[i].mapping_count < LOADED_MAPPINGS)
            out[i].mappings[out[i].mapping_count++] = line.mapping;
    }
    if (count > 1)
        qsort(out, count, sizeof(*out), by_path);
    return count;
}

size_t loaded_at(const struct loaded_library *library, uint64_t offset, uint64_t *address)
{
    for (size_t i = 0; i < library->mapping_count; i++) {
        const struct loaded_mapping *mapping = &library->mappings[i];
        uint64_t size = mapping->end - mapping->start;
        if (offset < mapping->offset || offset - mapping->offset >= size)
            continue;
        *address = mapping->start + (offset - mapping->offset);
        size -= offset - mapping->offset;
        return size < SIZE_MAX ? (size_t)size : SIZE_MAX;
    }
    return 0;
}

struct source {
    const struct loaded_library *library;
    const struct loaded_memory *memory;
};

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    const struct source *source = context;
    uint64_t address = 0;
    size_t room = loaded_at(source->library, offset, &address);
    length = length < room ? length : room;
    return length > 0 ? source->memory->read(source->memory->context, address, out, length) : 0;
}

char *loaded_identity(const struct loaded_library *library, const struct loaded_memory *memory,
                      uint32_t *machine)
{
    struct source source = {library, memory};
    const struct elf_source file = {.read = read_file, .context = &source, .notes = true};
    struct elf_info info;
    *machine = 0;
    if (elf_read(&file, &info) < 0)
        return mem_strdup("");
    *machine = (uint32_t)info.machine << 2 | (uint32_t)info.wide << 1 | (uint32_t)info.big_endian;
    char *id = info.build_id;
    info.build_id = NULL;
    elf_info_destroy(&info);
    return id != NULL ? id : mem_strdup("");
}
