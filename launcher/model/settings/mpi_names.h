/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and files of MPI libraries, by their names. Pure. */
#pragma once

#include <stdbool.h>

#include "model/settings/words.h"

/* What programs need that need this library: MPI_PMIX, MPI_PMI1, or MPI_NONE if the name does not
 * say. `name`: of the file, without a folder. */
enum mpi_kind mpi_names_kind(const char *name);
/* The number behind ".so."; -1: none. */
long mpi_names_version(const char *name);

/* A library of Open MPI, MPICH or a relative of them that has functions of MPI, or its interface to
 * Fortran or C++. A path or a base name; "libmpi_solver.so" is none. */
bool mpi_names_library(const char *file);
/* Such a library, or one below it: of Open MPI, PMIx, UCX, libfabric, and the libevent of these. */
bool mpi_names_inside(const char *file);

/* "MPI_Recv" of "MPI_Recv" and "PMPI_Recv", "mpi_recv_" of "pmpi_recv_". Borrowed; NULL: it
 * is of something else. */
const char *mpi_names_call(const char *function);

/* Such a call waits for other ranks: MPI_Recv, but not MPI_Test, with which a program polls, and
 * which may wait for something else. */
bool mpi_names_waits(const char *function);
/* It waits for a file, or for a program outside of the job: MPI_File_open, MPI_Comm_accept. */
bool mpi_names_leaves_job(const char *function);
bool mpi_names_meets_job(const char *function); /* it connects with another job */
