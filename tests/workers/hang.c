/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang [--until PATH] [--code C]: says "ready", reads nothing, and stays until it is killed or PATH
 * exists; then it says "done" and exits with C.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    dprintf(1, "ready %d\n", (int)getpid());
    const char *until = option(argc, argv, "--until", NULL);
    if (until == NULL)
        wait_for_ever();
    wait_for_file(until);
    dprintf(1, "done\n");
    return (int)to_number(option(argc, argv, "--code", "0"));
}
