/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_look.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"

#define WITHOUT_LIBUV "LibUV TCPStore implementation missing"
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

/* PyTorch */

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

int torch_look(const struct python_place *place, struct error *err)
{
    AUTO_STRV struct strv found = STRV_INIT;
    bool script = false;
    char *interpreter AUTO_FREE = python_interpreter(place, &script);
    if (interpreter == NULL)
        return error_set(err, "%s is not Python", place->path);
    python_files(place, interpreter, "torch/version.py", &found);
    if (found.count == 0)
        return error_set(err, "%s has no PyTorch in the usual places", interpreter);
    for (size_t i = 0; i < found.count; i++) {
        if (check(found.items[i], err) < 0)
            return -1;
    }
    return 0;
}
