/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which MPI a program uses, for --mpi=auto, and to notice a wrong choice.
 *
 * It reads a program and never runs it. For an ELF file it looks at the libraries that it needs,
 * and those that they need. A script or an interpreter can load any library, so it gets PMIx. A
 * statically linked or unreadable program gets nothing. An ordinary program costs a few small
 * reads. A launcher of MPI programs gets nothing either, since it has a server of its own.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/settings/words.h"

struct mpi_finding {
    enum mpi_kind kind; /* MPI_NONE, MPI_PMIX or MPI_PMI1 */
    bool linked;    /* an MPI library was seen; false: none, or it is a script that may load any */
    bool launcher;  /* it starts MPI programs and serves them itself */
    char what[480]; /* for people: "needs libmpi.so.40 (Open MPI)" */
};

/* `path`: the resolved executable, of an image (node/image.h) if `root` is not NULL.
 * `library_path`: LD_LIBRARY_PATH of the worker, or NULL. -1: it could not be read now (no
 * descriptors, no memory, a failing disk). Do not take that for "no MPI": every rank would be a
 * world of its own. A program that we may not read has no MPI. */
int mpi_detect_in(const char *root, const char *path, const char *library_path,
                  struct mpi_finding *out, struct error *err);

/* Looks at the libraries that a running process has mapped; MPI_NONE when none is of MPI or when
 * the process cannot be looked at. Libraries that launchers of MPI have too do not count. */
void mpi_detect_process(pid_t pid, struct mpi_finding *out);

/* By the name of the file: a shell or Python; a program that starts others, as numactl does. */
bool mpi_is_interpreter(const char *path);
bool mpi_is_starter(const char *path);

/* An MPI library itself, by its name and what it needs: MPI_PMIX or MPI_PMI1. An MPICH that was
 * built for PMIx is not Open MPI, but speaks PMIx. */
struct elf_info;
enum mpi_kind mpi_detect_library(const char *name, const struct elf_info *info, bool *openmpi);

/* Was a process that runs below a worker started by another launcher, as ranks of an mpirun inside
 * a worker are? Then its environment names a server that is not ours. `given`: what the worker got
 * from us. `nspace`: our PMIx namespace, "" without one. `environment`: NUL-ended pairs, as in
 * /proc/PID/environ. false when the process cannot be looked at. */
bool mpi_process_launched_by_other(pid_t pid, enum mpi_kind given, const char *nspace);
