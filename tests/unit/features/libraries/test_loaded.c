/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries in the text of maps, and which ones they are. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "features/libraries/libraries.h"

#define ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

static void test_names(void **state)
{
    static const struct {
        const char *name;
        enum library_kind kind;
    } cases[] = {
        {"libnccl.so.2", LIBRARY_NCCL},
        {"libnccl-net.so", LIBRARY_KINDS},
        {"libnccl.so", LIBRARY_NCCL},
        {"libnccl.sox", LIBRARY_KINDS},
        {"libncclx.so.1", LIBRARY_KINDS},
        {"libcuda.so.580.159.04", LIBRARY_CUDA},
        {"libcudart.so.12", LIBRARY_CUDART},
        {"libcudart-d0da41ae.so.11.0", LIBRARY_CUDART},
        {"libcudadebugger.so.1", LIBRARY_KINDS},
        {"libmpi.so.40.30.4", LIBRARY_MPI},
        {"libmpich.so.12.2.2", LIBRARY_MPI},
        {"libmpi_abi.so.0", LIBRARY_MPI},
        {"libmpi_gnu_123.so.12", LIBRARY_MPI},
        {"libmpi_cray.so.12", LIBRARY_MPI},
        {"libmpi_cxx.so.40", LIBRARY_KINDS},
        {"libmpi_mpifh.so.40", LIBRARY_KINDS},
        {"libmpicxx.so.12", LIBRARY_KINDS},
        {"libtorch_cpu.so", LIBRARY_TORCH},
        {"libtorch_cuda.so", LIBRARY_TORCH_CUDA},
        {"libtorch_cuda_linalg.so", LIBRARY_KINDS},
        {"libtorch.so", LIBRARY_KINDS}, /* it only needs the others */
        {"libhvd.so.0.1.0", LIBRARY_HVD},
        {"libmpi", LIBRARY_KINDS},
        {"", LIBRARY_KINDS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (library_kind_of(cases[i].name) != cases[i].kind)
            fail_msg("%s", cases[i].name);
    }
    assert_string_equal(library_version("/a.so.1/libmpi.so.40.30.4"), "40.30.4");
    assert_string_equal(library_version("/a.so.1/libtorch_cpu.so"), "");
    assert_true(library_is_stub("/usr/local/cuda/lib64/stubs/libcuda.so"));
    assert_false(library_is_stub("/usr/lib/libcuda.so.1"));
}

#define MAPS                                                                          \
    "00400000-00401000 r-xp 00000000 08:01 11         /usr/bin/python3.11\n"          \
    "7f0000000000-7f0000010000 r--p 00000000 103:02 4711 /z/libmpi.so.40.30.4\n"      \
    "7f0000010000-7f0000020000 r-xp 00010000 103:02 4711 /z/libmpi.so.40.30.4\n"      \
    "7f0000020000-7f0000021000 rw-p 00020000 103:02 4711 /z/libmpi.so.40.30.4\n"      \
    "7f0000021000-7f0000022000 rw-p 00000000 00:00 0 \n"                              \
    "7f0000030000-7f0000040000 r--p 00000000 00:2e 9  /a b/libnccl.so.2 (deleted)\n"  \
    "7f0000050000-7f0000060000 r--p 00000000 00:2e 10 /a b/libnccl.so.2\n"            \
    "7f0000070000-7f0000080000 r--s 00000000 00:01 12 /memfd:libmpi.so.1 (deleted)\n" \
    "7fff00000000-7fff00001000 r-xp 00000000 00:00 0  [vdso]\n"

static void free_paths(struct loaded_library *libraries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(libraries[i].path);
}

static void test_maps(void **state)
{
    struct loaded_library found[LOADED_MAX];
    uint64_t address = 0;
    (void)state;
    assert_int_equal(loaded_read(MAPS, found), 3);
    assert_string_equal(found[0].path, "/a b/libnccl.so.2");
    assert_string_equal(found[1].path, "/a b/libnccl.so.2");
    assert_true(found[0].deleted != found[1].deleted); /* two files */
    assert_string_equal(found[2].path, "/z/libmpi.so.40.30.4");
    assert_int_equal(found[2].kind, LIBRARY_MPI);
    assert_int_equal(found[2].inode, 4711);
    assert_false(found[2].deleted);
    assert_int_equal(found[2].mapping_count, 2);
    assert_int_equal(loaded_at(&found[2], 0x1fff0, &address), 0x10);
    assert_int_equal(address, 0x7f000001fff0);
    assert_int_equal(loaded_at(&found[2], 0x20000, &address), 0); /* it may have been written to */
    assert_int_equal(loaded_at(&found[2], UINT64_MAX, &address), 0);
    free_paths(found, 3);
}

static void test_many_and_rubbish(void **state)
{
    struct loaded_library found[LOADED_MAX];
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    (void)state;
    for (int i = 0; i < 3 * LOADED_MAX; i++)
        buf_printf(&text, "%x000-%x000 r--p 00000000 08:01 %d /%d/libmpi.so\n", i + 1, i + 2, i, i);
    assert_int_equal(loaded_read(buf_text(&text), found), LOADED_MAX);
    free_paths(found, LOADED_MAX);
    static const char *const rubbish[] = {"",
                                          "\n\n",
                                          "/libmpi.so",
                                          "-/libmpi.so",
                                          "1-2 /libmpi.so",
                                          "1-2 r--p/libmpi.so",
                                          "2-1 r--p 0 08:01 1 /libmpi.so\n",
                                          "1-1 r--p 0 08:01 1 /libmpi.so\n",
                                          "1-2 r--p 0 08:01 1 /libmpi.so/",
                                          "x-y r--p 0 08:01 1 /libmpi.so"};
    for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++)
        assert_int_equal(loaded_read(rubbish[i], found), 0);
    for (size_t length = 0; length <= strlen(MAPS); length++) {
        char *cut AUTO_FREE = mem_strndup(MAPS, length);
        free_paths(found, loaded_read(cut, found));
    }
}

