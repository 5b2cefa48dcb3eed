/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "transport/boot/boot.h"
#include "transport/boot/inside_test.h"
#include "transport/boot/script.h"

static void test_own_agent(void **state)
{
    (void)state;
    struct agent_image image;
    struct error err = ERROR_INIT;
    struct utsname name;
    assert_int_equal(agent_image_open(HVDRUN_AGENT_PROGRAM, &image, &err), 0);
    assert_int_equal(uname(&name), 0);
    assert_string_equal(image.facts.machine, name.machine);
    assert_true(image.length > 100000);
    assert_string_equal(image.hash, "");
    agent_image_hash(&image);
    assert_int_equal(strlen(image.hash), 64);
    assert_int_equal(image.facts.glibc_major, 2);
    assert_true(image.facts.glibc_minor >= 17);
    agent_image_close(&image);
    assert_null(image.bytes);
    agent_image_close(&image);
}

static void test_not_an_image(void **state)
{
    (void)state;
    struct agent_image image;
    struct error err = ERROR_INIT;
    assert_int_equal(agent_image_open("/nonexistent/agent", &image, &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent/agent"));
    assert_int_equal(agent_image_open("/etc/passwd", &image, &err), -1);
    assert_non_null(strstr(err.text, "not a program"));
    assert_null(image.bytes);
}

static void test_another_machine(void **state)
{
    (void)state;
    struct image_facts facts;
    struct error err = ERROR_INIT;
    ElfW(Ehdr) header = {.e_ident = {0x7f, 'E', 'L', 'F', sizeof(void *) == 8 ? 2 : 1, 1}};
    header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    header.e_machine = EM_AARCH64;
    assert_int_equal(image_facts_read(&header, sizeof(header), &facts, &err), 0);
    assert_string_equal(facts.machine, "aarch64");
    assert_int_equal(facts.glibc_major, 0);
    header.e_machine = EM_PDP11;
    assert_int_equal(image_facts_read(&header, sizeof(header), &facts, &err), -1);
    header.e_ident[EI_CLASS] = 3;
    assert_int_equal(image_facts_read(&header, sizeof(header), &facts, &err), -1);
    assert_int_equal(image_facts_read(&header, 10, &facts, &err), -1);
}

/* Each byte of the headers changed, and the file cut at many places: never a crash (ASan looks). */
static void test_broken_files(void **state)
{
    (void)state;
    struct buf file = BUF_INIT((size_t)64 << 20);
    struct error err = ERROR_INIT;
    struct image_facts facts;
    assert_int_equal(fd_read_file("/bin/true", &file, &err), 0);
    for (size_t length = 0; length < file.length; length += 97) {
        uint8_t *copy = mem_dup(file.bytes + file.start, length > 0 ? length : 1);
        image_facts_read(copy, length, &facts, &err);
        free(copy);
    }
    uint8_t *copy = mem_dup(file.bytes + file.start, file.length);
    for (size_t i = 0; i < 1024 && i < file.length; i++) {
        for (int flip = 1; flip < 256; flip += 85) {
            copy[i] ^= (uint8_t)flip;
            image_facts_read(copy, file.length, &facts, &err);
            copy[i] ^= (uint8_t)flip;
        }
    }
    unsigned seed = 1;
    for (int round = 0; round < 2000; round++) {
        size_t at = 1024 + (size_t)rand_r(&seed) % (file.length - 1024);
        copy[at] ^= 0xff;
        image_facts_read(copy, file.length, &facts, &err);
    }
    free(copy);
    buf_destroy(&file);
}

/* A program file as far as it is read: tables of segments and of needed versions. */
struct made {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[4];
    ElfW(Dyn) dynamic[4];
    struct {
        ElfW(Verneed) need;
        ElfW(Vernaux) aux[3];
    } files[2];
    char strings[128];
};

#define AT(member) offsetof(struct made, member)
#define ADDRESS 0x400000

static void add_version(struct made *made, int file, int number, const char *text)
{
    size_t used = 1;
    while (made->strings[used] != '\0')
        used += strlen(made->strings + used) + 1;
    memcpy(made->strings + used, text, strlen(text) + 1);
    made->files[file].aux[number].vna_name = (ElfW(Word))used;
}

/* It needs two files, the second of them with the higher versions. */
static struct made make_program(void)
{
    struct made made = {.header = {.e_ident = {0x7f, 'E', 'L', 'F'}, .e_machine = EM_X86_64}};
    made.header.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    made.header.e_ident[EI_DATA] =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    made.header.e_phoff = AT(segments);
    made.header.e_phentsize = sizeof(ElfW(Phdr));
    made.header.e_phnum = 3;
    made.segments[0] = (ElfW(Phdr)){
        .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof(made), .p_memsz = sizeof(made)};
    made.segments[1] = (ElfW(Phdr)){.p_type = PT_NOTE};
    made.segments[2] = (ElfW(Phdr)){
        .p_type = PT_DYNAMIC, .p_offset = AT(dynamic), .p_filesz = 3 * sizeof(ElfW(Dyn))};
    made.dynamic[0] = (ElfW(Dyn)){.d_tag = DT_STRTAB, .d_un.d_val = ADDRESS + AT(strings)};
    made.dynamic[1] = (ElfW(Dyn)){.d_tag = DT_VERNEED, .d_un.d_val = ADDRESS + AT(files)};
    made.dynamic[2] = (ElfW(Dyn)){.d_tag = DT_STRSZ, .d_un.d_val = sizeof(made.strings)};
    for (int file = 0; file < 2; file++) {
        made.files[file].need =
            (ElfW(Verneed)){.vn_cnt = 3, .vn_aux = sizeof(ElfW(Verneed)), .vn_next = 0};
        for (int i = 0; i < 2; i++)
            made.files[file].aux[i].vna_next = sizeof(ElfW(Vernaux));
    }
    made.files[0].need.vn_next = sizeof(made.files[0]);
    add_version(&made, 0, 0, "GLIBC_2.17");
    add_version(&made, 0, 1, "GCC_9.9");
    add_version(&made, 0, 2, "GLIBC_2.4");
    add_version(&made, 1, 0, "GLIBC_2.3.4");
    add_version(&made, 1, 1, "GLIBC_PRIVATE");
    add_version(&made, 1, 2, "GLIBC_2.34");
    return made;
}

static void expect_glibc(const struct made *made, int major, int minor)
{
    struct image_facts facts;
    struct error err = ERROR_INIT;
    assert_int_equal(image_facts_read(made, sizeof(*made), &facts, &err), 0);
    assert_string_equal(facts.machine, "x86_64");
    assert_int_equal(facts.glibc_major, major);
    assert_int_equal(facts.glibc_minor, minor);
}

static void test_needed_versions(void **state)
{
    (void)state;
    struct made made = make_program();
    expect_glibc(&made, 2, 34);
    made.files[0].need.vn_next = 0; /* the first file alone */
    expect_glibc(&made, 2, 17);
    made.files[0].need.vn_cnt = 0;
    expect_glibc(&made, 0, 0);
}

/* What is behind the end of a table is none of it. */
static void test_ends_of_tables(void **state)
{
    (void)state;
    struct made made = make_program();
    made.header.e_phnum = 2;
    expect_glibc(&made, 0, 0);
    made = make_program();
    made.segments[2].p_filesz = sizeof(ElfW(Dyn)); /* the strings, but not the versions */
    expect_glibc(&made, 0, 0);
    made = make_program();
    made.segments[0].p_filesz = AT(files); /* what the file does not have at these addresses */
    expect_glibc(&made, 0, 0);
}

static void test_machines(void **state)
{
    static const struct {
        unsigned number;
        const char *name;
    } machines[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_S390, "s390x"},
                    {EM_RISCV, "riscv64"}, {EM_386, "i686"},        {EM_ARM, "armv7l"},
                    {258, "loongarch64"}};
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct made made = make_program();
        struct image_facts facts;
        struct error err = ERROR_INIT;
        made.header.e_machine = (ElfW(Half))machines[i].number;
        assert_int_equal(image_facts_read(&made, sizeof(made), &facts, &err), 0);
        assert_string_equal(facts.machine, machines[i].name);
    }
}

