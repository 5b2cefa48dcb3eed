/* SPDX-License-Identifier: Apache-2.0 */
/* The children are /bin/sh, from threads of this process. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/child.h"
#include "io/threads.h"

#define CHILDREN 100

struct start {
    struct spawner_task task;
    const char *script;
    bool lasts;
    pid_t pid;
};

static sigset_t no_signals;

static void run(struct spawner_task *task)
{
    struct start *start = (struct start *)task;
    char *argv[] = {"sh", "-c", (char *)start->script, NULL}, *envp[] = {NULL};
    struct child_spec spec = {.path = "/bin/sh",
                              .argv = argv,
                              .envp = envp,
                              .fds = {0, 1, 2},
                              .keep_fd = -1,
                              .lasting = start->lasts,
                              .mask = &no_signals};
    start->pid = child_spawn(&spec, NULL, NULL);
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_side_by_side(void **state)
{
    struct spawners *spawners = spawners_create(4);
    struct start starts[CHILDREN];
    char scripts[CHILDREN][16];
    (void)state;
    assert_non_null(spawners);
    for (int i = 0; i < CHILDREN; i++) {
        snprintf(scripts[i], sizeof(scripts[i]), "exit %d", i);
        starts[i] = (struct start){.task.run = run, .script = scripts[i], .lasts = true};
        spawners_add(spawners, &starts[i].task);
    }
    for (int i = CHILDREN; i-- > 0;)
        spawners_wait(spawners, &starts[i].task);
    for (int i = 0; i < CHILDREN; i++) {
        assert_true(starts[i].pid > 0);
        int status = end_of(starts[i].pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), i);
    }
    spawners_destroy(spawners);
}

static int threads_here(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* A thread that has nothing to do stays: its child would die with it. */
static void test_the_threads_stay(void **state)
{
    int before = threads_here();
    struct spawners *spawners = spawners_create(2);
    struct start lasting = {.task.run = run, .script = "while :; do sleep 1; done"};
    struct start others[8];
    (void)state;
    assert_non_null(spawners);
    spawners_add(spawners, &lasting.task);
    spawners_wait(spawners, &lasting.task);
    assert_true(lasting.pid > 0);
    for (int i = 0; i < 8; i++) {
        others[i] = (struct start){.task.run = run, .script = ":", .lasts = true};
        spawners_add(spawners, &others[i].task);
    }
    for (int i = 0; i < 8; i++) {
        spawners_wait(spawners, &others[i].task);
        assert_int_equal(end_of(others[i].pid), 0);
    }
    assert_int_equal(threads_here(), before + 2);
    assert_int_equal(waitpid(lasting.pid, NULL, WNOHANG), 0);
    spawners_destroy(spawners);
    int status = end_of(lasting.pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The size of the table of descriptors. */
static long table_size(void)
{
    char line[256];
    long size = -1;
    FILE *status = fopen("/proc/self/status", "re");
    assert_non_null(status);
    while (fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "FDSize:", 7) == 0)
            size = strtol(line + 7, NULL, 10);
    }
    fclose(status);
    return size;
}

/* Room for descriptors costs none. */
static void test_room_for_descriptors(void **state)
{
    (void)state;
    struct rlimit limit;
    size_t wanted = (size_t)table_size() + 100;
    int before = dup(2);
    close(before);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(fd_reserve(wanted), limit.rlim_cur > wanted);
    assert_int_equal(table_size() > (long)wanted, limit.rlim_cur > wanted);
    assert_false(fd_reserve(SIZE_MAX));
    int after = dup(2);
    close(after);
    assert_int_equal(after, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_the_threads_stay),
        cmocka_unit_test(test_room_for_descriptors),
    };
    sigemptyset(&no_signals);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
