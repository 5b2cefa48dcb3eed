/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/elf.h"
#include "base/fd.h"
#include "base/mem.h"

static void read_self(struct buf *out)
{
    struct error err = ERROR_INIT;
    buf_init(out, 64 << 20);
    if (fd_read_file("/proc/self/exe", out, &err) < 0)
        fail_msg("%s", err.text);
}

static bool needs(const struct elf_info *info, const char *begin)
{
    for (size_t i = 0; i < info->needed.count; i++) {
        if (strncmp(info->needed.items[i], begin, strlen(begin)) == 0)
            return true;
    }
    return false;
}

/* This very program. */
static void test_real_program(void **state)
{
    (void)state;
    struct buf bytes;
    read_self(&bytes);
    struct elf_info info;
    assert_int_equal(elf_parse(bytes.bytes + bytes.start, bytes.length, &info), 0);
    assert_int_equal(info.wide, sizeof(void *) == 8);
    assert_int_equal(info.big_endian, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    assert_true(info.dynamic);
    assert_non_null(info.interpreter);
    assert_int_equal(info.interpreter[0], '/');
    assert_true(needs(&info, "libc.so"));
    assert_true(needs(&info, "libcmocka.so"));
    assert_false(needs(&info, "libmpi"));
    elf_info_destroy(&info);
    buf_destroy(&bytes);
}

/* A file written by hand: both classes, both byte orders. */
struct maker {
    unsigned char bytes[1024];
    bool wide, big;
};

static void set(struct maker *m, size_t at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        m->bytes[at + (m->big ? size - 1 - i : i)] = (unsigned char)(value >> (8 * i));
}

static void segment(struct maker *m, size_t index, uint32_t type, uint64_t offset, uint64_t address,
                    uint64_t size)
{
    size_t word = m->wide ? 8 : 4, at = 64 + index * (m->wide ? 56 : 32);
    set(m, at, type, 4);
    set(m, at + (m->wide ? 8 : 4), offset, word);
    set(m, at + (m->wide ? 16 : 8), address, word);
    set(m, at + (m->wide ? 32 : 16), size, word);
}

/* The name and the value are padded to four bytes. */
static void note(struct maker *m, size_t at, const char *name, uint32_t type, const char *value,
                 size_t length)
{
    size_t name_length = strlen(name) + 1;
    set(m, at, name_length, 4);
    set(m, at + 4, length, 4);
    set(m, at + 8, type, 4);
    memcpy(m->bytes + at + 12, name, name_length);
    memcpy(m->bytes + at + 12 + (name_length + 3) / 4 * 4, value, length);
}

static void make(struct maker *m, bool wide, bool big)
{
    static const char strings[] = "\0libone.so.1\0libtwo.so\0/opt/run\0/opt/rp";
    *m = (struct maker){.wide = wide, .big = big};
    size_t word = wide ? 8 : 4;
    memcpy(m->bytes, "\177ELF", 4);
    m->bytes[4] = wide ? 2 : 1;
    m->bytes[5] = big ? 2 : 1;
    set(m, 16, 3, 2);
    set(m, 18, 62, 2);
    set(m, wide ? 32 : 28, 64, word);
    set(m, wide ? 54 : 42, wide ? 56 : 32, 2);
    set(m, wide ? 56 : 44, 4, 2);
    segment(m, 0, 1, 0, 0x10000, sizeof(m->bytes)); /* PT_LOAD */
    segment(m, 1, 3, 800, 0, 9);                    /* PT_INTERP */
    segment(m, 2, 2, 512, 0x10200, 16 * word);      /* PT_DYNAMIC */
    segment(m, 3, 4, 832, 0, 60);                   /* PT_NOTE: two, the first of something else */
    note(m, 832, "SOME", 3, "abcdefgh", 8);
    note(m, 860, "GNU", 3, "\x01\x23\xef", 3);
    memcpy(m->bytes + 800, "/lib/ld.1", 10);
    memcpy(m->bytes + 700, strings, sizeof(strings));
    const uint64_t dynamic[][2] = {{1, 1},
                                   {5, 0x10000 + 700},
                                   {10, sizeof(strings)},
                                   {1, 13},
                                   {29, 23},
                                   {15, 32},
                                   {1, 999} /* outside of the table */,
                                   {0, 0}};
    for (size_t i = 0; i < 8; i++) {
        set(m, 512 + i * 2 * word, dynamic[i][0], word);
        set(m, 512 + i * 2 * word + word, dynamic[i][1], word);
    }
}

static void test_classes_and_orders(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct maker m;
        make(&m, (i & 1) != 0, (i & 2) != 0);
        struct elf_info info;
        assert_int_equal(elf_parse(m.bytes, sizeof(m.bytes), &info), 0);
        assert_int_equal(info.wide, i & 1);
        assert_int_equal(info.big_endian, (i & 2) != 0);
        assert_int_equal(info.type, 3);
        assert_int_equal(info.machine, 62);
        assert_int_equal(info.needed.count, 2);
        assert_string_equal(info.needed.items[0], "libone.so.1");
        assert_string_equal(info.needed.items[1], "libtwo.so");
        assert_string_equal(info.runpath, "/opt/run");
        assert_string_equal(info.rpath, "/opt/rp");
        assert_string_equal(info.build_id, "0123ef");
        elf_info_destroy(&info);
    }
}

