/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_look.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "io/child.h"

#define WITHOUT_LIBUV "LibUV TCPStore implementation missing"
#define LINE_MAX_BYTES 256
#define SECTIONS_MAX 4096
#define VERSION_MAX ((size_t)64 << 10)
#define PIECE ((size_t)1 << 20) /* of the library that is read at once */

bool torch_look_version(const char *text, int *major, int *minor)
{
    static const char name[] = "__version__";
    const char *at = strstr(text, name);
    while (at != NULL && at != text && at[-1] != '\n')
        at = strstr(at + 1, name);
    at = at == NULL ? NULL : at + strcspn(at, "'\"\n");
    if (at == NULL || *at == '\0' || *at == '\n')
        return false;
    char *end = NULL;
    long first = strtol(++at, &end, 10);
    if (end == at || *end != '.' || first < 0 || first > INT_MAX)
        return false;
    at = end + 1;
    long second = strtol(at, &end, 10);
    *major = (int)first;
    *minor = (int)second;
    return end != at && second >= 0 && second <= INT_MAX;
}

/* The library */

/* Reads, since a mapped file that another process cuts off would end this one. */
static int read_at(int fd, void *out, size_t length, uint64_t offset)
{
    if (offset > INT64_MAX - length)
        return -1;
    return fd_pread(fd, out, length, (off_t)offset) == (ssize_t)length ? 0 : -1;
}

static int find_rodata(int fd, Elf64_Shdr *out)
{
    static const char wanted[] = ".rodata";
    Elf64_Ehdr header;
    Elf64_Shdr names;
    if (read_at(fd, &header, sizeof(header), 0) < 0 ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shnum > SECTIONS_MAX || header.e_shentsize != sizeof(*out) ||
        header.e_shstrndx >= header.e_shnum || header.e_shoff > INT64_MAX / 2 ||
        read_at(fd, &names, sizeof(names), header.e_shoff + header.e_shstrndx * sizeof(names)) < 0)
        return -1;
    for (int i = 0; i < header.e_shnum; i++) {
        char name[sizeof(wanted)];
        if (read_at(fd, out, sizeof(*out), header.e_shoff + (uint64_t)i * sizeof(*out)) < 0)
            return -1;
        if (names.sh_offset <= INT64_MAX / 2 &&
            read_at(fd, name, sizeof(name), names.sh_offset + out->sh_name) == 0 &&
            memcmp(name, wanted, sizeof(wanted)) == 0)
            return 0;
    }
    return -1;
}

int torch_look_rodata(const char *path, const char *text)
{
    Elf64_Shdr section;
    int fd AUTO_FD = fd_open_regular(path), found = 0;
    size_t wanted = strlen(text), kept = 0;
    if (fd < 0 || find_rodata(fd, &section) < 0 || section.sh_offset > INT64_MAX / 2 ||
        section.sh_size > INT64_MAX / 2)
        return -1;
    uint8_t *piece = mem_alloc(PIECE + wanted);
    for (uint64_t at = 0; at < section.sh_size && found == 0;) {
        size_t length = section.sh_size - at < PIECE ? (size_t)(section.sh_size - at) : PIECE;
        if (read_at(fd, piece + kept, length, section.sh_offset + at) < 0) {
            found = -1;
            break;
        }
        at += length;
        length += kept;
        found = memmem(piece, length, text, wanted) != NULL;
        kept = length < wanted ? length : wanted - 1; /* it may lie across two pieces */
        memmove(piece, piece + length - kept, kept);
    }
    free(piece);
    return found;
}

/* The interpreter */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_python(const char *path)
{
    return strncmp(base_of(path), "python", strlen("python")) == 0 ||
           strncmp(base_of(path), "pypy", strlen("pypy")) == 0;
}

static struct strv words_of(const char *line)
{
    static const char blanks[] = " \t\r\n";
    struct strv words = STRV_INIT;
    for (line += strspn(line, blanks); *line != '\0'; line += strspn(line, blanks)) {
        size_t length = strcspn(line, blanks);
        strv_add_n(&words, line, length);
        line += length;
    }
    return words;
}

/* Of a script with "#!/usr/bin/python3" or "#!/usr/bin/env python3", the caller's; NULL: no Python.
 */
static char *interpreter_of(const struct torch_place *place)
{
    char line[LINE_MAX_BYTES];
    if (is_python(place->path))
        return mem_strdup(place->path);
    int fd AUTO_FD = fd_open_regular(place->path);
    ssize_t got = fd < 0 ? -1 : fd_read(fd, line, sizeof(line) - 1);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return NULL;
    AUTO_STRV struct strv words = words_of(line + 2);
    size_t word = words.count > 1 && strcmp(base_of(words.items[0]), "env") == 0 ? 1 : 0;
    if (word >= words.count || !is_python(words.items[word]))
        return NULL;
    return child_find(words.items[word], place->search, NULL, NULL);
}

