/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "node/runtime_dir.h"

struct fixture {
    char place[64]; /* stands for the temporary folder */
    char *parent;   /* the folder of this user's jobs in it */
};

/* What the kernel does while another process removes a folder, or right before one is removed. */
static struct {
    const char
        *dying; /* it still opens, and nothing can be made in it, until somebody asks mkdir() */
    void (*before_rmdir)(int parent, const char *name);
} kernel;

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && kernel.dying != NULL && strcmp(path, kernel.dying) == 0) {
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(syscall(SYS_mkdirat, AT_FDCWD, path, 0700), 0);
    }
    return fd;
}

int mkdir(const char *path, mode_t mode)
{
    if (kernel.dying != NULL && strcmp(path, kernel.dying) == 0) {
        kernel.dying = NULL;
        rmdir(path);
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlinkat(int parent, const char *name, int flags)
{
    if (kernel.before_rmdir != NULL && (flags & AT_REMOVEDIR) != 0)
        kernel.before_rmdir(parent, name);
    return (int)syscall(SYS_unlinkat, parent, name, flags);
}

static int setup(void **state)
{
    static struct fixture f;
    memset(&kernel, 0, sizeof(kernel));
    f = (struct fixture){.place = "/tmp/test_runtime_dir.XXXXXX"};
    if (mkdtemp(f.place) == NULL)
        return -1;
    f.parent = mem_printf("%s/hvdrun-%u", f.place, (unsigned)geteuid());
    *state = &f;
    return setenv("TMPDIR", f.place, 1);
}

/* Every test leaves the place empty. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    free(f->parent);
    unsetenv("TMPDIR");
    return rmdir(f->place);
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void make_file(const char *folder, const char *name)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    int fd AUTO_FD = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
}

static char *make_folder(const char *folder, const char *name)
{
    char *path = mem_printf("%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static struct runtime_dir *create(void)
{
    struct error err = ERROR_INIT;
    struct runtime_dir *dir = runtime_dir_create(&err);
    assert_string_equal(err.text, "");
    assert_non_null(dir);
    return dir;
}

static void test_create_and_destroy(void **state)
{
    const struct fixture *f = *state;
    struct runtime_dir *dir = create();
    char *path AUTO_FREE = mem_strdup(runtime_dir_path(dir));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(stat(f->parent, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_memory_equal(path, f->parent, strlen(f->parent));
    char *below AUTO_FREE = make_folder(path, "a"), *deeper AUTO_FREE = make_folder(below, "b");
    make_file(deeper, "file");
    make_file(path, ".hidden");
    runtime_dir_destroy(dir);
    assert_false(exists(path));
    assert_false(exists(f->parent)); /* nobody else is in it */
    runtime_dir_destroy(NULL);
}

static void test_in_another_place(void **state)
{
    const struct fixture *f = *state;
    setenv("TMPDIR", "/nonexistent", 1);
    struct error err = ERROR_INIT;
    assert_null(runtime_dir_create(&err));
    assert_int_equal(err.errnum, ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/hvdrun-"));
    struct runtime_dir *dir = runtime_dir_create_in(f->place, &err);
    assert_non_null(dir);
    assert_memory_equal(runtime_dir_path(dir), f->parent, strlen(f->parent));
    runtime_dir_destroy(dir);
}

static void test_room(void **state)
{
    const struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct runtime_dir *dir = runtime_dir_create(&err);
    assert_int_equal(runtime_dir_room(dir, 1, "PMIx", &err), 0);
    assert_int_equal(runtime_dir_room(dir, UINT64_MAX, "PMIx", &err), -1);
    assert_int_equal(err.errnum, ENOSPC);
    char *part AUTO_FREE =
        mem_printf(" MiB left in %s (TMPDIR names the place), but PMIx needs ", f->place);
    assert_non_null(strstr(err.text, part));
    runtime_dir_destroy(dir);
}

/* While its owner lives it is locked, and nobody sweeps it. */
static void test_living_ones_stay(void **state)
{
    const struct fixture *f = *state;
    struct runtime_dir *first = create();
    make_file(runtime_dir_path(first), "precious");
    int fd AUTO_FD = open(runtime_dir_path(first), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    struct runtime_dir *second = create(); /* of the same process */
    assert_string_not_equal(runtime_dir_path(first), runtime_dir_path(second));
    char *file AUTO_FREE = mem_printf("%s/precious", runtime_dir_path(first));
    assert_true(exists(file));
    runtime_dir_destroy(second);
    assert_true(exists(file));
    assert_true(exists(f->parent));
    runtime_dir_destroy(first);
    assert_false(exists(f->parent));
}

/* What a process that was killed has left is swept by the next start. */
static void test_stale_ones_are_swept(void **state)
{
    const struct fixture *f = *state;
    int tell[2];
    assert_int_equal(fd_pipe(tell), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct runtime_dir *dir = create();
        char *below = make_folder(runtime_dir_path(dir), "pmix");
        make_file(below, "socket");
        const char *path = runtime_dir_path(dir);
        fd_write_all(tell[1], path, strlen(path));
        _exit(0); /* without runtime_dir_destroy() */
    }
    fd_close(&tell[1]);
    char path[256] = "";
    assert_true(fd_read(tell[0], path, sizeof(path) - 1) > 0);
    fd_close(&tell[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(exists(path));
    struct runtime_dir *dir = create();
    assert_false(exists(path));
    assert_true(exists(runtime_dir_path(dir)));
    runtime_dir_destroy(dir);
    assert_false(exists(f->parent));
}

/* Symbolic links are removed, not followed: neither one inside, nor one in the place of a job's
 * folder, nor the path itself. */
static void test_links_are_not_followed(void **state)
{
    const struct fixture *f = *state;
    char *outside AUTO_FREE = make_folder(f->place, "outside");
    char *victim AUTO_FREE = mem_printf("%s/victim", outside);
    make_file(outside, "victim");
    struct runtime_dir *dir = create();
    char *link_in_parent AUTO_FREE = mem_printf("%s/stale", f->parent);
    assert_int_equal(symlink(outside, link_in_parent), 0);
    struct runtime_dir *other = create(); /* sweeps */
    assert_true(exists(victim));
    char *link_inside AUTO_FREE = mem_printf("%s/link", runtime_dir_path(dir));
    assert_int_equal(symlink(outside, link_inside), 0);
    runtime_dir_destroy(dir);
    runtime_dir_destroy(other);
    assert_true(exists(victim));
    char *link_itself AUTO_FREE = mem_printf("%s/itself", f->place);
    assert_int_equal(symlink(outside, link_itself), 0);
    runtime_dir_remove(link_itself);
    assert_true(exists(victim));
    unlink(link_itself);
    unlink(link_in_parent);
    rmdir(f->parent);
    unlink(victim);
    rmdir(outside);
}

static void refused(const struct fixture *f)
{
    struct error err = ERROR_INIT;
    assert_null(runtime_dir_create(&err));
    assert_non_null(strstr(err.text, f->parent));
    assert_non_null(strstr(err.text, "TMPDIR"));
    assert_null(runtime_dir_create(NULL));
}

/* Somebody else may have made the folder first: it has to be ours alone, and a real folder. */
static void test_foreign_parents_are_refused(void **state)
{
    const struct fixture *f = *state;
    static const mode_t modes[] = {0755, 0770, 0701, 01777, 0720};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(mkdir(f->parent, 0700), 0);
        assert_int_equal(chmod(f->parent, modes[i]), 0);
        refused(f);
        char *other AUTO_FREE = make_folder(f->parent, "1.0");
        runtime_dir_sweep(); /* what is in there is not ours to remove */
        assert_int_equal(rmdir(other), 0);
        assert_int_equal(rmdir(f->parent), 0); /* and nothing was made in it */
    }
    char *elsewhere AUTO_FREE = make_folder(f->place, "elsewhere");
    assert_int_equal(symlink(elsewhere, f->parent), 0);
    refused(f);
    assert_int_equal(rmdir(elsewhere), 0);
    refused(f); /* now the link leads nowhere */
    unlink(f->parent);
    make_file(f->place, strrchr(f->parent, '/') + 1);
    refused(f);
    unlink(f->parent);
}

static void test_another_users_parent_is_refused(void **state)
{
    const struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(f->parent, 0700), 0);
    assert_int_equal(chown(f->parent, 12345, 12345), 0);
    refused(f);
    char *other AUTO_FREE = make_folder(f->parent, "1.0");
    runtime_dir_sweep();
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(rmdir(f->parent), 0);
}

/* With so many descriptors, neither kind of folder can be made: said with its cause, and nothing
 * stays. The parent needs one, and its folder the second. */
static int try_with(const struct fixture *f, rlim_t free_ones)
{
    int lowest = open("/dev/null", O_RDONLY);
    close(lowest);
    struct rlimit limit = {(rlim_t)lowest + free_ones, (rlim_t)lowest + free_ones};
    setrlimit(RLIMIT_NOFILE, &limit);
    struct error err = ERROR_INIT, kept_err = ERROR_INIT;
    bool own = runtime_dir_create(&err) == NULL && err.errnum == EMFILE && !exists(f->parent);
    bool kept = runtime_dir_open_kept(".kept", &kept_err) < 0 && kept_err.errnum == EMFILE &&
                !exists(f->parent);
    return own && kept ? 0 : 1;
}

static void test_no_descriptors(void **state)
{
    const struct fixture *f = *state;
    for (rlim_t free_ones = 0; free_ones < 2; free_ones++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(try_with(f, free_ones));
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* What the keeper of a dead agent calls: the tree, and the parent only when it is empty then. */
static void test_remove(void **state)
{
    const struct fixture *f = *state;
    char *parent AUTO_FREE = make_folder(f->place, "hvdrun-7");
    char *one AUTO_FREE = make_folder(parent, "1"), *two AUTO_FREE = make_folder(parent, "2");
    char *deep = mem_strdup(one);
    for (int i = 0; i < 20; i++) {
        char *below = make_folder(deep, "d");
        make_file(deep, "f");
        free(deep);
        deep = below;
    }
    free(deep);
    runtime_dir_remove(one);
    assert_false(exists(one));
    assert_true(exists(two));
    runtime_dir_remove(one); /* again: nothing */
    assert_true(exists(two));
    runtime_dir_remove(two);
    assert_false(exists(parent));
}

/* In a container, /tmp may be empty, and root may remove it. */
static void test_a_parent_of_somebody_else_stays(void **state)
{
    const struct fixture *f = *state;
    char *parent AUTO_FREE = make_folder(f->place, "tmp");
    char *only AUTO_FREE = make_folder(parent, "1");
    runtime_dir_remove(only);
    assert_false(exists(only));
    assert_int_equal(rmdir(parent), 0);
}

static void expect_locked(int parent, const char *name)
{
    kernel.before_rmdir = NULL;
    int fd AUTO_FD = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
}

/* Who sweeps may not lock the folder of a process that removes it: by then, the name may be that of
 * the next one. */
static void test_locked_to_the_end(void **state)
{
    (void)state;
    struct runtime_dir *dir = create();
    kernel.before_rmdir = expect_locked;
    runtime_dir_destroy(dir);
    assert_null(kernel.before_rmdir);
}

/* The last job removes the parent, and stands still in the middle of that. */
static void test_a_parent_that_goes_slowly(void **state)
{
    const struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(mkdir(f->parent, 0700), 0);
    kernel.dying = f->parent;
    struct runtime_dir *dir = create();
    runtime_dir_destroy(dir);
    assert_int_equal(mkdir(f->parent, 0700), 0);
    kernel.dying = f->parent;
    int fd = runtime_dir_open_kept(".kept", &err);
    assert_true(fd >= 0);
    fd_close(&fd);
    char *kept AUTO_FREE = mem_printf("%s/.kept", f->parent);
    assert_int_equal(rmdir(kept), 0);
    assert_int_equal(rmdir(f->parent), 0);
}

/* Jobs that begin and end all the time, each removing the parent when it was the last one: every
 * start succeeds. */
static void test_many_at_once(void **state)
{
    const struct fixture *f = *state;
    enum { PROCESSES = 4, ROUNDS = 400 };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            struct error err = ERROR_INIT;
            struct runtime_dir *dir = runtime_dir_create(&err);
            if (dir == NULL) {
                fprintf(stderr, "round %d: %s\n", round, err.text);
                _exit(1);
            }
            if (!exists(runtime_dir_path(dir)))
                _exit(2);
            runtime_dir_destroy(dir);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_false(exists(f->parent));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_create_and_destroy),
        TEST(test_in_another_place),
        TEST(test_room),
        TEST(test_living_ones_stay),
        TEST(test_stale_ones_are_swept),
        TEST(test_links_are_not_followed),
        TEST(test_foreign_parents_are_refused),
        TEST(test_another_users_parent_is_refused),
        TEST(test_no_descriptors),
        TEST(test_remove),
        TEST(test_a_parent_of_somebody_else_stays),
        TEST(test_locked_to_the_end),
        TEST(test_a_parent_that_goes_slowly),
        TEST(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