/* "" when it can run there. */
static const char *check(const char *said, struct error *err)
{
    struct agent_image image = {.facts = {"x86_64", 2, 34}};
    struct boot_host host;
    *err = (struct error)ERROR_INIT;
    boot_host_parse(said, &host);
    int result = boot_host_check(&host, &image, err);
    assert_int_equal(result, err->text[0] == '\0' ? 0 : -1);
    return err->text;
}

static void test_hosts(void **state)
{
    (void)state;
    struct error err;
    assert_string_equal(check("Linux x86_64 glibc 2.36", &err), "");
    assert_string_equal(check("Linux x86_64 glibc 2.34", &err), "");
    assert_string_equal(check("Linux x86_64 glibc 3.0", &err), "");
    assert_string_equal(check("Linux x86_64 ldd (Ubuntu GLIBC 2.35-0ubuntu3) 2.35", &err), "");
    assert_string_equal(check("Linux x86_64 ", &err), ""); /* not known: tried */
    assert_string_equal(check("Linux x86_64 ldd: not found", &err), "");
    assert_non_null(strstr(check("Linux x86_64 glibc 2.9", &err), "2.9"));
    assert_non_null(strstr(check("Linux x86_64 ldd (GNU libc) 2.28", &err), "2.28"));
    assert_non_null(strstr(check("Linux x86_64 musl", &err), "musl"));
    assert_non_null(strstr(check("Linux aarch64 glibc 2.36", &err),
                           "x86_64 agent cannot run on this aarch64 host"));
    assert_non_null(strstr(check("Darwin arm64 ", &err), "Darwin"));
    assert_non_null(strstr(check("", &err), "Linux only"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_agent),       cmocka_unit_test(test_not_an_image),
        cmocka_unit_test(test_another_machine), cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_needed_versions), cmocka_unit_test(test_ends_of_tables),
        cmocka_unit_test(test_machines),        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
