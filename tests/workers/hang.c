/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang [--until PATH [--line-ms M]] [--code C]: says "ready", reads nothing, and stays until it is
 * killed or PATH exists; then it says "done" and exits with C. Meanwhile it says a numbered "line"
 * every M milliseconds, and then looks for PATH.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    dprintf(1, "ready %d\n", (int)getpid());
    const char *until = option(argc, argv, "--until", NULL);
    if (until == NULL)
        wait_for_ever();
    const long line_ms = to_number(option(argc, argv, "--line-ms", "0"));
    for (long line = 0; line_ms > 0 && access(until, F_OK) != 0; line++) {
        dprintf(1, "line %ld\n", line);
        pause_ms(line_ms);
    }
    wait_for_file(until);
    dprintf(1, "done\n");
    return (int)to_number(option(argc, argv, "--code", "0"));
}
