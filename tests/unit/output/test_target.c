/* SPDX-License-Identifier: Apache-2.0 */
/* Files by path: folders, many files at a time, failures that it reports only once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "output/target.h"

static char folder[] = "/tmp/hvdrun-test-XXXXXX";
static atomic_bool give_up;

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct output_target *file(const char *name, bool append)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return target_file(path, append, true);
}

static void expect(const struct output_target *target, const char *text)
{
    AUTO_BUF struct buf content = BUF_INIT(1 << 20);
    assert_int_equal(fd_read_file(target->path, &content, NULL), 0);
    assert_string_equal(buf_text(&content), text);
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void folders_are_made(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *target = file("a/b/c", false);
    assert_int_equal(target_write(&set, target, "", 0), 0);
    expect(target, "");
    assert_int_equal(target_write(&set, target, "hello", 5), 0);
    expect(target, "hello");
    assert_int_equal(target_end(&set, target, TARGET_CLOSE), 0);
    assert_int_equal(set.open, 0);
    assert_int_equal(target_write(&set, target, "late", 4), 0); /* swallowed */
    expect(target, "hello");
    target_destroy(target);
    target = file("a/b/c", true);
    target_write(&set, target, " again", 6);
    target_end(&set, target, TARGET_CLOSE);
    expect(target, "hello again");
    target_destroy(target);
    target = file("a/b/c", false);
    target_write(&set, target, "new", 3);
    target_end(&set, target, TARGET_CLOSE);
    expect(target, "new");
    target_destroy(target);
}

/* A path that does not exist is a mistyped one, unless folders are wanted. */
static void folders_are_not_made(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    char path[256], parent[256];
    snprintf(parent, sizeof(parent), "%s/mistyped", folder);
    snprintf(path, sizeof(path), "%s/mistyped/report", folder);
    struct output_target *target = target_file(path, false, false);
    assert_int_equal(target_write(&set, target, "x", 1), -1);
    assert_int_equal(target->errnum, ENOENT);
    assert_int_equal(access(parent, F_OK), -1);
    target_end(&set, target, TARGET_CLOSE);
    target_destroy(target);
}

static void a_file_that_rests_goes_on(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *target = file("rests", true);
    target_write(&set, target, "older\n", 6);
    target_end(&set, target, TARGET_CLOSE);
    target_destroy(target);
    target = file("rests", false);
    assert_int_equal(target_end(&set, target, TARGET_REST), 0); /* it was never opened */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(target_write(&set, target, "x", 1), 0);
        assert_int_equal(set.open, 1);
        assert_int_equal(target_end(&set, target, TARGET_REST), 0);
        assert_int_equal(target_end(&set, target, TARGET_REST), 0);
        assert_int_equal(set.open, 0);
    }
    expect(target, "xxx");
    assert_int_equal(target_end(&set, target, TARGET_CLOSE), 0);
    target_destroy(target);
}

static void few_descriptors_for_many_files(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *targets[30];
    int before = open_descriptors();
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof(name), "many/%d", i);
        targets[i] = file(name, false);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 30; i++) {
            assert_int_equal(target_write(&set, targets[i], "xyz" + round, 1), 0);
            assert_int_equal(target_write(&set, targets[0], ".", 1), 0);
            assert_true(set.open <= 4);
            assert_true(open_descriptors() <= before + 4);
        }
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(target_end(&set, targets[i], TARGET_CLOSE), 0);
        if (i > 0)
            expect(targets[i], "xyz");
        target_destroy(targets[i]);
    }
    assert_int_equal(set.open, 0);
    assert_null(set.newest);
    assert_null(set.oldest);
}

