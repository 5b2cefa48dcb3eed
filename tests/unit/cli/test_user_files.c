/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun says about the files of a job before it starts anything. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "cli/sources.h"
#include "cli_fixture.h"

static char folder[] = "/tmp/hvdrun-files-XXXXXX";

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    memset(folder + strlen(folder) - 6, 'X', 6);
    return mkdtemp(folder) == NULL ? -1 : chdir(folder);
}

static int teardown(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int lock_of(const char *options, bool has_workers, int *lock_fd, struct error *err)
{
    struct command_line line;
    char *text AUTO_FREE = mem_printf("%s x", options);
    must_parse(text, NULL, &line);
    *err = (struct error)ERROR_INIT;
    int result = job_files_open(&line.settings, has_workers, lock_fd, err);
    command_line_destroy(&line);
    return result;
}

static void accept(const char *options)
{
    int lock_fd;
    struct error err;
    if (lock_of(options, true, &lock_fd, &err) < 0)
        fail_msg("'%s' was refused: %s", options, err.text);
    fd_close(&lock_fd);
}

static void refuse(const char *options, const char *expected)
{
    int lock_fd;
    struct error err;
    assert_int_equal(lock_of(options, true, &lock_fd, &err), -1);
    assert_int_equal(lock_fd, -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.text, expected);
}

static void put(const char *name, const char *text)
{
    int fd AUTO_FD = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

static void test_good_files(void **state)
{
    (void)state;
    put("older", "kept");
    accept("--report older --events new --launch-trace ./trace");
    assert_false(exists("new"));
    assert_false(exists("trace"));
    struct buf text AUTO_BUF = BUF_INIT(100);
    assert_int_equal(fd_read_file("older", &text, NULL), 0);
    assert_string_equal(buf_text(&text), "kept");
    assert_int_equal(symlink("nowhere", "link"), 0);
    accept("--report link");
    assert_false(exists("nowhere"));
}

/* Whoever reads a pipe would see its end if it was only tried. */
static void test_pipes_are_not_opened(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    accept("--events pipe"); /* it would wait for a reader */
    accept("--report /dev/null");
}

static void test_every_bad_file_is_named(void **state)
{
    (void)state;
    put("file", "");
    refuse("--report file/report", "--report: cannot write file/report: Not a directory");
    refuse("--report . --events no/such/events --launch-trace trace",
           "--report: cannot write .: Is a directory; "
           "--events: cannot write no/such/events: its folder does not exist");
    assert_false(exists("no"));
    refuse("--output-filename file/out --report no/report",
           "--report: cannot write no/report: its folder does not exist; "
           "--output-filename: cannot create the folder file/out: Not a directory");
    refuse("--output-filename file",
           "--output-filename: cannot write to the folder file: Not a directory");
}

/* The text of the error is cut, but it is an error. */
static void test_a_long_path(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int lock_fd;
    char words[2000] = "--report ";
    for (size_t at = strlen(words); at < sizeof(words) - 1; at += 2)
        memcpy(words + at, "x/", 3);
    assert_int_equal(lock_of(words, true, &lock_fd, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_int_equal(strncmp(err.text, "--report: cannot write x/x/", 27), 0);
}

static void test_folders(void **state)
{
    (void)state;
    accept("--output-filename a/b/c");
    assert_true(exists("a/b/c"));
    accept("--output-filename d/e/%h/f.%r");
    assert_true(exists("d/e"));
    assert_false(exists("d/e/%h"));
    accept("--output-filename %r.log");
    accept("--output-filename /tmp/%r");
    int lock_fd;
    struct error err; /* a check has no workers */
    assert_int_equal(lock_of("--output-filename never", false, &lock_fd, &err), 0);
    assert_false(exists("never"));
}

static void test_one_job_at_a_time(void **state)
{
    (void)state;
    int lock_fd;
    struct error err;
    assert_int_equal(lock_of("--output-filename out", true, &lock_fd, &err), 0);
    assert_true(lock_fd >= 0);
    refuse("--output-filename ./out/", "--output-filename: another job writes to the folder ./out/ "
                                       "now; wait for its end, or name another folder");
    accept("--output-filename out/%r"); /* its files may have other names */
    accept("--output-filename out/below");
    fd_close(&lock_fd);
    accept("--output-filename out");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_good_files),
        TEST(test_pipes_are_not_opened),
        TEST(test_every_bad_file_is_named),
        TEST(test_a_long_path),
        TEST(test_folders),
        TEST(test_one_job_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
