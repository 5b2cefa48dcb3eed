/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a root: what is written reads back, what is refused, and where contents are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/stage/stage.h"

static void put(struct buf *out, char kind, const char *name, uint64_t size, uint8_t content)
{
    struct stage_file file = {.kind = kind,
                              .name = name,
                              .target = "somewhere",
                              .size = size,
                              .seconds = 1795775585,
                              .nanoseconds = 7};
    memset(file.hash, content, sizeof(file.hash));
    assert_int_equal(stage_list_put(out, &file), 0);
}

static int read_back(struct buf *text, struct stage_list *list)
{
    struct error err = ERROR_INIT;
    size_t length = text->length;
    char *copy = mem_dup(buf_text(text), length + 1);
    buf_destroy(text);
    int result = stage_list_read(copy, length, list, &err);
    assert_int_equal(err.text[0] != '\0', result < 0);
    return result;
}

static void test_contents(void **state)
{
    struct buf text = BUF_INIT(STAGE_LIST_MAX);
    struct stage_list list;
    (void)state;
    put(&text, 'd', "r", 0, 0);
    put(&text, 'f', "r/a", 100, 1);
    put(&text, 'f', "r/empty", 0, 2);
    put(&text, 'x', "r/b", STAGE_CHUNK, 3);
    put(&text, 'l', "r/l", 0, 0);
    put(&text, 'f', "r/twin", 100, 1);
    put(&text, 'd', "r/sub", 0, 0);
    assert_int_equal(read_back(&text, &list), 0);
    assert_int_equal(list.count, 7);
    assert_int_equal(list.stream, STAGE_CHUNK + 200);
    assert_int_equal(list.content_count, 3);
    assert_int_equal(list.files[3].at, 100);
    assert_int_equal(list.files[3].kind, 'x');
    assert_int_equal(list.files[3].seconds, 1795775585);
    assert_int_equal(list.files[3].nanoseconds, 7);
    assert_int_equal(list.files[3].hash[31], 3);
    assert_string_equal(list.files[4].target, "somewhere");
    assert_int_equal(stage_list_chunks(&list), 2);
    assert_int_equal(stage_chunk_size(list.stream, 0), STAGE_CHUNK);
    assert_int_equal(stage_chunk_size(list.stream, 1), 200);
    assert_int_equal(stage_chunk_size(list.stream, 2), 0);
    assert_int_equal(stage_list_find(&list, 0), 0);
    assert_int_equal(stage_list_find(&list, 99), 0);
    assert_int_equal(stage_list_find(&list, 100), 1);
    assert_int_equal(stage_list_find(&list, STAGE_CHUNK + 99), 1);
    assert_int_equal(stage_list_find(&list, STAGE_CHUNK + 100), 2);
    assert_int_equal(stage_list_find(&list, STAGE_CHUNK + 200), 3);
    stage_list_destroy(&list);
}

static void test_entries(void **state)
{
    struct buf text = BUF_INIT(STAGE_LIST_MAX);
    struct stage_list list;
    (void)state;
    put(&text, 'd', "r", 0, 0);
    put(&text, 'f', "r/a", 1, 1);
    put(&text, 'l', "r/l", 0, 0);
    assert_int_equal(read_back(&text, &list), 0);
    assert_ptr_equal(stage_list_entry(&list, ""), &list.files[0]);
    assert_ptr_equal(stage_list_entry(&list, "/a"), &list.files[1]);
    assert_ptr_equal(stage_list_entry(&list, "/l"), &list.files[2]);
    assert_ptr_equal(stage_list_entry(&list, "/l/below"), &list.files[2]);
    assert_null(stage_list_entry(&list, "/a/below"));
    assert_null(stage_list_entry(&list, "/ab"));
    assert_null(stage_list_entry(&list, "/"));
    stage_list_destroy(&list);
}