static void failures_are_told_once(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *full = target_file("/dev/full", true, false);
    assert_int_equal(target_write(&set, full, "x", 1), -1);
    assert_int_equal(full->errnum, ENOSPC);
    assert_int_equal(target_write(&set, full, "x", 1), 0);
    assert_int_equal(target_end(&set, full, TARGET_CLOSE), 0);
    assert_int_equal(set.open, 0);
    target_destroy(full);

    struct output_target *below_file = file("plain", false);
    assert_int_equal(target_write(&set, below_file, "x", 1), 0);
    struct output_target *wrong = file("plain/below", false);
    assert_int_equal(target_write(&set, wrong, "x", 1), -1);
    assert_int_equal(wrong->errnum, ENOTDIR);
    assert_int_equal(target_write(&set, wrong, "x", 1), 0);
    target_end(&set, below_file, TARGET_CLOSE);
    target_destroy(below_file);
    target_destroy(wrong);
}

static void a_closed_pipe_is_a_failure(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    struct output_target *target = target_descriptor(ends[1], "a pipe");
    assert_int_equal(target_write(&set, target, "x", 1), 0);
    fd_close(&ends[0]);
    assert_int_equal(target_write(&set, target, "x", 1), -1);
    assert_int_equal(target->errnum, EPIPE);
    target_end(&set, target, TARGET_CLOSE);
    assert_int_not_equal(fcntl(ends[1], F_GETFD), -1); /* not ours to close */
    target_destroy(target);
    fd_close(&ends[1]);
}

static void giving_up_ends_a_wait(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    fd_nonblock(ends[1]); /* as somebody else may have done it */
    struct output_target *target = target_descriptor(ends[1], "a pipe");
    char *large = calloc(1, 1 << 20);
    atomic_store(&give_up, true);
    assert_int_equal(target_write(&set, target, large, 1 << 20), -1);
    assert_int_equal(target->errnum, ECANCELED);
    struct output_target *full = target_descriptor(ends[1], "the same pipe");
    assert_int_equal(target_write(&set, full, "x", 1), -1);
    assert_int_equal(full->errnum, ECANCELED);
    atomic_store(&give_up, false);
    free(large);
    target_destroy(full);
    target_destroy(target);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* The process may open fewer descriptors than the set: then files take turns, too. */
static void the_limit_of_the_process(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 100, .give_up = &give_up};
    struct output_target *targets[20];
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "few/%d", i);
        targets[i] = file(name, false);
    }
    int free_one = fd_open("/dev/null", O_RDONLY, 0);
    few = (struct rlimit){(rlim_t)free_one + 5, before.rlim_max};
    fd_close(&free_one);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20; i++)
            assert_int_equal(target_write(&set, targets[i], "ab" + round, 1), 0);
    assert_true(set.open > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(target_end(&set, targets[i], TARGET_CLOSE), 0);
        expect(targets[i], "ab");
        target_destroy(targets[i]);
    }
    assert_int_equal(set.open, 0);
}

/* One file that cannot be opened costs the others nothing. */
static void a_failure_leaves_the_others_open(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *good = file("good", false), *wrong = file("good/below", false);
    assert_int_equal(target_write(&set, good, "x", 1), 0);
    assert_int_equal(target_write(&set, wrong, "x", 1), -1);
    assert_int_equal(set.open, 1);
    assert_true(good->fd >= 0);
    assert_int_equal(target_write(&set, good, "y", 1), 0);
    expect(good, "xy");
    target_end(&set, good, TARGET_CLOSE);
    target_destroy(good);
    target_destroy(wrong);
}

/* The file that was written to last stays open longest. */
static void the_oldest_is_closed_first(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 2, .give_up = &give_up};
    struct output_target *one = file("one", false), *two = file("two", false),
                         *three = file("three", false);
    assert_int_equal(target_write(&set, one, "1", 1), 0);
    assert_int_equal(target_write(&set, two, "2", 1), 0);
    assert_int_equal(target_write(&set, one, "1", 1), 0);
    assert_int_equal(target_write(&set, three, "3", 1), 0);
    assert_true(one->fd >= 0);
    assert_int_equal(two->fd, -1);
    assert_true(three->fd >= 0);
    struct output_target *const all[] = {one, two, three};
    for (int i = 0; i < 3; i++) {
        target_end(&set, all[i], TARGET_CLOSE);
        target_destroy(all[i]);
    }
    assert_int_equal(set.open, 0);
}