/* PyTorch */

static void add_matches(const char *pattern, struct strv *out)
{
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        strv_add(out, found.gl_pathv[i]);
    globfree(&found);
}

static void add_folder(const char *format, const char *prefix, struct strv *out)
{
    char *pattern AUTO_FREE = NULL;
    const char *hole = strchr(format, '%');
    pattern =
        mem_printf("%.*s%s%s/torch/version.py", (int)(hole - format), format, prefix, hole + 1);
    add_matches(pattern, out);
}

static void add_prefix(const char *prefix, struct strv *out)
{
    add_folder("%/lib/python3.*/site-packages", prefix, out);
    add_folder("%/lib64/python3.*/site-packages", prefix, out);
    add_folder("%/lib/python3.*/dist-packages", prefix, out);
    add_folder("%/lib/python3/dist-packages", prefix, out);
}

static void add_python_path(const char *text, struct strv *out)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ":");
        char *folder AUTO_FREE = mem_strndup(text, length);
        if (length > 0)
            add_folder("%", folder, out);
        text += length + (text[length] == ':');
    }
}

/* "/opt/venv" of "/opt/venv/bin/python3". The caller's. */
static char *prefix_of(const char *interpreter)
{
    const char *end = strrchr(interpreter, '/');
    while (end != NULL && end > interpreter && end[-1] != '/')
        end--;
    size_t length = end == NULL || end == interpreter ? 0 : (size_t)(end - 1 - interpreter);
    return mem_strndup(interpreter, length);
}

/* A virtual environment hides the packages of the system, unless it says otherwise. */
static bool hides_system(const char *prefix)
{
    struct buf text AUTO_BUF = BUF_INIT(VERSION_MAX);
    char *path AUTO_FREE = mem_printf("%s/pyvenv.cfg", prefix);
    return fd_read_file(path, &text, NULL) == 0 &&
           strstr(buf_text(&text), "include-system-site-packages = true") == NULL;
}

static void find_all(const struct torch_place *place, const char *interpreter, struct strv *out)
{
    char *prefix AUTO_FREE = prefix_of(interpreter), *real AUTO_FREE = realpath(interpreter, NULL);
    add_python_path(place->python_path, out);
    add_prefix(prefix, out);
    if (hides_system(prefix))
        return;
    if (place->home != NULL)
        add_folder("%/.local/lib/python3.*/site-packages", place->home, out);
    if (real != NULL) {
        char *system AUTO_FREE = prefix_of(real);
        char *local AUTO_FREE = mem_printf("%s/local", system);
        if (strcmp(system, prefix) != 0)
            add_prefix(system, out);
        add_prefix(local, out);
    }
}

/* -1: `err` says why this one cannot. */
static int check(const char *version_file, struct error *err)
{
    struct buf text AUTO_BUF = BUF_INIT(VERSION_MAX);
    int major, minor;
    if (fd_read_file(version_file, &text, err) < 0)
        return -1;
    if (!torch_look_version(buf_text(&text), &major, &minor))
        return error_set(err, "%s has no version", version_file);
    if (major < 1 || (major == 1 && minor < 9))
        return error_set(err, "PyTorch %d.%d is too old", major, minor);
    if (major == 1 || (major == 2 && minor < 4))
        return 0;
    size_t folder = strlen(version_file) - strlen("version.py");
    char *library AUTO_FREE = mem_printf("%.*slib/libtorch_cpu.so", (int)folder, version_file);
    int without = torch_look_rodata(library, WITHOUT_LIBUV);
    if (without < 0)
        return error_set(err, "%s cannot be read", library);
    if (without > 0)
        return error_set(err, "PyTorch %d.%d was built without libuv", major, minor);
    return 0;
}

int torch_look(const struct torch_place *place, struct error *err)
{
    AUTO_STRV struct strv found = STRV_INIT;
    char *interpreter AUTO_FREE = interpreter_of(place);
    if (interpreter == NULL)
        return error_set(err, "%s is not Python", place->path);
    find_all(place, interpreter, &found);
    if (found.count == 0)
        return error_set(err, "%s has no PyTorch in the usual places", interpreter);
    for (size_t i = 0; i < found.count; i++) {
        if (check(found.items[i], err) < 0)
            return -1;
    }
    return 0;
}
