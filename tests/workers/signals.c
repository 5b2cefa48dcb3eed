/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals [--exit-on NAME] [--code C] [--until PATH]
 * Prints "ready", and then "got SIGNAME" for each signal that comes. Exits with C when the signal
 * NAME comes, or with 0 when PATH exists.
 */
#include "worker.h"

static const struct {
    int number;
    const char *name;
} watched[] = {{SIGINT, "INT"},   {SIGTERM, "TERM"}, {SIGHUP, "HUP"},     {SIGQUIT, "QUIT"},
               {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}, {SIGCONT, "CONT"}};
enum { WATCHED = sizeof watched / sizeof watched[0] };

int main(int argc, char **argv)
{
    const char *exit_on = option(argc, argv, "--exit-on", "");
    const char *until = option(argc, argv, "--until", NULL);
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < WATCHED; i++)
        sigaddset(&set, watched[i].number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    dprintf(1, "ready %d\n", (int)getpid());
    for (;;) {
        const struct timespec turn = {.tv_nsec = 50000000};
        const int number = sigtimedwait(&set, NULL, &turn);
        for (size_t i = 0; i < WATCHED; i++) {
            if (watched[i].number != number)
                continue;
            dprintf(1, "got SIG%s\n", watched[i].name);
            if (strcmp(watched[i].name, exit_on) == 0)
                return (int)to_number(option(argc, argv, "--code", "0"));
        }
        if (until != NULL && access(until, F_OK) == 0)
            return 0;
    }
}