static int drained_by_signal[2];
static volatile sig_atomic_t signals;

/* The reader wakes up with the second signal only. A signal can come between a system call and the
 * look at its errno. */
static void on_alarm(int number)
{
    (void)number;
    static char bytes[4096];
    int before = errno;
    if (signals++ > 0)
        while (read(drained_by_signal[0], bytes, sizeof(bytes)) > 0)
            ;
    errno = before;
}

static void a_signal_does_not_end_a_wait(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    assert_int_equal(fd_pipe(drained_by_signal), 0);
    fd_nonblock(drained_by_signal[0]);
    fd_nonblock(drained_by_signal[1]);
    const struct sigaction act = {.sa_handler = on_alarm};
    struct sigaction before;
    sigaction(SIGALRM, &act, &before);
    struct itimerval timer = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    struct output_target *target = target_descriptor(drained_by_signal[1], "a pipe");
    char *large = calloc(1, 1 << 20);
    assert_int_equal(target_write(&set, target, large, 1 << 20), 0);
    setitimer(ITIMER_REAL, &none, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(signals > 1);
    free(large);
    target_destroy(target);
    fd_close(&drained_by_signal[0]);
    fd_close(&drained_by_signal[1]);
}

static void what_is_written_in_full_was_not_given_up(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    struct output_target *target = target_descriptor(ends[1], "a pipe");
    atomic_store(&give_up, true);
    assert_int_equal(target_write(&set, target, "x", 1), 0);
    atomic_store(&give_up, false);
    assert_int_equal(target->errnum, 0);
    target_destroy(target);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

static void descriptors_of_others_take_no_place(void **state)
{
    (void)state;
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    int size = fcntl(ends[1], F_GETPIPE_SZ);
    struct output_target *pipe = target_descriptor(ends[1], "a pipe"),
                         *plain = file("beside", false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(target_write(&set, plain, "x", 1), 0);
        assert_int_equal(target_write(&set, pipe, "y", 1), 0);
        assert_int_equal(set.open, 1);
        assert_ptr_equal(set.newest, plain);
    }
    assert_int_equal(fcntl(ends[1], F_GETPIPE_SZ), size); /* small writes need no larger pipe */
    target_end(&set, plain, TARGET_CLOSE);
    assert_int_equal(set.open, 0);
    expect(plain, "xxx");
    target_destroy(plain);
    target_destroy(pipe);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* It has its name when it is whole, and only then. */
static void a_whole_file(void **state)
{
    (void)state;
    char *path AUTO_FREE = mem_printf("%s/new/whole", folder);
    char *part AUTO_FREE = mem_printf("%s/new/whole.part", folder);
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *target = target_whole_file(path, NULL, NULL);
    struct stat info;
    assert_int_equal(target_write(&set, target, "hello", 5), 0);
    assert_int_equal(target_end(&set, target, TARGET_REST), 0);
    assert_int_equal(target_write(&set, target, " again", 6), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(target_end(&set, target, TARGET_CLOSE), 0);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_size, 11);
    target_destroy(target);
    unlink(path);
    /* nobody closes it */
    target = target_whole_file(path, NULL, NULL);
    assert_int_equal(target_write(&set, target, "hello", 5), 0);
    assert_int_equal(access(part, F_OK), 0);
    target_abandon(&set, target);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(part, F_OK), -1);
    target_destroy(target);
    /* it cannot have its name */
    target = target_whole_file(path, NULL, NULL);
    assert_int_equal(target_write(&set, target, "hello", 5), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(target_end(&set, target, TARGET_CLOSE), -1);
    assert_int_equal(target->errnum, EISDIR);
    assert_int_equal(access(part, F_OK), -1);
    target_destroy(target);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

static void write_new(const char *path, const char *text, int errnum)
{
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *target = target_new_file(path);
    char *part AUTO_FREE = mem_printf("%s.part", path);
    target_write(&set, target, text, strlen(text));
    target_end(&set, target, TARGET_CLOSE);
    assert_int_equal(target->errnum, errnum);
    assert_int_equal(access(part, F_OK), -1);
    target_destroy(target);
}

static void expect_file(const char *path, const char *text, mode_t mode)
{
    char found[64] = "";
    struct stat info;
    int fd AUTO_FD = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, found, sizeof(found) - 1) >= 0);
    assert_string_equal(found, text);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 0777, mode);
}

/* It takes the place of an older one, as umask says. What is not a file stays what it is. */
static void a_new_file(void **state)
{
    (void)state;
    char *path AUTO_FREE = mem_printf("%s/new", folder);
    char *link AUTO_FREE = mem_printf("%s/link", folder);
    char *missing AUTO_FREE = mem_printf("%s/none/new", folder);
    struct stat before, after;
    mode_t mask = umask(027);
    write_new(path, "first", 0);
    expect_file(path, "first", 0640);
    stat(path, &before);
    write_new(path, "next", 0);
    expect_file(path, "next", 0640);
    stat(path, &after);
    assert_int_not_equal(before.st_ino, after.st_ino);
    umask(mask);
    assert_int_equal(symlink("new", link), 0);
    write_new(link, "through", 0);
    expect_file(path, "through", 0640);
    assert_int_equal(lstat(link, &before), 0);
    assert_true(S_ISLNK(before.st_mode));
    write_new("/dev/null", "nothing", 0);
    write_new("/dev/full", "nothing", ENOSPC);
    assert_int_equal(stat("/dev/full", &before), 0);
    assert_true(S_ISCHR(before.st_mode));
    write_new(missing, "nothing", ENOENT); /* no folder is made */
    unlink(link);
    unlink(path);
}

/* A name for which there is no longer one beside it. */
static void a_new_file_in_place(void **state)
{
    (void)state;
    char name[NAME_MAX + 1] = "";
    memset(name, 'x', NAME_MAX);
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    write_new(path, "text", 0);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 4);
    unlink(path);
}

