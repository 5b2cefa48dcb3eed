/* SPDX-License-Identifier: Apache-2.0 */
/* This program has the names of an interpreter, and looks for them in itself. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "stacks/runtime.h"
#include "stacks/runtime_test.h"

extern char _PyRuntime[64];
extern const uint32_t Py_Version;
char _PyRuntime[64];
const uint32_t Py_Version = 0x030b02f0;

struct bytes {
    const char *at;
    size_t length;
};

static size_t read_bytes(void *context, uint64_t offset, void *out, size_t length)
{
    const struct bytes *bytes = context;
    if (offset >= bytes->length)
        return 0;
    size_t left = bytes->length - (size_t)offset, got = length < left ? length : left;
    memcpy(out, bytes->at + offset, got);
    return got;
}

static int read_from(const char *at, size_t length, struct symbols *out)
{
    struct bytes bytes = {at, length};
    return symbols_read(&(struct elf_source){.read = read_bytes, .context = &bytes}, out);
}

static void test_this_program(void **state)
{
    (void)state;
    struct buf file AUTO_BUF = BUF_INIT(64 << 20), maps AUTO_BUF = BUF_INIT(1 << 20);
    char program[4096] = "";
    struct symbols symbols;
    struct mapped_files files;
    uint64_t bias = 0;
    assert_int_equal(fd_read_file("/proc/self/exe", &file, NULL), 0);
    assert_int_equal(fd_read_file("/proc/self/maps", &maps, NULL), 0);
    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    assert_int_equal(read_from(buf_text(&file), file.length, &symbols), 0);
    mapped_files_read(buf_text(&maps), program, &files);
    assert_true(files.count > 0);
    assert_int_equal(symbols_bias(&symbols, files.items[0].offset, files.items[0].start, &bias), 0);
    assert_ptr_equal((void *)(uintptr_t)(symbols.runtime + bias), _PyRuntime);
    assert_ptr_equal((void *)(uintptr_t)(symbols.version + bias), &Py_Version);
    assert_int_equal(symbols_bias(&symbols, UINT64_MAX, 0, &bias), -1);
    mapped_files_destroy(&files);
}

/* Cut anywhere, or with a header that lies: no more than that nothing is found. */
static void test_broken_files(void **state)
{
    (void)state;
    struct buf file AUTO_BUF = BUF_INIT(64 << 20);
    struct symbols symbols;
    assert_int_equal(fd_read_file("/proc/self/exe", &file, NULL), 0);
    char *bytes = file.bytes + file.start;
    for (size_t length = 0; length < 4096; length += 7)
        (void)read_from(bytes, length, &symbols);
    assert_int_equal(read_from(bytes, 60, &symbols), -1);
    for (size_t i = 0; i < 64; i++) {
        char kept = bytes[i];
        bytes[i] = (char)0xff;
        (void)read_from(bytes, file.length, &symbols);
        bytes[i] = kept;
    }
}

/* A file whose tables of symbols all are at one place, as large as a table may be. */
struct greedy {
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    size_t read;
};

#define GREEDY_SECTIONS 1000
#define GREEDY_SIZE ((size_t)16 << 20)

static size_t read_greedy(void *context, uint64_t offset, void *out, size_t length)
{
    struct greedy *greedy = context;
    const size_t size = GREEDY_SECTIONS * sizeof(Elf64_Shdr);
    memset(out, 0, length);
    if (offset == 0)
        memcpy(out, &greedy->header,
               length < sizeof(greedy->header) ? length : sizeof(greedy->header));
    else if (offset == greedy->header.e_shoff)
        memcpy(out, greedy->sections, length < size ? length : size);
    greedy->read += length;
    return length;
}

static void test_a_file_without_an_end(void **state)
{
    (void)state;
    struct greedy greedy = {.sections = mem_array(GREEDY_SECTIONS, sizeof(Elf64_Shdr))};
    struct symbols symbols;
    memcpy(greedy.header.e_ident, ELFMAG, SELFMAG);
    greedy.header.e_ident[EI_CLASS] = ELFCLASS64;
    greedy.header.e_ident[EI_DATA] = ELFDATA2LSB;
    greedy.header.e_phentsize = sizeof(Elf64_Phdr);
    greedy.header.e_shentsize = sizeof(Elf64_Shdr);
    greedy.header.e_shnum = GREEDY_SECTIONS;
    greedy.header.e_shoff = 64;
    for (size_t i = 0; i < GREEDY_SECTIONS; i++)
        greedy.sections[i] =
            (Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_offset = 1 << 20, .sh_size = GREEDY_SIZE};
    assert_int_equal(
        symbols_read(&(struct elf_source){.read = read_greedy, .context = &greedy}, &symbols), 0);
    assert_int_equal(symbols.runtime, 0);
    assert_in_range(greedy.read, GREEDY_SIZE, (size_t)65 << 20);
    free(greedy.sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_program),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_a_file_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
