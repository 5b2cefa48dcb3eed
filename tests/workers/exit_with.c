/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_with [--say TEXT] [--gate PATH] RANK:CODE[:MS[:ignore]]...
 *
 * RANK exits with CODE after MS milliseconds, or with --gate after PATH exists. "ignore" makes it
 * ignore SIGTERM until then. A rank with a CODE that is not 0 first writes TEXT to stderr, three
 * times with numbers. A rank that is not named waits until it is killed; RANK may be "all".
 */
#include "worker.h"

int main(int argc, char **argv)
{
    const char *say = option(argc, argv, "--say", NULL);
    const char *gate = option(argc, argv, "--gate", NULL);
    for (int i = 1; i < argc; i++) {
        if (strchr(argv[i], ':') == NULL || argv[i] == say || argv[i] == gate)
            continue;
        char *copy = strdup(argv[i]), *rest = copy;
        const char *rank = strsep(&rest, ":"), *code = strsep(&rest, ":");
        const char *ms = strsep(&rest, ":"), *ignore = strsep(&rest, ":");
        if (strcmp(rank, "all") != 0 && to_number(rank) != my_rank())
            continue;
        if (ignore != NULL)
            signal(SIGTERM, SIG_IGN);
        if (gate != NULL)
            wait_for_file(gate);
        if (ms != NULL)
            pause_ms(to_number(ms));
        if (say != NULL && to_number(code) != 0) {
            for (int n = 1; n <= 3; n++)
                dprintf(2, "%s %d\n", say, n);
        }
        _exit((int)to_number(code));
    }
    wait_for_ever();
    return 0;
}