/* The whole space of cuts and of single wrong bytes of the small file: no crash, no lie about the
 * kind of file; the sanitizers watch the rest. */
static void test_truncated_and_damaged(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct maker m;
        make(&m, (kind & 1) != 0, (kind & 2) != 0);
        for (size_t length = 0; length < sizeof(m.bytes); length++) {
            /* an exact copy, so that a read behind its end is seen */
            unsigned char *cut = mem_dup(m.bytes, length > 0 ? length : 1);
            struct elf_info info;
            if (elf_parse(cut, length, &info) == 0)
                assert_true(length >= 52 && info.needed.count <= 2);
            elf_info_destroy(&info);
            free(cut);
        }
        for (size_t at = 0; at < sizeof(m.bytes); at++) {
            unsigned char kept = m.bytes[at];
            static const unsigned char wrong[] = {0, 1, 0x7f, 0x80, 0xff};
            for (size_t i = 0; i < sizeof(wrong); i++) {
                m.bytes[at] = wrong[i];
                struct elf_info info;
                (void)elf_parse(m.bytes, sizeof(m.bytes), &info);
                assert_true(info.needed.count <= 256);
                elf_info_destroy(&info);
            }
            m.bytes[at] = kept;
        }
    }
}

/* A real program cut at every length up to where its headers and dynamic section lie. */
static void test_real_program_truncated(void **state)
{
    (void)state;
    struct buf bytes;
    read_self(&bytes);
    size_t step = bytes.length > 200000 ? bytes.length / 20000 : 1;
    for (size_t length = 0; length < bytes.length; length += length < 4096 ? 1 : step) {
        struct elf_info info;
        if (elf_parse(bytes.bytes + bytes.start, length, &info) < 0)
            assert_int_equal(info.needed.count, 0);
        elf_info_destroy(&info);
    }
    buf_destroy(&bytes);
}

static void test_rubbish(void **state)
{
    (void)state;
    struct elf_info info;
    assert_int_equal(elf_parse("#!/bin/sh\n", 10, &info), -1);
    assert_int_equal(elf_parse("", 0, &info), -1);
    unsigned char bytes[4096];
    uint32_t seed = 12345;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(seed >> 24);
        }
        memcpy(bytes, "\177ELF", 4);
        bytes[4] = (unsigned char)(1 + round % 2);
        bytes[5] = (unsigned char)(1 + round / 2 % 2);
        (void)elf_parse(bytes, sizeof(bytes), &info);
        elf_info_destroy(&info);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_program),
        cmocka_unit_test(test_classes_and_orders),
        cmocka_unit_test(test_truncated_and_damaged),
        cmocka_unit_test(test_real_program_truncated),
        cmocka_unit_test(test_rubbish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
