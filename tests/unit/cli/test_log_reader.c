/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a job: what is written, what its reader makes of it while it grows, and of garbage. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/log_reader.h"
#include "driver/control/folder.h"
#include "driver/tell/line_log.h"
#include "node/runtime_dir.h"

struct fixture {
    char root[64];
    int folder;
    struct log_reader *reader;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-log-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    assert_int_equal(setenv("TMPDIR", f->root, 1), 0);
    f->folder = job_folder_open(NULL);
    f->reader = log_reader_create(f->folder, "j-1");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    log_reader_destroy(f->reader);
    log_reader_destroy(NULL);
    fd_close(&f->folder);
    runtime_dir_remove(f->root);
    unsetenv("TMPDIR");
    free(f);
    return 0;
}

static void append(struct fixture *f, const char *file, const char *text)
{
    int fd AUTO_FD = openat(f->folder, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* "TIME RANK STREAM:text" of the next line; "" if there is none. */
static void expect(struct fixture *f, const char *expected)
{
    struct log_line line;
    char got[256] = "";
    if (log_reader_next(f->reader, &line))
        snprintf(got, sizeof(got), "%lld %d %s%s:%.*s", (long long)line.wall_ms, line.rank,
                 line.is_stderr ? "err" : "out", line.goes_on ? "+" : "", (int)line.length,
                 line.text);
    assert_string_equal(got, expected);
}

static void test_lines(void **state)
{
    struct fixture *f = *state;
    expect(f, "");
    append(f, "j-1.0.log", "1000 3 o 8\none\ntwo\n1001 - e 7\nhvdrun\n1002 0 E 4\nhalf");
    expect(f, "1000 3 out:one");
    expect(f, "1000 3 out:two");
    expect(f, "1001 -1 err:hvdrun");
    expect(f, "1002 0 err+:half");
    expect(f, "");
    append(f, "j-1.0.log", "1003 0 e 0\n1004 0 e 1\n\n1005 1 o 5\nno en");
    expect(f, "1004 0 err:");
    expect(f, "1005 1 out:no en");
    expect(f, "");
}

/* A piece appears when all of it is there. */
static void test_growing(void **state)
{
    struct fixture *f = *state;
    static const char piece[] = "1000 3 o 8\none\ntwo\n";
    for (const char *at = piece; at[1] != '\0'; at++) {
        char byte[2] = {*at, '\0'};
        append(f, "j-1.0.log", byte);
        expect(f, "");
    }
    append(f, "j-1.0.log", "\n");
    expect(f, "1000 3 out:one");
    expect(f, "1000 3 out:two");
}

static void test_many_files(void **state)
{
    struct fixture *f = *state;
    append(f, "j-1.0.log", "1 0 o 2\na\n");
    append(f, "j-10.0.log", "1 0 o 2\nx\n"); /* another job */
    append(f, "j-1.x.log", "1 0 o 2\nx\n");
    expect(f, "1 0 out:a");
    append(f, "j-1.0.log", "2 0 o 2\nb\n");
    append(f, "j-1.1.log", "3 0 o 2\nc\n");
    expect(f, "2 0 out:b");
    expect(f, "3 0 out:c");
    assert_false(log_reader_missed(f->reader));
    append(f, "j-1.10.log", "5 0 o 2\ne\n");
    append(f, "j-1.9.log", "4 0 o 2\nd\n");
    expect(f, "4 0 out:d");
    expect(f, "5 0 out:e");
    assert_true(log_reader_missed(f->reader));
    expect(f, "");
}

/* A driver that was killed has left half a piece at the end of a file. */
static void test_garbage(void **state)
{
    struct fixture *f = *state;
    append(f, "j-1.0.log",
           "garbage\n1 0 x 3\nab\n-1 0 o 3\nab\n1 0 o 99999999999\n1 0 o\n1 - o 3 \n"
           "1 2147483648 o 3\n\n1 0 o 3\nok\n7 0 o 100\nhalf");
    append(f, "j-1.1.log", "8 0 o 3\nzz\n");
    expect(f, "1 0 out:ok");
    expect(f, "8 0 out:zz");
    expect(f, "");
}

static void test_heads(void **state)
{
    (void)state;
    static const struct log_head heads[] = {
        {0, 0, false, false, 0},
        {1795372867123, 1048575, true, false, LOG_PIECE_MAX},
        {1, RECENT_LAUNCHER, true, true, 7},
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(100);
        struct log_head got;
        log_head_append(&heads[i], &text);
        assert_int_equal(buf_text(&text)[text.length - 1], '\n');
        assert_true(log_head_parse(buf_text(&text), text.length - 1, &got));
        assert_int_equal(got.wall_ms, heads[i].wall_ms);
        assert_int_equal(got.rank, heads[i].rank);
        assert_int_equal(got.is_stderr, heads[i].is_stderr);
        assert_int_equal(got.goes_on, heads[i].goes_on);
        assert_int_equal(got.length, heads[i].length);
        assert_false(log_head_parse(buf_text(&text), text.length, &got));
        assert_false(log_head_parse(buf_text(&text), 0, &got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
