/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt [--err]: asks "name? " without a newline (on stderr with --err), reads one line from stdin
 * and says "hello NAME" and whether stdin then ends.
 */
#include "worker.h"

int main(int argc, char **argv)
{
    const char *question = "name? ";
    write_all(flag(argc, argv, "--err") ? 2 : 1, question, strlen(question));
    char name[256];
    if (fgets(name, sizeof name, stdin) == NULL) {
        printf("nobody\n");
        return 0;
    }
    name[strcspn(name, "\n")] = '\0';
    printf("hello %s\n", name);
    fflush(stdout);
    printf(fgetc(stdin) == EOF ? "end of stdin\n" : "more stdin\n");
    return 0;
}
