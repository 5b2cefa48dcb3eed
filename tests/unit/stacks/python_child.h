/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real Python that hangs, for tests of this room. Its program has the name /app/train.py, and
 * these stacks: <module>:12 > outer:10 > inner:8 in the first thread, wait:4 in the second. Its
 * second thread holds no library's frame, so that images of it name no path of the machine.
 */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit.h"

/* How long a program may take to write its byte, to sleep, or to end. */
enum { PYTHON_CHILD_MS = 20000 };

#define PYTHON_PROGRAM                                                       \
    "import _thread, os, time\n"                                             \
    "lock = _thread.allocate_lock()\n"                                       \
    "def wait():\n"                                                          \
    "    lock.acquire()\n"                                                   \
    "def inner(n):\n"                                                        \
    "    os.write(1, b'.')\n"                                                \
    "    return max(\n"                                                      \
    "        time.sleep(1000), n)\n"                                         \
    "def outer_\xc3\xa9(n):\n"                                               \
    "    return inner(n)\n"                                                  \
    "lock.acquire(); _thread.start_new_thread(wait, ()); time.sleep(0.05)\n" \
    "outer_\xc3\xa9(3)\n"

/* HVDRUN_IMAGE_PYTHON is another interpreter. NULL: there is none. */
static inline const char *python_program(void)
{
    const char *given = getenv("HVDRUN_IMAGE_PYTHON");
    const char *python = given != NULL ? given : "/usr/bin/python3";
    return access(python, X_OK) == 0 ? python : NULL;
}

/* Waits until its first thread has slept for a while. false: it did not. */
static inline bool python_child_settle(pid_t pid)
{
    char path[64], text[512];
    int64_t limit_ms = unit_limit_ms(PYTHON_CHILD_MS);
    int asleep = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (asleep < 5 && !unit_is_over(limit_ms)) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        text[got > 0 ? got : 0] = '\0';
        asleep = strstr(text, ") S ") != NULL ? asleep + 1 : 0;
        close(fd);
        usleep(10000);
    }
    return asleep >= 5;
}

/* The groups that run. A test that fails leaves its own to python_children_end(). */
#define PYTHON_CHILDREN_MAX 64
static pid_t python_children[PYTHON_CHILDREN_MAX];

static inline void python_child_note(pid_t from, pid_t to)
{
    for (int i = 0; i < PYTHON_CHILDREN_MAX; i++) {
        if (python_children[i] == from) {
            python_children[i] = to;
            return;
        }
    }
}

/* Waits until it has ended, or with WUNTRACED has stopped. false: it did not. */
static inline bool python_child_wait(pid_t pid, int *status, int options)
{
    int64_t limit_ms = unit_limit_ms(PYTHON_CHILD_MS);
    pid_t found = waitpid(pid, status, options | WNOHANG);
    while (found == 0 && !unit_is_over(limit_ms)) {
        unit_pause();
        found = waitpid(pid, status, options | WNOHANG);
    }
    return found == pid;
}

/* Ends it if it has started. */
static inline void python_child_end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(-pid, SIGKILL); /* and what it has started */
    kill(pid, SIGKILL);
    (void)python_child_wait(pid, NULL, 0);
    python_child_note(pid, 0);
}

/* Runs a program in a process group of its own, until it has written a byte. -1: it did not. */
static inline pid_t python_child_run(const char *program, const char *one, const char *two,
                                     const char *three)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left when a test fails */
        setpgid(0, 0);
        dup2(ends[1], 1);
        execl(program, program, one, two, three, three, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    if (pid > 0) {
        setpgid(pid, pid); /* one of both is first */
        python_child_note(0, pid);
        struct pollfd output = {.fd = ends[0], .events = POLLIN};
        if (poll(&output, 1, PYTHON_CHILD_MS) != 1 || read(ends[0], &byte, 1) != 1) {
            python_child_end(pid);
            pid = -1;
        }
    }
    close(ends[0]);
    return pid;
}

/* Starts Python, and returns when it has written a byte and, if it `sleeps`, its first thread
 * does. -1: it did not. */
static inline pid_t python_child(const char *python, const char *source, bool sleeps)
{
    static const char loader[] =
        "import sys; exec(compile(sys.argv[1], '/app/train.py', 'exec'), {'__name__': 'train'})";
    pid_t pid = python_child_run(python, "-Ic", loader, source);
    if (pid > 0 && sleeps && !python_child_settle(pid)) {
        python_child_end(pid);
        pid = -1;
    }
    return pid;
}

/* The same for a test, which fails if Python does not start. -1: no Python is here. */
static inline pid_t python_child_start(const char *source, bool sleeps)
{
    const char *python = python_program();
    pid_t pid = python != NULL ? python_child(python, source, sleeps) : -1;
    assert_true(python == NULL || pid > 0);
    return pid;
}

/* A teardown: also after a failed assertion, nothing runs on. */
static inline int python_children_end(void **state)
{
    (void)state;
    for (int i = 0; i < PYTHON_CHILDREN_MAX; i++) {
        if (python_children[i] > 0)
            python_child_end(python_children[i]);
    }
    return 0;
}
