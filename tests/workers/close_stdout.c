/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close_stdout --until PATH [--code C]: says "closing", closes stdin, stdout and stderr, and lives
 * on until the file exists: the end of its streams is not its end.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    dprintf(1, "closing\n");
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    wait_for_file(option(argc, argv, "--until", "/"));
    return (int)to_number(option(argc, argv, "--code", "0"));
}
