/* SPDX-License-Identifier: Apache-2.0 */
/* libmpi_solver.KIND.so: a library with a name and functions like those of MPI, which computes. */
#include <mpi.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double mpi_solver_seconds;

void MPI_Solve(void)
{
    static volatile unsigned long rounds;
    for (double end = now() + mpi_solver_seconds; now() < end;) {
        for (int i = 0; i < 100000; i++)
            rounds++;
    }
}

/* An MPI_Op that computes for long. */
void mpi_solver_add(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    MPI_Solve();
    for (int i = 0; i < *count; i++)
        ((double *)to)[i] += ((double *)from)[i];
}
