/* SPDX-License-Identifier: Apache-2.0 */
#include "features/libraries/libraries.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/plan/rank_list.h"
#include "model/usage/proc_text.h"

/* ---- What a process has loaded --------------------------------------------------------------- */

const char libraries_feature[] = "which libraries each rank has loaded";

const struct library_words library_words[LIBRARY_KINDS] = {
#define LIBRARY_ROW(name, key, title) [name] = {key, title},
    LIBRARY_LIST(LIBRARY_ROW)
#undef LIBRARY_ROW
};

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

const char *library_version(const char *path)
{
    const char *so = strstr(text_base_name(path), ".so.");
    return so != NULL ? so + 4 : "";
}

bool library_is_stub(const char *path)
{
    return strstr(path, "/stubs/") != NULL;
}

/* Cuts off what the kernel writes behind the path of a file that is gone. */
static bool cut_deleted(struct proc_mapping *line)
{
    static const char deleted[] = " (deleted)";
    const size_t mark = sizeof(deleted) - 1;
    bool gone = line->length > mark && memcmp(line->path + line->length - mark, deleted, mark) == 0;
    line->length -= gone ? mark : 0;
    return gone;
}

static enum library_kind kind_of_line(const struct proc_mapping *line)
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

static bool is_file_of(const struct loaded_library *library, const struct proc_mapping *line)
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
    for (const char *at = maps; *at != '\0'; at = text_behind(at, '\n')) {
        struct proc_mapping line;
        if (proc_mapping_read(at, strcspn(at, "\n"), &line) < 0 || line.length > LOADED_PATH_MAX)
            continue;
        size_t i = 0;
        bool deleted = cut_deleted(&line);
        enum library_kind kind = kind_of_line(&line);
        if (kind == LIBRARY_KINDS)
            continue;
        while (i < count && !is_file_of(&out[i], &line))
            i++;
        if (i == LOADED_MAX)
            continue;
        if (i == count)
            out[count++] = (struct loaded_library){.kind = kind,
                                                   .path = mem_strndup(line.path, line.length),
                                                   .deleted = deleted,
                                                   .inode = line.inode};
        if (line.rights[1] != 'w' && out[i].mapping_count < LOADED_MAPPINGS)
            out[i].mappings[out[i].mapping_count++] =
                (struct loaded_mapping){line.start, line.end, line.offset};
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
    const struct elf_source *memory;
};

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    const struct source *source = context;
    uint64_t address = 0;
    size_t room = loaded_at(source->library, offset, &address);
    length = length < room ? length : room;
    return length > 0 ? source->memory->read(source->memory->context, address, out, length) : 0;
}

char *loaded_identity(const struct loaded_library *library, const struct elf_source *memory,
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

/* ---- What differs ---------------------------------------------------------------------------- */

#define TEXT_MAX ((size_t)4096)
#define PATH_SHOWN 300
#define ID_SHOWN 12
#define FILES_COMPARED 64 /* of a kind, in one program */

/* Of one kind; both are known. */
static bool differ(const struct library_file *one, const struct library_file *other)
{
    return one->machine == other->machine && strcmp(one->id, other->id) != 0;
}

/* "/usr/lib/libmpi.so.40 (build id 0123456789ab)" */
static void put_file(const struct library_file *file, struct buf *out)
{
    buf_printf(out, "%.*s (build id %.*s%s)", PATH_SHOWN, file->path, ID_SHOWN, file->id,
               file->deleted ? ", deleted" : "");
}

struct check { /* of one kind, in one program */
    const struct library_file *files;
    const struct library_rank *ranks;
    size_t count;
    enum library_kind kind;
    library_each *each;
    void *context;
    int *chosen, *listed; /* by the rank's place: a file of that kind, or -1; a list of ranks */
};

/* The first file of the kind, and another one that differs from it; -1: none. */
static void files_of(const struct check *check, const struct library_rank *rank, int *first,
                     int *second)
{
    *first = *second = -1;
    for (size_t i = 0; i < rank->count; i++) {
        const struct library_file *file = &check->files[rank->files[i]];
        if (file->kind != check->kind || file->id[0] == '\0' || library_is_stub(file->path))
            continue;
        if (*first < 0)
            *first = rank->files[i];
        else if (*second < 0 && differ(&check->files[*first], file))
            *second = rank->files[i];
    }
}

static void tell_two(const struct check *check, int first, int second, int count)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    rank_ranges(check->listed, count, &text);
    buf_printf(&text, " %s two %s libraries in one process: ", count == 1 ? "has" : "have",
               library_words[check->kind].title);
    put_file(&check->files[first], &text);
    buf_puts(&text, " and ");
    put_file(&check->files[second], &text);
    check->each(check->context, check->kind, true, buf_text(&text));
}

