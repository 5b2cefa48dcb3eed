/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of tiny ELF files, which hold no code and only need libraries. */
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"

struct fixture {
    char folder[64];
    struct strv files;
};

static inline int set_up(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof(*fixture));
    memcpy(fixture->folder, "/tmp/hvdrun-test-XXXXXX", 24);
    assert_non_null(mkdtemp(fixture->folder));
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < fixture->files.count; i++)
        unlink(fixture->files.items[i]);
    strv_destroy(&fixture->files);
    rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static inline const char *write_file(struct fixture *fixture, const char *name, const void *bytes,
                                     size_t length)
{
    strv_printf(&fixture->files, "%s/%s", fixture->folder, name);
    const char *path = fixture->files.items[fixture->files.count - 1];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
    close(fd);
    return path;
}

/* A file for this machine that needs `needed` (NULL-ended) and searches `runpath`. */
static inline const char *write_elf(struct fixture *fixture, const char *name, uint16_t machine,
                                    const char *runpath, const char *const *needed)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segments[2];
        Elf64_Dyn dynamic[16];
        char strings[512];
    } file = {0};
    size_t used = 1, entries = 0;
    memcpy(file.header.e_ident, ELFMAG, SELFMAG);
    file.header.e_ident[EI_CLASS] = ELFCLASS64;
    file.header.e_ident[EI_DATA] = ELFDATA2LSB;
    file.header.e_type = ET_DYN;
    file.header.e_machine = machine;
    file.header.e_phoff = sizeof(file.header);
    file.header.e_phentsize = sizeof(Elf64_Phdr);
    file.header.e_phnum = 2;
    file.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = sizeof(file)};
    file.segments[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                    .p_offset = (Elf64_Off)((char *)file.dynamic - (char *)&file),
                                    .p_filesz = sizeof(file.dynamic)};
    for (size_t i = 0; needed[i] != NULL; i++) {
        file.dynamic[entries++] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = used};
        memcpy(file.strings + used, needed[i], strlen(needed[i]));
        used += strlen(needed[i]) + 1;
    }
    if (runpath != NULL) {
        file.dynamic[entries++] = (Elf64_Dyn){.d_tag = DT_RUNPATH, .d_un.d_val = used};
        memcpy(file.strings + used, runpath, strlen(runpath));
        used += strlen(runpath) + 1;
    }
    file.dynamic[entries++] =
        (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_val = (size_t)(file.strings - (char *)&file)};
    file.dynamic[entries++] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = used};
    return write_file(fixture, name, &file, sizeof(file));
}

#define NEEDS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
