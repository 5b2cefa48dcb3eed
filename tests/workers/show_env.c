/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env DIR: writes its environment, each entry ended by a NUL, into DIR/env.RANK.
 * env (alone): prints it sorted, one entry a line.
 */
#include <fcntl.h>

#include "worker.h"

extern char **environ;

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    if (argc < 2) {
        qsort(environ, count, sizeof *environ, compare);
        for (size_t i = 0; i < count; i++)
            puts(environ[i]);
        return 0;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/env.%d", argv[1], my_rank());
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        dprintf(2, "env: %s: %s\n", path, strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        write_all(fd, environ[i], strlen(environ[i]) + 1);
    close(fd);
    return 0;
}
