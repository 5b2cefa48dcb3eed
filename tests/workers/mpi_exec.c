/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_exec PROGRAM [ARGUMENT...]: an MPI program, to look at, which becomes another one. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int started = 0;
    MPI_Initialized(&started);
    if (argc < 2 || started) {
        fprintf(stderr, "usage: mpi_exec PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
