/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/line_log.h"

#define MS INT64_C(1000000)

static void add(struct line_log *log, int rank, int64_t wall_ms, const char *text)
{
    struct recent_piece piece = {
        .rank = rank, .wall_ns = wall_ms * MS, .text = text, .length = strlen(text)};
    line_log_add(log, &piece, false);
}

static void add_bar(struct line_log *log, int rank, int64_t wall_ns, const char *text)
{
    struct recent_piece piece = {
        .rank = rank, .wall_ns = wall_ns, .text = text, .length = strlen(text)};
    line_log_add_bar(log, &piece);
}

static struct line_log *log_of(struct fixture *f, int64_t bytes)
{
    char path[sizeof(f->folder) + 8];
    snprintf(path, sizeof(path), "%s/job", f->folder);
    return line_log_create(f->job.loop, f->job.output, path, bytes);
}

/* NULL: there is no such file. */
static void expect_file(struct fixture *f, int number, const char *wanted)
{
    char name[16];
    snprintf(name, sizeof(name), "job.%d.log", number);
    expect_written(f, name, wanted);
}

static void test_pieces(void **state)
{
    struct fixture *f = *state;
    struct line_log *log = log_of(f, 10000);
    struct recent_piece piece = {
        .rank = 1, .is_stderr = true, .wall_ns = 1700000000123456789, .text = "hello", .length = 3};
    line_log_add(log, &piece, true);
    add(log, RECENT_LAUNCHER, 7, "hvdrun: x\n");
    line_log_add(NULL, &piece, false);
    add_bar(NULL, 0, SECOND, "1%\r");
    piece.length = LOG_PIECE_MAX + 1;
    line_log_add(log, &piece, false); /* no part of it is readable: left out */
    line_log_destroy(log);
    line_log_destroy(NULL);
    expect_file(f, 0, "1700000000123 1 E 3\nhel7 - o 10\nhvdrun: x\n");
    expect_file(f, 1, NULL);
}

/* Each file takes half of the size; the last two stay. A head takes 9 bytes here. */
static void test_files(void **state)
{
    struct fixture *f = *state;
    struct line_log *log = log_of(f, 101);
    add(log, 0, 0, "0123456789abcde\n"); /* 25 bytes and 25: the first file is full */
    add(log, 0, 0, "0123456789abcde\n");
    add(log, 0, 0, "second 789abcde\n");
    add(log, 0, 0, "0123456789abcdef\n"); /* one byte too many */
    expect_file(f, 0, NULL);
    add(log, 0, 0, "third 789abcd, which alone is longer than a whole file may be\n");
    add(log, 0, 0, "fourth 9abcde\n");
    line_log_destroy(log);
    expect_file(f, 1, NULL);
    expect_file(f, 2, NULL);
    expect_file(f, 3, "0 0 o 62\nthird 789abcd, which alone is longer than a whole file may be\n");
    expect_file(f, 4, "0 0 o 14\nfourth 9abcde\n");
}

/* A flood is cut, the log says so once, and hvdrun's own messages are always there. */
static void test_flood(void **state)
{
    struct fixture *f = *state;
    struct line_log *log = log_of(f, INT64_C(64) << 20);
    size_t much = (size_t)LINE_LOG_BURST - strlen("0 0 o 2097138\n");
    char *flood AUTO_FREE = mem_alloc(much + 1);
    struct buf wanted AUTO_BUF = BUF_INIT((size_t)8 << 20);
    memset(flood, 'x', much);
    add(log, 0, 0, flood);
    add(log, 0, 1, "the last one\n"); /* the limit is not passed before it */
    add(log, 0, 2, "dropped\n");
    add(log, 1, 99, "dropped too\n");
    add(log, RECENT_LAUNCHER, 99, "hvdrun: y\n");
    add(log, 1, 99, "gone\n");
    add(log, 0, 100, "again\n"); /* another window */
    add(log, 0, 101, "and again\n");
    line_log_destroy(log);
    buf_printf(&wanted, "0 0 o 2097138\n%s1 0 o 13\nthe last one\n", flood);
    buf_puts(&wanted, "2 0 o 8\ndropped\n99 1 o 12\ndropped too\n99 - o 10\nhvdrun: y\n");
    buf_puts(&wanted, "99 1 o 5\ngone\n100 0 o 6\nagain\n101 0 o 10\nand again\n");
    expect_file(f, 0, buf_text(&wanted));
}

/* The end of a flood is always there: it may be the cause of a failure. */
static void test_end_of_a_flood(void **state)
{
    struct fixture *f = *state;
    struct line_log *log = log_of(f, INT64_C(64) << 20);
    size_t much = (size_t)LINE_LOG_BURST;
    char *flood AUTO_FREE = mem_alloc(much + 1);
    struct buf wanted AUTO_BUF = BUF_INIT((size_t)8 << 20);
    memset(flood, 'x', much);
    add(log, 0, 0, flood);
    flood[RECENT_BYTES / 4 + 100] = '\0'; /* its last quarter of the ring is kept */
    add(log, 0, 1, flood);
    add(log, 0, 2, "END\n");
    line_log_destroy(log);
    buf_printf(&wanted,
               "1 - e 76\nhvdrun: 100 bytes of output are not in this log, because they "
               "came too fast\n1 0 o %zu\n%.*s2 0 o 4\nEND\n",
               RECENT_BYTES / 4, (int)(RECENT_BYTES / 4), flood);
    char *file AUTO_FREE = written(f, "job.0.log");
    assert_non_null(file);
    assert_true(strlen(file) > wanted.length);
    assert_string_equal(file + strlen(file) - wanted.length, buf_text(&wanted));
}

/* A progress bar is logged once a second for each rank, without the return at its end. */
static void test_bars(void **state)
{
    struct fixture *f = *state;
    struct line_log *log = log_of(f, 10000);
    add_bar(log, 0, 5 * SECOND, "10%\r");
    add_bar(log, 2, 5 * SECOND, "\r\r"); /* nothing: it does not count */
    add_bar(log, 2, 5 * SECOND, "20%\r\r");
    add_bar(log, 1, 5 * SECOND, "30%");
    add_bar(log, 0, 6 * SECOND - 1, "11%\r");
    add_bar(log, 0, 6 * SECOND, "12%\r");
    add_bar(log, 1, 6 * SECOND - 1, "31%\r");
    add_bar(log, 2, 3 * SECOND, "the clock was set back\r");
    add_bar(log, 2, 3 * SECOND, "21%\r");
    add_bar(log, -1, 9 * SECOND, "hvdrun\r");
    line_log_destroy(log);
    expect_file(f, 0,
                "5000 0 o 3\n10%5000 2 o 3\n20%5000 1 o 3\n30%6000 0 o 3\n12%"
                "3000 2 o 22\nthe clock was set back");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pieces),         TEST(test_files), TEST(test_flood),
        TEST(test_end_of_a_flood), TEST(test_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
