/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop [--rank R|all] [--kind self|child|daemon] [--code C]
 * "self": says "stopping" and stops itself; continued it exits with C. "child" and "daemon": leaves
 * a process behind that has stopped itself (the daemon forks twice, in a session of its own, and
 * has closed its descriptors), says "left PID behind" and exits with C. Other ranks wait.
 */
#include <sys/wait.h>

#include "worker.h"

static void stay_stopped(bool daemon)
{
    for (int fd = 0; daemon && fd < 1024; fd++)
        close(fd);
    signal(SIGTERM, SIG_IGN);
    for (;;)
        raise(SIGSTOP);
}

static pid_t leave(bool daemon)
{
    int told[2];
    if (pipe(told) != 0)
        _exit(97);
    const pid_t child = fork();
    if (child == 0) {
        if (daemon) {
            setsid();
            if (fork() != 0)
                _exit(0);
        }
        const pid_t self = getpid();
        write_all(told[1], &self, sizeof self);
        stay_stopped(daemon);
    }
    pid_t left = 0;
    if (read(told[0], &left, sizeof left) != sizeof left)
        _exit(97);
    if (!daemon) /* the stop of a child can be waited for */
        waitpid(child, NULL, WUNTRACED);
    return left;
}

int main(int argc, char **argv)
{
    if (!is_me(argc, argv))
        wait_for_ever();
    const char *kind = option(argc, argv, "--kind", "self");
    if (strcmp(kind, "self") == 0) {
        dprintf(1, "stopping\n");
        raise(SIGSTOP);
        dprintf(1, "continued\n");
    } else {
        dprintf(1, "left %d behind\n", (int)leave(strcmp(kind, "daemon") == 0));
    }
    return (int)to_number(option(argc, argv, "--code", "0"));
}
