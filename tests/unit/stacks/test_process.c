/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of processes that run here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/mem.h"
#include "python_child.h"
#include "stacks/process.h"
#include "stacks/tasks.h"
#include "unit.h"

#define SECOND ((int64_t)1000000000)

static int read_until(pid_t pid, int64_t deadline_ns, struct process_stacks *out)
{
    struct runtime_files *files = runtime_files_create();
    int result = process_stacks_read(files, &rights_own, pid, deadline_ns, out);
    runtime_files_destroy(files);
    return result;
}

static int read_now(pid_t pid, struct process_stacks *out)
{
    return read_until(pid, unit_limit_ns(10 * SECOND), out);
}

static void test_a_python_that_waits(void **state)
{
    (void)state;
    struct process_stacks stacks;
    pid_t pid = python_child_start(PYTHON_PROGRAM, true);
    if (pid < 0)
        skip();
    assert_int_equal(read_now(pid, &stacks), 1);
    assert_null(stacks.trouble);
    assert_int_equal(stacks.count, 2);
    const struct process_thread *first = &stacks.threads[0], *second = &stacks.threads[1];
    assert_true(first->main && !second->main);
    assert_int_equal(first->tid, pid);
    assert_true(second->tid > 0 && second->tid != pid);
    assert_false(first->running || second->running);
    assert_true(first->call >= 0);
    assert_int_equal(second->call, SYS_futex);
    assert_int_equal(first->count, 4);
    assert_string_equal(first->frames[3].function, "inner");
    assert_string_equal(first->frames[1].file, "/app/train.py");
    assert_int_equal(first->frames[3].line, 8);
    assert_string_equal(second->frames[second->count - 1].function, "wait");
    process_stacks_destroy(&stacks);
    python_child_end(pid);
    assert_int_equal(read_now(pid, &stacks), 0); /* it has ended */
    process_stacks_destroy(&stacks);
}

/* Reads until the first thread is in this function, and has the GIL. A busy machine takes its time.
 */
static bool read_until_held(pid_t pid, const char *function, struct process_stacks *out)
{
    const int64_t limit_ms = unit_limit_ms(30000), deadline_ns = unit_limit_ns(30 * SECOND);
    while (!unit_is_over(limit_ms)) {
        int result = read_until(pid, deadline_ns, out);
        const struct process_thread *first = result == 1 ? out->threads : NULL;
        if (first != NULL && out->count > 0 && first->count > 0 && first->holds_gil &&
            strcmp(first->frames[first->count - 1].function, function) == 0)
            return true;
        process_stacks_destroy(out);
        usleep(20000);
    }
    return false;
}

/* C code that does not let go of the GIL: one sum, for days. */
static void test_the_holder_of_the_gil(void **state)
{
    (void)state;
    struct process_stacks stacks;
    pid_t pid = python_child_start("import _thread, os\n"
                                   "lock = _thread.allocate_lock()\n"
                                   "def other():\n"
                                   "    lock.release()\n"
                                   "    while True: pass\n"
                                   "def spin():\n"
                                   "    lock.acquire()\n"
                                   "    return sum(range(10 ** 15))\n"
                                   "lock.acquire()\n"
                                   "_thread.start_new_thread(other, ())\n"
                                   "os.write(1, b'.')\n"
                                   "spin()\n",
                                   false);
    if (pid < 0)
        skip();
    assert_true(read_until_held(pid, "spin", &stacks));
    const struct process_thread *spins = &stacks.threads[0];
    assert_int_equal(stacks.count, 2);
    assert_int_equal(spins->frames[spins->count - 1].line, 8);
    assert_true(spins->running && !stacks.threads[1].holds_gil);
    assert_string_equal(stacks.threads[1].frames[stacks.threads[1].count - 1].function, "other");
    process_stacks_destroy(&stacks);
    python_child_end(pid);
}

/* Threads that start, call, and end as fast as they can: what comes out is never wrong. */
static void test_a_python_that_runs(void **state)
{
    (void)state;
    pid_t pid =
        python_child_start("import os, threading\n"
                           "def a(n): return b(n - 1) if n else 0\n"
                           "def b(n): return a(n - 1) if n else 0\n"
                           "def gen(n):\n"
                           "    for i in range(n): yield a(i)\n"
                           "def work():\n"
                           "    for i in range(50): sum(gen(9))\n"
                           "os.write(1, b'.')\n"
                           "while True:\n"
                           "    threads = [threading.Thread(target=work) for i in range(4)]\n"
                           "    for t in threads: t.start()\n"
                           "    for t in threads: t.join()\n",
                           false);
    if (pid < 0)
        skip();
    struct runtime_files *files = runtime_files_create();
    for (int round = 0; round < 50; round++) {
        struct process_stacks stacks;
        int64_t deadline_ns = unit_limit_ns(10 * SECOND);
        assert_int_equal(process_stacks_read(files, &rights_own, pid, deadline_ns, &stacks), 1);
        for (size_t i = 0; i < stacks.count; i++) {
            const struct process_thread *thread = &stacks.threads[i];
            bool below = false; /* a() and b() call each other, and nothing else */
            for (size_t j = 0; j < thread->count; j++) {
                const char *name = thread->frames[j].function;
                bool own = strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
                assert_true(!below || own);
                below = own;
                assert_true(thread->frames[j].line >= 0 && thread->frames[j].line < 5000);
            }
        }
        process_stacks_destroy(&stacks);
    }
    runtime_files_destroy(files);
    python_child_end(pid);
}

/* One thread whose calls are shorter than one look at them: no look is a whole one. It runs, so
 * nobody may say that its frames cannot be read. */
