/* SPDX-License-Identifier: Apache-2.0 */
/* A real tree of processes: two children, the first with two children of its own, one of which has
 * a child made by a second thread. All wait until the test closes its end of a pipe. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "node/descendants.h"
#include "node/proc_state.h"

#define MANY 1000

struct tree {
    int hold[2];  /* the test keeps [1]; a process ends when [0] is at its end */
    int tells[2]; /* each process writes its pid when it is there */
};

static void wait_for_the_end(const struct tree *tree)
{
    char byte;
    close(tree->hold[1]);
    (void)!read(tree->hold[0], &byte, 1);
    while (wait(NULL) > 0) {
    }
    _exit(0);
}

static void tell(const struct tree *tree)
{
    pid_t self = getpid();
    if (write(tree->tells[1], &self, sizeof(self)) != sizeof(self))
        _exit(1);
}

static void *fork_in_thread(void *context)
{
    const struct tree *tree = context;
    if (fork() == 0) {
        tell(tree);
        wait_for_the_end(tree);
    }
    char byte;
    (void)!read(tree->hold[0], &byte, 1); /* the thread has to live as long as its child */
    return NULL;
}

static void grandchild(struct tree *tree, bool threaded)
{
    if (fork() != 0)
        return;
    tell(tree);
    pthread_t thread;
    close(tree->hold[1]);
    if (threaded && pthread_create(&thread, NULL, fork_in_thread, tree) == 0)
        pthread_join(thread, NULL);
    wait_for_the_end(tree);
}

static pid_t child(struct tree *tree, bool with_children)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    tell(tree);
    if (with_children) {
        grandchild(tree, false);
        grandchild(tree, true);
    }
    wait_for_the_end(tree);
    return 0;
}

static size_t report(pid_t pid, size_t max, struct buf *out)
{
    struct descendants_table *table = descendants_table_read(MANY);
    size_t count = proc_state_report(table, pid, max, out);
    descendants_table_destroy(table);
    return count;
}

static int compare(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void assert_same(const pid_t *expected, pid_t *found, size_t count, size_t want)
{
    assert_int_equal(count, want);
    qsort(found, count, sizeof(*found), compare);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], expected[i]);
}

static void expect_in(const struct descendants_table *table, const pid_t *expected, size_t wanted)
{
    pid_t *found = NULL;
    size_t count = descendants_in(table, getpid(), &found);
    assert_same(expected, found, count, wanted);
    free(found);
}

/* The process above us stands for all others of the machine: they are in the table only when it
 * could not be made without them. */
static size_t beside_us(const struct descendants_table *table)
{
    pid_t *found = NULL;
    size_t count = descendants_in(table, getppid(), &found);
    free(found);
    return count;
}

/* Seven threads are there: ours, and those of five processes, one of which has two. */
static void expect_tables(const pid_t *expected, size_t wanted)
{
    char children[64];
    snprintf(children, sizeof(children), "/proc/self/task/%d/children", (int)getpid());
    bool listed = access(children, F_OK) == 0;
    for (size_t threads = 0; threads <= 8; threads++) {
        struct descendants_table *table = descendants_table_read(threads);
        expect_in(table, expected, wanted);
        if (listed && threads >= 7)
            assert_int_equal(beside_us(table), 0);
        else
            assert_true(beside_us(table) > wanted);
        descendants_table_destroy(table);
    }
}

struct asked {
    pid_t spared;
    size_t count;
};

static bool is_spared(const void *context, pid_t pid)
{
    struct asked *asked = (struct asked *)(uintptr_t)context;
    asked->count++;
    return pid == asked->spared;
}

/* Of a child with children of its own, and of one without: what is below a spared one is not even
 * looked at. */
static void expect_spared(pid_t with, pid_t without)
{
    pid_t *found = NULL;
    struct asked asked = {.spared = with};
    struct descendants_spared spared = {is_spared, &asked};
    assert_int_equal(descendants_list_except(getpid(), &spared, &found), 1);
    assert_int_equal(found[0], without);
    assert_int_equal(asked.count, 2);
    free(found);
    asked = (struct asked){.spared = without};
    assert_int_equal(descendants_list_except(getpid(), &spared, &found), 4);
    assert_int_equal(found[0], with);
    assert_int_equal(asked.count, 5);
    free(found);
}

static void test_tree(void **state)
{
    (void)state;
    struct tree tree;
    pid_t expected[5], *found = NULL;
    assert_int_equal(pipe(tree.hold), 0);
    assert_int_equal(pipe(tree.tells), 0);
    pid_t with = child(&tree, true), without = child(&tree, false);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(read(tree.tells[0], &expected[i], sizeof(pid_t)), sizeof(pid_t));
    qsort(expected, 5, sizeof(expected[0]), compare);

    size_t count = descendants_list(getpid(), &found);
    /* parents come before their children: the first is a child of ours */
    assert_true(count == 5);
    assert_same(expected, found, count, 5);
    free(found);
    count = descendants_scan(getpid(), NULL, &found);
    assert_same(expected, found, count, 5);
    free(found);

    expect_spared(with, without);
    expect_tables(expected, 5);

    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    assert_int_equal(report(getpid(), 100, &text), 6);
    assert_non_null(strstr(buf_text(&text), "sleeping"));
    buf_clear(&text);
    assert_int_equal(report(getpid(), 2, &text), 2);
    assert_non_null(strstr(buf_text(&text), "and 4 more processes\n"));

    close(tree.hold[1]);
    while (wait(NULL) > 0) {
    }
    assert_int_equal(descendants_list(getpid(), &found), 0);
    assert_null(found);
    assert_int_equal(descendants_scan(getpid(), NULL, &found), 0);
    close(tree.hold[0]);
    close(tree.tells[0]);
    close(tree.tells[1]);
}

/* An ended child that nobody has reaped is listed, and its state is said. */
static void test_zombie(void **state)
{
    (void)state;
    pid_t *found = NULL, pid = fork();
    if (pid == 0)
        _exit(3);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(descendants_list(getpid(), &found), 1);
    assert_int_equal(found[0], pid);
    free(found);
    struct buf text AUTO_BUF = BUF_INIT(4096);
    assert_int_equal(report(pid, 10, &text), 1);
    assert_non_null(strstr(buf_text(&text), "ended, not reaped"));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    buf_clear(&text);
    assert_int_equal(report(pid, 10, &text), 0);
    assert_int_equal(text.length, 0);
}

/* A name that looks like the end of the field, and a report that does not fit. */
static void test_odd_name(void **state)
{
    (void)state;
    char before[17] = "";
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) Z (\n 1"), 0);
    struct buf text AUTO_BUF = BUF_INIT(4096);
    assert_int_equal(report(getpid(), 10, &text), 1);
    assert_non_null(strstr(buf_text(&text), "(a) Z (? 1): running"));
    struct buf small AUTO_BUF = BUF_INIT(16);
    (void)report(getpid(), 10, &small);
    assert_true(small.length <= 16);
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
    assert_string_equal(proc_state_word('D'), "in uninterruptible wait");
    assert_string_equal(proc_state_word('?'), "in an unknown state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_zombie),
        cmocka_unit_test(test_odd_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
