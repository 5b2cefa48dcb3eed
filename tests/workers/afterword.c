/* SPDX-License-Identifier: Apache-2.0 */
/*
 * afterword [--code C]: leaves a process behind that goes on writing numbered lines to its stdout
 * for as long as it may, whatever signal it gets, and exits with C when the first are out.
 */
#include "spew_line.h"

int main(int argc, char **argv)
{
    int told[2];
    if (pipe(told) != 0)
        return 97;
    if (fork() == 0) {
        for (int number = 1; number < SIGRTMIN; number++)
            signal(number, SIG_IGN);
        setsid();
        char line[100];
        for (long n = 0;; n++) {
            spew_line(line, sizeof line, my_rank(), 1, n);
            write_all(1, line, sizeof line);
            if (n == 10)
                write_all(told[1], "x", 1);
            pause_ms(1);
        }
    }
    char byte;
    if (read(told[0], &byte, 1) != 1)
        return 97;
    return (int)to_number(option(argc, argv, "--code", "0"));
}
