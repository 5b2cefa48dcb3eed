/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that are removed: deep ones, read-only ones, links, and not longer than the pace allows. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"

#define DEEP 150

static int open_top(void **state)
{
    char path[] = "/tmp/hvdrun-unit-tree-XXXXXX";
    if (mkdtemp(path) == NULL)
        return -1;
    *state = mem_strdup(path);
    return 0;
}

static int close_top(void **state)
{
    char *path = *state;
    int result = tree_remove(AT_FDCWD, path, NULL);
    free(path);
    return result;
}

static int folder(int parent, const char *name)
{
    assert_int_equal(mkdirat(parent, name, 0700), 0);
    return fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void file(int parent, const char *name)
{
    int fd AUTO_FD = openat(parent, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    assert_true(fd >= 0);
}

static void test_deep(void **state)
{
    int top AUTO_FD = fd_open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int at = folder(top, "tree");
    for (int i = 0; i < DEEP; i++) {
        file(at, "file");
        int below = folder(at, "deeper");
        assert_int_equal(fchmod(at, 0500), 0);
        fd_close(&at);
        at = below;
    }
    fd_close(&at);
    assert_int_equal(tree_remove(top, "tree", NULL), 0);
    assert_int_equal(faccessat(top, "tree", F_OK, 0), -1);
    assert_int_equal(tree_remove(top, "tree", NULL), 0);
}

static void test_links(void **state)
{
    int top AUTO_FD = fd_open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int other AUTO_FD = folder(top, "other");
    int tree AUTO_FD = folder(top, "tree");
    file(other, "file");
    assert_int_equal(symlinkat("../other", tree, "link"), 0);
    assert_int_equal(symlinkat("other", top, "link"), 0);
    assert_int_equal(tree_remove(top, "tree", NULL), 0);
    assert_int_equal(tree_remove(top, "link", NULL), -1);
    assert_int_equal(faccessat(other, "file", F_OK, 0), 0);
}

struct count {
    struct tree_pace base;
    int left;
};

static bool counts(struct tree_pace *pace)
{
    return ((struct count *)pace)->left-- > 0;
}

static void test_pace(void **state)
{
    int top AUTO_FD = fd_open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int tree AUTO_FD = folder(top, "tree");
    struct count count = {{counts}, 2};
    file(tree, "a"), file(tree, "b"), file(tree, "c");
    assert_int_equal(tree_remove(top, "tree", &count.base), -1);
    assert_int_equal(tree_remove(top, "tree", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_deep, open_top, close_top),
        cmocka_unit_test_setup_teardown(test_links, open_top, close_top),
        cmocka_unit_test_setup_teardown(test_pace, open_top, close_top)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
