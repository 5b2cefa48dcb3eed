/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for mpi4py's extension module MPI: to import it initializes MPI, sums the ranks and prints
 * "rank R of N sum S". It declares what it needs of Python's stable interface, so that it builds
 * without the headers of a Python.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct module_def {
    long references;
    void *type, *init;
    long index;
    void *copy;
    const char *name, *doc;
    long size;
    void *rest[5];
};

void *PyModule_Create2(struct module_def *def, int version);
void *PyInit_MPI(void);

static void finalize(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default"))) void *PyInit_MPI(void)
{
    static struct module_def def = {.references = 1, .name = "MPI", .size = -1};
    int rank = 0, size = 0, sum = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d sum %d\n", rank, size, sum);
    fflush(stdout);
    atexit(finalize);
    return PyModule_Create2(&def, 1013);
}
