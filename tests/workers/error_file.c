/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_file [--rank R|all]
 * Writes an error file as torch's @record does, at the path in TORCHELASTIC_ERROR_FILE, and exits
 * with 1. The other ranks wait until they are killed.
 */
#include <fcntl.h>

#include "worker.h"

int main(int argc, char **argv)
{
    if (!is_me(argc, argv))
        wait_for_ever();
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    if (path == NULL) {
        dprintf(2, "no TORCHELASTIC_ERROR_FILE\n");
        return 2;
    }
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        dprintf(2, "%s: %s\n", path, strerror(errno));
        return 3;
    }
    dprintf(fd, "{\"message\":{\"message\":\"ValueError: the \\\"loss\\\" is not a number\","
                "\"extraInfo\":{\"py_callstack\":\"Traceback\",\"timestamp\":\"1\"}}}");
    close(fd);
    return 1;
}
