/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/agent_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/elf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "transport/boot/inside_test.h"

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258 /* the elf.h of an older glibc does not know it */
#endif

/*
 * What an executable needs of the machine that runs it, read from its ELF headers. Pure: bytes in,
 * facts out. Broken headers are an error, or a fact is missing; nothing worse happens.
 */

/* "GLIBC_2.34"; other versions are not for us. */
static void consider(const char *version, struct image_facts *out)
{
    static const char prefix[] = "GLIBC_";
    if (strncmp(version, prefix, strlen(prefix)) != 0)
        return;
    char *end = NULL;
    long major = strtol(version + strlen(prefix), &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    if (major < 0 || minor < 0 || major > 1000 || minor > 1000)
        return; /* GLIBC_PRIVATE */
    if (major > out->glibc_major || (major == out->glibc_major && minor > out->glibc_minor)) {
        out->glibc_major = (int)major;
        out->glibc_minor = (int)minor;
    }
}

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_AARCH64: return "aarch64";
    case EM_PPC64: return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "ppc64le" : "ppc64";
    case EM_S390: return "s390x";
    case EM_RISCV: return "riscv64";
    case EM_LOONGARCH: return "loongarch64";
    case EM_386: return "i686";
    case EM_ARM: return "armv7l";
    default: return NULL;
    }
}

static int read_facts(const struct elf_info *info, struct image_facts *out, struct error *err)
{
    if (info->wide != (sizeof(void *) == 8) ||
        info->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        return error_set(err, "it is a program for another kind of machine");
    *out = (struct image_facts){.machine = machine_name(info->machine)};
    if (out->machine == NULL)
        return error_set(err, "it is a program for an unknown machine (ELF number %u)",
                         (unsigned)info->machine);
    for (size_t i = 0; i < info->versions.count; i++)
        consider(info->versions.items[i], out);
    return 0;
}

int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err)
{
    struct elf_info info;
    if (elf_parse(bytes, length, &info) < 0)
        return error_set(err, "it is not a program file");
    int result = read_facts(&info, out, err);
    elf_info_destroy(&info);
    return result;
}

/* The image. */

int agent_image_open(const char *path, struct agent_image *image, struct error *err)
{
    *image = (struct agent_image){.bytes = NULL};
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC, 0);
    struct stat info = {.st_size = 0};
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_errno(
            err, errno,
            "cannot open %s, the part of hvdrun that runs on other hosts: reinstall hvdrun", path);
    size_t length = (size_t)info.st_size;
    void *bytes = length > 0 ? mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return error_set(err, "cannot read %s: reinstall hvdrun", path);
    image->bytes = bytes;
    image->length = length;
    if (image_facts_read(bytes, length, &image->facts, err) == 0)
        return 0;
    agent_image_close(image);
    return error_wrap(err, "cannot send %s to hosts", path);
}

void agent_image_hash(struct agent_image *image)
{
    if (image->hash[0] != '\0')
        return;
    sha256_text(image->bytes, image->length, image->hash);
}

void agent_image_close(struct agent_image *image)
{
    if (image->bytes != NULL)
        munmap((void *)(uintptr_t)image->bytes, image->length);
    *image = (struct agent_image){.bytes = NULL};
}
