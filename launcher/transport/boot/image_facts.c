/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/image_facts.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define NEEDS_MAX 4096 /* version entries that are looked at */

struct image {
    const uint8_t *bytes;
    size_t length;
    const ElfW(Ehdr) * header;
};

/* `size` bytes at `offset`, or NULL when the file does not have them. */
static const void *part(const struct image *image, uint64_t offset, uint64_t size, size_t align)
{
    if (offset > image->length || size > image->length - offset)
        return NULL;
    const uint8_t *at = image->bytes + offset;
    return (uintptr_t)at % align == 0 ? at : NULL;
}

static const ElfW(Phdr) * segment(const struct image *image, size_t index)
{
    uint64_t offset = image->header->e_phoff + index * sizeof(ElfW(Phdr));
    return index < image->header->e_phnum && image->header->e_phoff < image->length
               ? part(image, offset, sizeof(ElfW(Phdr)), _Alignof(ElfW(Phdr)))
               : NULL;
}

/* Where in the file that lies which the program sees at `address`; UINT64_MAX: nowhere. */
static uint64_t offset_of(const struct image *image, uint64_t address)
{
    for (size_t i = 0; segment(image, i) != NULL; i++) {
        const ElfW(Phdr) *p = segment(image, i);
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return UINT64_MAX;
}

static uint64_t dynamic_value(const struct image *image, int64_t tag)
{
    for (size_t i = 0; segment(image, i) != NULL; i++) {
        const ElfW(Phdr) *p = segment(image, i);
        if (p->p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entries = part(image, p->p_offset, p->p_filesz, _Alignof(ElfW(Dyn)));
        size_t count = entries == NULL ? 0 : (size_t)p->p_filesz / sizeof(*entries);
        for (size_t k = 0; k < count && entries[k].d_tag != DT_NULL; k++) {
            if (entries[k].d_tag == tag)
                return entries[k].d_un.d_val;
        }
    }
    return 0;
}

/* "GLIBC_2.34" in the string table; other names are not for us. */
static void consider(const struct image *image, uint64_t name, struct image_facts *out)
{
    static const char prefix[] = "GLIBC_";
    const char *text = part(image, name, sizeof(prefix), 1);
    if (text == NULL || memchr(text, '\0', image->length - name) == NULL ||
        strncmp(text, prefix, strlen(prefix)) != 0)
        return;
    char *end = NULL;
    long major = strtol(text + strlen(prefix), &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    if (major < 0 || minor < 0 || major > 1000 || minor > 1000)
        return; /* GLIBC_PRIVATE */
    if (major > out->glibc_major || (major == out->glibc_major && minor > out->glibc_minor)) {
        out->glibc_major = (int)major;
        out->glibc_minor = (int)minor;
    }
}

static void read_versions(const struct image *image, struct image_facts *out)
{
    uint64_t need_at = offset_of(image, dynamic_value(image, DT_VERNEED));
    uint64_t strings = offset_of(image, dynamic_value(image, DT_STRTAB));
    int left = NEEDS_MAX;
    bool more = need_at != UINT64_MAX && strings != UINT64_MAX;
    while (more && left-- > 0) {
        const ElfW(Verneed) *need = part(image, need_at, sizeof(*need), _Alignof(ElfW(Verneed)));
        if (need == NULL)
            return;
        uint64_t aux_at = need_at + need->vn_aux;
        for (int i = 0; i < need->vn_cnt && left-- > 0; i++) {
            const ElfW(Vernaux) *aux = part(image, aux_at, sizeof(*aux), _Alignof(ElfW(Vernaux)));
            if (aux == NULL)
                return;
            consider(image, strings + aux->vna_name, out);
            aux_at += aux->vna_next;
        }
        more = need->vn_next != 0;
        need_at += need->vn_next;
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

int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err)
{
    struct image image = {.bytes = bytes, .length = length};
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    image.header = part(&image, 0, sizeof(*image.header), _Alignof(ElfW(Ehdr)));
    if (image.header == NULL || memcmp(image.header->e_ident, ELFMAG, SELFMAG) != 0)
        return error_set(err, "it is not a program file");
    if (image.header->e_ident[EI_CLASS] != class || image.header->e_ident[EI_DATA] != order)
        return error_set(err, "it is a program for another kind of machine");
    *out = (struct image_facts){.machine = machine_name(image.header->e_machine)};
    if (out->machine == NULL)
        return error_set(err, "it is a program for an unknown machine (ELF number %u)",
                         (unsigned)image.header->e_machine);
    read_versions(&image, out);
    return 0;
}
