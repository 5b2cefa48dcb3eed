/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breed [--kind bomb|chain] [--code C] [--after PATH] [--gate PATH]
 *
 * Leaves processes behind that multiply until the user's limit, and ignore every signal that can be
 * ignored. With "bomb", each forks as often as it can and stays. With "chain", each forks one
 * successor, in a session of its own, and ends. So it is another process whenever you look for it.
 * Prints "breeding" and exits with C (with --gate: when the file exists). With --after it prints
 * "ready" and waits for that file before it begins.
 */
#include "worker.h"

static void bomb(void)
{
    for (;;) {
        if (fork() < 0)
            pause_ms(1);
    }
}

static void chain(void)
{
    for (;;) {
        const pid_t successor = fork();
        if (successor > 0)
            _exit(0);
        if (successor == 0)
            setsid();
        else
            pause_ms(1);
    }
}

int main(int argc, char **argv)
{
    const char *after = option(argc, argv, "--after", NULL);
    if (after != NULL) {
        dprintf(1, "ready\n");
        wait_for_file(after);
    }
    dprintf(1, "breeding\n");
    if (fork() == 0) {
        for (int number = 1; number < SIGRTMIN; number++)
            signal(number, SIG_IGN);
        if (strcmp(option(argc, argv, "--kind", "bomb"), "chain") == 0)
            chain();
        bomb();
    }
    const char *gate = option(argc, argv, "--gate", NULL);
    if (gate != NULL)
        wait_for_file(gate);
    return (int)to_number(option(argc, argv, "--code", "0"));
}
