/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which MPI a program uses, if it is Python: that of its mpi4py.
 *
 * Like the interpreter, it takes the first mpi4py. An extension named MPI.cpython-312-... or
 * MPI.abi3.so comes before those for several MPIs, MPI.mpich... and MPI.openmpi... (mpi4py 4.1).
 * Of these, MPI4PY_MPIABI names one. Without it, the MPI library decides that mpi4py would load:
 * MPI4PY_LIBMPI, then the environment's and the system's (src/mpi4py/_mpiabi.py of mpi4py).
 *
 * A program may never import its mpi4py. So the finding is not "linked".
 */
#pragma once

#include "base/error.h"
#include "node/mpi_detect.h"

struct mpi_program {
    const char *root;  /* of the image that it runs in; NULL: none */
    const char *path;  /* the resolved executable; with a root, the path there */
    char *const *argv; /* NULL-ended */
    const char *wdir;  /* NULL: where we are */
    /* A variable as the program will see it, or NULL. */
    const char *(*get)(const void *context, const char *name);
    const void *context;
};

/* As mpi_detect_in(). It also finds a Python below a program that starts others, as numactl does,
 * and the program in an image that is a folder (node/image.h). */
int mpi_detect_program(const struct mpi_program *program, struct mpi_finding *out,
                       struct error *err);