/* The memory of a process: bytes from an address on. */
struct image {
    const unsigned char *bytes;
    size_t length;
    uint64_t at;
};

static size_t read_image(void *context, uint64_t address, void *out, size_t length)
{
    const struct image *image = context;
    if (address < image->at || address - image->at >= image->length)
        return 0;
    size_t left = image->length - (size_t)(address - image->at);
    length = length < left ? length : left;
    memcpy(out, image->bytes + (address - image->at), length);
    return length;
}

static char *identity(const unsigned char *bytes, size_t length, uint64_t mapped)
{
    struct image image = {bytes, length, 0x10000};
    const struct elf_source memory = {.read = read_image, .context = &image};
    struct loaded_library library = {.mappings = {{0x10000, 0x10000 + mapped, 0}},
                                     .mapping_count = 1};
    uint32_t machine = 0;
    char *id = loaded_identity(&library, &memory, &machine);
    assert_true(id[0] == '\0' || machine != 0);
    return id;
}

/* Two notes: one of somebody else, and a build id, which begins at NOTE + 24. */
#define NOTE 120
static void make_file(unsigned char *bytes, size_t length)
{
    const Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ORDER, EV_CURRENT},
                               .e_type = ET_DYN,
                               .e_machine = EM_X86_64,
                               .e_version = EV_CURRENT,
                               .e_phoff = sizeof(header),
                               .e_ehsize = sizeof(header),
                               .e_phentsize = sizeof(Elf64_Phdr),
                               .e_phnum = 1};
    const Elf64_Phdr notes = {
        .p_type = PT_NOTE, .p_offset = NOTE, .p_filesz = 40, .p_memsz = 40, .p_align = 4};
    const Elf64_Nhdr other = {4, 4, 1}, id = {4, 4, NT_GNU_BUILD_ID};
    memset(bytes, 0, length);
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), &notes, sizeof(notes));
    memcpy(bytes + NOTE, &other, sizeof(other));
    memcpy(bytes + NOTE + sizeof(other), "Xen", 4);
    memcpy(bytes + NOTE + 20, &id, sizeof(id));
    memcpy(bytes + NOTE + 32, "GNU\0\x12\x34\xab\xcd", 8);
}

/* With less and less of it in memory, and with every byte changed. */
static void test_identity(void **state)
{
    unsigned char bytes[4096];
    (void)state;
    make_file(bytes, sizeof(bytes));
    for (size_t length = 0; length < sizeof(bytes); length += length < 200 ? 1 : 8) {
        unsigned char *cut AUTO_FREE = mem_dup(bytes, length + 1);
        char *id AUTO_FREE = identity(cut, length, sizeof(bytes));
        assert_string_equal(id, length < NOTE + 40 ? "" : "1234abcd"); /* never another one */
    }
    for (size_t i = 0; i < 200; i++) {
        bytes[i] ^= 0xff;
        free(identity(bytes, sizeof(bytes), sizeof(bytes)));
        bytes[i] ^= 0xff;
    }
    memset(bytes + NOTE + 28, 0, 4); /* no build id */
    char *none AUTO_FREE = identity(bytes, sizeof(bytes), sizeof(bytes));
    assert_string_equal(none, "");
    char *text AUTO_FREE = identity((const unsigned char *)"#!/bin/sh\n", 10, 4096);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_many_and_rubbish),
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