/* The disk is full. What fits is not kept. */
static void a_file_that_is_not_whole(void **state)
{
    (void)state;
    char *path AUTO_FREE = mem_printf("%s/whole", folder);
    char *part AUTO_FREE = mem_printf("%s/whole.part", folder);
    struct output_target_set set = {.open_max = 4, .give_up = &give_up};
    struct output_target *target = target_whole_file(path, NULL, NULL);
    struct rlimit before, small = {.rlim_cur = 4096, .rlim_max = 4096};
    char bytes[8192] = "";
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(target_write(&set, target, bytes, sizeof(bytes)), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(target->errnum, EFBIG);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(target_write(&set, target, bytes, sizeof(bytes)), 0);
    assert_int_equal(target_end(&set, target, TARGET_CLOSE), 0);
    assert_int_equal(access(path, F_OK), -1);
    target_destroy(target);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_made),
        cmocka_unit_test(folders_are_not_made),
        cmocka_unit_test(few_descriptors_for_many_files),
        cmocka_unit_test(failures_are_told_once),
        cmocka_unit_test(a_closed_pipe_is_a_failure),
        cmocka_unit_test(giving_up_ends_a_wait),
        cmocka_unit_test(a_file_that_rests_goes_on),
        cmocka_unit_test(the_limit_of_the_process),
        cmocka_unit_test(a_failure_leaves_the_others_open),
        cmocka_unit_test(the_oldest_is_closed_first),
        cmocka_unit_test(a_signal_does_not_end_a_wait),
        cmocka_unit_test(what_is_written_in_full_was_not_given_up),
        cmocka_unit_test(descriptors_of_others_take_no_place),
        cmocka_unit_test(a_whole_file),
        cmocka_unit_test(a_file_that_is_not_whole),
        cmocka_unit_test(a_new_file),
        cmocka_unit_test(a_new_file_in_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
