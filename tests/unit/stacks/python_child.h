/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real Python that hangs, for tests of this room. Its program has the name /app/train.py, and
 * these stacks: <module>:12 > outer:10 > inner:8 in the first thread, wait:4 in the second. Its
 * second thread holds no library's frame, so that images of it name no path of the machine.
 */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Waits until its first thread has slept for a while; a program that does not sleep costs 1 s. */
static inline void python_child_settle(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    for (int i = 0, asleep = 0; i < 100 && asleep < 5; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        text[got > 0 ? got : 0] = '\0';
        asleep = strstr(text, ") S ") != NULL ? asleep + 1 : 0;
        close(fd);
        usleep(10000);
    }
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
    if (pid > 0)
        setpgid(pid, pid); /* one of both is first */
    python_child_note(0, pid);
    if (read(ends[0], &byte, 1) != 1) {
        waitpid(pid, NULL, 0);
        python_child_note(pid, 0);
        pid = -1;
    }
    close(ends[0]);
    return pid;
}

/* Starts Python, and returns when it has written a byte and, if it `sleeps`, its first thread
 * does. */
static inline pid_t python_child(const char *python, const char *source, bool sleeps)
{
    static const char loader[] =
        "import sys; exec(compile(sys.argv[1], '/app/train.py', 'exec'), {'__name__': 'train'})";
    pid_t pid = python_child_run(python, "-Ic", loader, source);
    if (pid > 0 && sleeps)
        python_child_settle(pid);
    return pid;
}

static inline void python_child_end(pid_t pid)
{
    kill(-pid, SIGKILL); /* and what it has started */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    python_child_note(pid, 0);
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