static void test_a_python_that_changes_too_fast(void **state)
{
    (void)state;
    pid_t pid = python_child_start("import os\n"
                                   "def deep(n): return deep(n - 1) if n else 0\n"
                                   "os.write(1, b'.')\n"
                                   "while True: deep(20)\n",
                                   false);
    if (pid < 0)
        skip();
    for (int round = 0; round < 100; round++) {
        struct process_stacks stacks;
        assert_int_equal(read_now(pid, &stacks), 1);
        assert_null(stacks.trouble);
        assert_int_equal(stacks.count, 1);
        assert_true(stacks.threads[0].frames != NULL || stacks.threads[0].running);
        process_stacks_destroy(&stacks);
    }
    python_child_end(pid);
}

static void test_a_deep_stack(void **state)
{
    (void)state;
    struct process_stacks stacks;
    pid_t pid = python_child_start("import os, time\n"
                                   "def down(n):\n"
                                   "    if n: down(n - 1)\n"
                                   "    else: os.write(1, b'.'); time.sleep(1000)\n"
                                   "down(200)\n",
                                   true);
    if (pid < 0)
        skip();
    assert_int_equal(read_now(pid, &stacks), 1);
    const struct process_thread *thread = &stacks.threads[0];
    assert_int_equal(thread->count, PROCESS_FRAMES_MAX + 1);
    assert_string_equal(thread->frames[20].function, "(143 frames)"); /* of 203 */
    assert_string_equal(thread->frames[1].function, "<module>");
    assert_int_equal(thread->frames[PROCESS_FRAMES_MAX].line, 4);
    process_stacks_destroy(&stacks);
    python_child_end(pid);
}

static void test_no_python(void **state)
{
    (void)state;
    struct process_stacks stacks;
    pid_t pid = python_child_run("/bin/sh", "-c", "echo; exec sleep 1000", "");
    assert_true(pid > 0);
    assert_int_equal(read_now(pid, &stacks), 0);
    process_stacks_destroy(&stacks);
    python_child_end(pid);
}

/* epoll_wait() returns when its thread is stopped, and then the program ends. */
static void test_nothing_is_stopped(void **state)
{
    (void)state;
    pid_t pid = python_child_start("import ctypes, os\n"
                                   "libc = ctypes.CDLL(None)\n"
                                   "fd = libc.epoll_create1(0)\n"
                                   "os.write(1, b'.')\n"
                                   "libc.epoll_wait(fd, ctypes.create_string_buffer(64), 1, -1)\n"
                                   "os._exit(9)\n",
                                   true);
    if (pid < 0)
        skip();
    for (int i = 0; i < 100; i++) {
        struct process_stacks stacks;
        assert_int_equal(read_now(pid, &stacks), 1);
        assert_null(stacks.trouble);
        process_stacks_destroy(&stacks);
    }
    usleep(50000);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGSTOP); /* as it would have been */
    int status = 0;
    assert_true(python_child_wait(pid, &status, WUNTRACED));
    kill(pid, SIGCONT);
    assert_true(python_child_wait(pid, &status, 0));
    python_child_note(pid, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

static void test_too_late(void **state)
{
    (void)state;
    struct process_stacks stacks;
    pid_t pid = python_child_start(PYTHON_PROGRAM, true);
    if (pid < 0)
        skip();
    struct runtime_files *files = runtime_files_create();
    (void)process_stacks_read(files, &rights_own, pid, unit_limit_ns(-1), &stacks);
    assert_int_equal(stacks.count, 0);
    process_stacks_destroy(&stacks);
    runtime_files_destroy(files);
    python_child_end(pid);
}

/* A process can forbid that its memory is read, by anybody but root. */
static void test_a_process_that_hides(void **state)
{
    (void)state;
    int ends[2];
    char answer = '?';
    const char *python = python_program();
    if (python == NULL)
        skip();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t reader = fork();
    if (reader == 0) { /* without privileges, both */
        struct process_stacks stacks;
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        pid_t pid = python_child(python,
                                 "import ctypes, os, time\n"
                                 "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
                                 "os.write(1, b'.')\n"
                                 "time.sleep(1000)\n",
                                 true);
        bool hidden = pid > 0 && read_now(pid, &stacks) == 1 && stacks.trouble != NULL &&
                      strstr(stacks.trouble, "its memory cannot be read: ") != NULL;
        python_child_end(pid);
        pid = python_child(python, PYTHON_PROGRAM, true);
        bool shown = pid > 0 && read_now(pid, &stacks) == 1 && stacks.trouble == NULL &&
                     stacks.count == 2 && stacks.threads[0].count == 4;
        python_child_end(pid);
        answer = hidden && shown ? 'y' : hidden ? 'h' : shown ? 's' : 'n';
        _exit(write(ends[1], &answer, 1) == 1 ? 0 : 1);
    }
    assert_true(reader > 0);
    python_child_note(0, reader);
    close(ends[1]);
    struct pollfd output = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&output, 1, 6 * PYTHON_CHILD_MS), 1); /* two programs start and end */
    assert_int_equal(read(ends[0], &answer, 1), 1);
    close(ends[0]);
    python_child_end(reader);
    assert_int_equal(answer, 'y');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_python_that_waits, python_children_end),
        cmocka_unit_test_teardown(test_the_holder_of_the_gil, python_children_end),
        cmocka_unit_test_teardown(test_a_python_that_runs, python_children_end),
        cmocka_unit_test_teardown(test_a_python_that_changes_too_fast, python_children_end),
        cmocka_unit_test_teardown(test_a_deep_stack, python_children_end),
        cmocka_unit_test_teardown(test_no_python, python_children_end),
        cmocka_unit_test_teardown(test_nothing_is_stopped, python_children_end),
        cmocka_unit_test_teardown(test_too_late, python_children_end),
        cmocka_unit_test_teardown(test_a_process_that_hides, python_children_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
