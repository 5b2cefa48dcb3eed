/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress [--gate PATH]: a progress bar that rewrites its line with \r: 0%, 10% ... 100%, newline.
 * With --gate it stays at 50 % until the file exists.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    const char *gate = option(argc, argv, "--gate", NULL);
    for (int percent = 0; percent <= 100; percent += 10) {
        dprintf(1, "\rwork %d%%", percent);
        if (percent == 50 && gate != NULL)
            wait_for_file(gate);
        pause_ms(10);
    }
    write_all(1, "\n", 1);
    return 0;
}
