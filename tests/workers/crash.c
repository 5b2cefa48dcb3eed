/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash [--rank R|all] [--how SIGNAL|segv|abort] [--after MS]: kills itself with a signal; "segv"
 * really reads address 0. The other ranks wait until they are killed.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    if (!is_me(argc, argv))
        wait_for_ever();
    pause_ms(to_number(option(argc, argv, "--after", "0")));
    const char *how = option(argc, argv, "--how", "segv");
    dprintf(2, "about to crash: %s\n", how);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "segv") == 0) {
        volatile int *volatile nowhere = NULL;
        return *nowhere;
    }
    kill(getpid(), (int)to_number(how));
    wait_for_ever();
    return 0;
}