static void test_ids(void **state)
{
    struct buf one = BUF_INIT(STAGE_LIST_MAX), other = BUF_INIT(STAGE_LIST_MAX);
    struct stage_list list;
    char first[STAGE_ID_ROOM], second[STAGE_ID_ROOM];
    (void)state;
    put(&one, 'f', "r", 1, 1);
    put(&other, 'x', "r", 1, 1);
    assert_int_equal(read_back(&one, &list), 0);
    stage_list_id(&list, first);
    stage_list_destroy(&list);
    assert_int_equal(read_back(&other, &list), 0);
    stage_list_id(&list, second);
    stage_list_destroy(&list);
    assert_int_equal(strlen(first), STAGE_ID_ROOM - 1);
    assert_string_not_equal(first, second);
}

/* Names that would lead a copy out of its folder, or through a link. */
static void expect_refused(const char *kinds, const char *const *names)
{
    struct buf text = BUF_INIT(STAGE_LIST_MAX);
    struct stage_list list;
    for (size_t i = 0; kinds[i] != '\0'; i++)
        put(&text, kinds[i], names[i], 1, (uint8_t)i);
    if (read_back(&text, &list) == 0)
        fail_msg("%s was taken", names[strlen(kinds) - 1]);
    assert_null(list.files);
}

static void test_names(void **state)
{
    (void)state;
    expect_refused("f", (const char *[]){".."});
    expect_refused("f", (const char *[]){"."});
    expect_refused("f", (const char *[]){"/etc"});
    expect_refused("f", (const char *[]){"a/b"});
    expect_refused("df", (const char *[]){"r", "r/../x"});
    expect_refused("df", (const char *[]){"r", "r/.."});
    expect_refused("df", (const char *[]){"r", "r//x"});
    expect_refused("df", (const char *[]){"r", "r/x/"});
    expect_refused("df", (const char *[]){"r", "r/./x"});
    expect_refused("df", (const char *[]){"r", "s/x"});
    expect_refused("df", (const char *[]){"r", "second"});
    expect_refused("dff", (const char *[]){"r", "r/x", "r/x"});
    expect_refused("dlf", (const char *[]){"r", "r/l", "r/l/x"});
    expect_refused("dff", (const char *[]){"r", "r/f", "r/f/x"});
    expect_refused("df", (const char *[]){"r", "r/late/x"});
    expect_refused("dld", (const char *[]){"r", "r/l", "r/l"});
}

static void expect_bad(const char *bytes, size_t length)
{
    struct stage_list list;
    char *copy = mem_dup(bytes, length); /* a sanitizer sees what reads one byte more */
    if (stage_list_read(copy, length, &list, NULL) == 0)
        fail_msg("'%s' was taken", bytes);
}

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define BAD(text) expect_bad(text, sizeof(text) - 1)

static void test_records(void **state)
{
    struct stage_list list;
    static const char good[] = "f 1 2 3 " HASH " r";
    (void)state;
    assert_int_equal(stage_list_read(mem_dup(good, sizeof(good)), sizeof(good), &list, NULL), 0);
    assert_int_equal(list.files[0].hash[1], 0x11);
    stage_list_destroy(&list);
    BAD("f ");
    BAD("d");
    BAD("");
    BAD("f");
    BAD("d r\0");
    BAD("d - ");
    BAD("d - \0");
    BAD("d - r"); /* no end */
    BAD("q - r\0");
    BAD("l - r\0");
    BAD("l - r\0\0");
    BAD("f 1 2 3 " HASH "r\0");
    BAD("f 1 2 3 0" HASH " r\0");
    BAD("f 01 2 3 " HASH " r\0");
    BAD("f -1 2 3 " HASH " r\0");
    BAD("f  2 3 " HASH " r\0");
    BAD("f 1 2 1000000000 " HASH " r\0");
    BAD("f 99999999999999999999 2 3 " HASH " r\0");
    BAD("f 1152921504606846977 2 3 " HASH " r\0");
    BAD("f 1 2 3 0011223344556677889900AABBCCDDEEFF00112233445566778899AABBCCDDEE r\0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents), cmocka_unit_test(test_entries), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_names), cmocka_unit_test(test_records)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
