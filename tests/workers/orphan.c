/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphan [--kind child|daemon|closed] [--code C] [--gate PATH]
 * Leaves a process behind that ignores every signal it can, then exits with C (with --gate: when
 * the file exists). "child" stays in the worker's session and keeps its stdout open; "daemon" forks
 * twice and has a session of its own, stdout still open; "closed" is a daemon that has no
 * descriptor, another folder and an empty environment.
 */
#include "worker.h"

static void stay(bool closed)
{
    for (int number = 1; number < SIGRTMIN; number++)
        signal(number, SIG_IGN);
    if (closed) {
        if (chdir("/") != 0)
            _exit(97);
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        extern char **environ;
        char *const none[] = {NULL};
        char *const argv[] = {"orphan", "--stay", NULL};
        execve("/proc/self/exe", argv, none);
        (void)environ;
    }
    wait_for_ever();
}

int main(int argc, char **argv)
{
    if (flag(argc, argv, "--stay"))
        stay(false);
    const char *kind = option(argc, argv, "--kind", "child");
    int ready[2];
    if (pipe(ready) != 0)
        return 97;
    const pid_t child = fork();
    if (child == 0) {
        if (strcmp(kind, "child") != 0) {
            setsid();
            if (fork() != 0)
                _exit(0);
        }
        const pid_t self = getpid();
        write_all(ready[1], &self, sizeof self);
        close(ready[0]);
        close(ready[1]);
        stay(strcmp(kind, "closed") == 0);
    }
    pid_t left = 0;
    if (read(ready[0], &left, sizeof left) != sizeof left)
        return 97;
    dprintf(1, "left %d behind\n", (int)left);
    const char *gate = option(argc, argv, "--gate", NULL);
    if (gate != NULL)
        wait_for_file(gate);
    _exit((int)to_number(option(argc, argv, "--code", "0")));
}
