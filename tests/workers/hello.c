/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello [--err] [NAME...]: says which rank it is, then NAME=value (or "NAME unset") for each name.
 * With --err it also writes one line to stderr.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    printf("hello from rank %d of %d\n", my_rank(), world_size());
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        const char *value = getenv(argv[i]);
        if (value != NULL)
            printf("%s=%s\n", argv[i], value);
        else
            printf("%s unset\n", argv[i]);
    }
    if (flag(argc, argv, "--err"))
        fprintf(stderr, "complaint of rank %d\n", my_rank());
    return 0;
}