/* Also chooses what is compared with other ranks: the file of those that have one. */
static void check_processes(const struct check *check)
{
    int told_first = -1, told_second = -1, listed = 0;
    for (size_t i = 0; i < check->count; i++) {
        const struct library_rank *rank = &check->ranks[i];
        int first = -1, second = -1;
        files_of(check, rank, &first, &second);
        check->chosen[i] = second < 0 ? first : -1;
        if (second < 0 || check->kind == LIBRARY_CUDART || check->kind == LIBRARY_CUDA)
            continue;
        if (listed == 0) {
            told_first = first;
            told_second = second;
        }
        if (first == told_first && second == told_second)
            check->listed[listed++] = rank->rank;
    }
    if (listed > 0)
        tell_two(check, told_first, told_second, listed);
}

/* Appends the ranks with the same library as this file. */
static void put_group(const struct check *check, int file, struct buf *out)
{
    int listed = 0;
    for (size_t i = 0; i < check->count; i++) {
        int own = check->chosen[i];
        if (own >= 0 && check->files[file].machine == check->files[own].machine &&
            !differ(&check->files[file], &check->files[own]))
            check->listed[listed++] = check->ranks[i].rank;
    }
    rank_ranges(check->listed, listed, out);
    buf_puts(out, ": ");
    put_file(&check->files[file], out);
}

static bool tell_if_different(const struct check *check, int one, int other)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    if (!differ(&check->files[one], &check->files[other]))
        return false;
    buf_printf(&text, "ranks of one program have loaded different %s libraries: ",
               library_words[check->kind].title);
    put_group(check, one, &text);
    buf_puts(&text, "; ");
    put_group(check, other, &text);
    check->each(check->context, check->kind, false, buf_text(&text));
    return true;
}

/* The first file that differs from the one of an earlier rank. */
static void check_ranks(const struct check *check)
{
    int seen[FILES_COMPARED];
    size_t count = 0;
    for (size_t i = 0; i < check->count && count < FILES_COMPARED; i++) {
        size_t known = 0;
        while (known < count && seen[known] != check->chosen[i])
            known++;
        if (check->chosen[i] < 0 || known < count)
            continue;
        for (size_t j = 0; j < count; j++) {
            if (tell_if_different(check, seen[j], check->chosen[i]))
                return;
        }
        seen[count++] = check->chosen[i];
    }
}

static int by_app(const void *one, const void *other)
{
    const struct library_rank *a = one, *b = other;
    int apps = (a->app > b->app) - (a->app < b->app);
    return apps != 0 ? apps : (a->rank > b->rank) - (a->rank < b->rank);
}

/* `sorted` are the ranks by app. */
static void check_kind(struct check *check, const struct library_rank *sorted, size_t count)
{
    for (size_t begin = 0; begin < count; begin += check->count) {
        check->ranks = sorted + begin;
        check->count = 1;
        while (begin + check->count < count &&
               sorted[begin + check->count].app == sorted[begin].app)
            check->count++;
        check_processes(check);
        check_ranks(check);
    }
}

void libraries_differ(const struct library_file *files, const struct library_rank *ranks,
                      size_t count, library_each *each, void *context)
{
    struct library_rank *sorted AUTO_FREE = mem_array(count + 1, sizeof(*sorted));
    int *chosen AUTO_FREE = mem_array(count + 1, sizeof(*chosen));
    int *listed AUTO_FREE = mem_array(count + 1, sizeof(*listed));
    struct check check = {
        .files = files, .each = each, .context = context, .chosen = chosen, .listed = listed};
    for (size_t i = 0; i < count; i++)
        sorted[i] = ranks[i];
    if (count > 1)
        qsort(sorted, count, sizeof(*sorted), by_app);
    for (int kind = 0; kind < LIBRARY_KINDS; kind++) {
        check.kind = (enum library_kind)kind;
        check_kind(&check, sorted, count);
    }
}
