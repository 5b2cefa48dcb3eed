/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

/* Under AddressSanitizer: too large a request returns NULL, as everywhere else. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_zeroed(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        unsigned char *block = mem_alloc(1000), *array = mem_array(10, 100);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(block[i] | array[i], 0);
        memset(block, 'x', 1000);
        memset(array, 'x', 1000);
        free(block);
        free(array);
    }
}

static void test_nothing_is_something(void **state)
{
    (void)state;
    void *blocks[] = {mem_alloc(0),         mem_array(0, 8),     mem_array(8, 0),
                      mem_dup("", 0),       mem_resize(NULL, 0), mem_resize_array(NULL, 0, 8),
                      mem_strndup("abc", 0)};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        assert_non_null(blocks[i]);
        free(blocks[i]);
    }
}

static void test_one_more(void **state)
{
    (void)state;
    int *items = NULL;
    size_t room = 0, moves = 0;
    for (int i = 0; i < 1000; i++) {
        size_t before = room;
        items = mem_one_more(items, (size_t)i, &room, sizeof(*items));
        assert_true(room > (size_t)i);
        moves += room != before;
        items[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_in_range(moves, 1, 10);
    free(items);
}

static void test_resize(void **state)
{
    (void)state;
    char *block = mem_resize(NULL, 4);
    memcpy(block, "abc", 4);
    block = mem_resize(block, 100000);
    assert_string_equal(block, "abc");
    block = mem_resize_array(block, 2, 2);
    assert_string_equal(block, "abc");
    free(block);
}

static void test_copies(void **state)
{
    (void)state;
    assert_null(mem_strdup(NULL));
    AUTO_FREE char *text = mem_strdup("text"), *cut = mem_strndup("text", 2);
    AUTO_FREE char *shorter = mem_strndup("ab\0cd", 5), *print = mem_printf("%s-%d", "x", 5);
    AUTO_FREE char *bytes = mem_dup("a\0b", 3);
    assert_string_equal(text, "text");
    assert_string_equal(cut, "te");
    assert_string_equal(shorter, "ab");
    assert_string_equal(print, "x-5");
    assert_memory_equal(bytes, "a\0b", 3);
    char unended[2] = {'a', 'b'};
    AUTO_FREE char *two = mem_strndup(unended, 2); /* never looks behind the length */
    assert_string_equal(two, "ab");
}

static void ask_alloc(size_t huge)
{
    free(mem_alloc(huge));
}

static void ask_array(size_t huge)
{
    free(mem_array(huge, 8));
}

static void ask_resize(size_t huge)
{
    free(mem_resize(NULL, huge));
}

static void ask_resize_array(size_t huge)
{
    free(mem_resize_array(NULL, huge, 8));
}

/* One line on stderr and the launcher's own status. */
static void out_of_memory(void (*ask)(size_t), size_t size)
{
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        ask(size);
        _exit(0);
    }
    fd_close(&ends[1]);
    AUTO_BUF struct buf said = BUF_INIT(4000);
    char chunk[400];
    ssize_t got = fd_read(ends[0], chunk, sizeof(chunk));
    for (; got > 0; got = fd_read(ends[0], chunk, sizeof(chunk)))
        buf_append(&said, chunk, (size_t)got);
    fd_close(&ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_LAUNCHER);
    assert_non_null(strstr(buf_text(&said), "out of memory"));
}

static void test_out_of_memory(void **state)
{
    (void)state;
    out_of_memory(ask_alloc, SIZE_MAX / 2);
    out_of_memory(ask_array, SIZE_MAX / 4); /* the product overflows */
    out_of_memory(ask_resize, SIZE_MAX / 2);
    out_of_memory(ask_resize_array, SIZE_MAX / 8 + 2); /* the product would be small */
}

static void test_reach(void **state)
{
    (void)state;
    size_t count = 0;
    int *items = mem_reach(NULL, &count, 2, sizeof(*items));
    assert_int_equal(count, 2);
    items[0] = items[1] = 7;
    items = mem_reach(items, &count, 1, sizeof(*items));
    assert_int_equal(count, 2);
    items = mem_reach(items, &count, 1000, sizeof(*items));
    assert_int_equal(count, 1000);
    assert_int_equal(items[1], 7);
    assert_int_equal(items[2] | items[999], 0);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed),        cmocka_unit_test(test_nothing_is_something),
        cmocka_unit_test(test_one_more),      cmocka_unit_test(test_reach),
        cmocka_unit_test(test_resize),        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
