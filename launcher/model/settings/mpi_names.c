/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/mpi_names.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum place {
    BESIDE, /* what programs of this MPI need, or its servers */
    BELOW,  /* the functions of MPI run in it */
    CALLS   /* it has them, or their interface to Fortran or C++ */
};

#define BY_VERSION MPI_AUTO

/* The first row with which a name begins counts. mca_op_avx.so and its like compute. */
static const struct library {
    const char *begin;
    enum mpi_kind kind; /* that its programs need; MPI_NONE: it does not tell */
    enum place place;
} libraries[] = {
    {"libmpi.so", BY_VERSION, CALLS},
    {"libmpi_abi.so", MPI_PMI1, CALLS},
    {"libmpi_mpifh.so", BY_VERSION, CALLS},
    {"libmpi_usempi.so", BY_VERSION, CALLS},
    {"libmpi_usempi_ignore_tkr.so", BY_VERSION, CALLS},
    {"libmpi_usempif08.so", BY_VERSION, CALLS},
    {"libmpi_cxx.so", BY_VERSION, CALLS},
    {"libmpi_cray", MPI_PMI1, BESIDE},
    {"libmpi_", BY_VERSION, BESIDE},
    {"libmpifort.so", MPI_PMI1, CALLS},
    {"libmpicxx.so", MPI_PMI1, CALLS},
    {"libmpich.so", MPI_PMI1, CALLS},
    {"libmpichfort.so", MPI_PMI1, CALLS},
    {"libmpichcxx.so", MPI_PMI1, CALLS},
    {"libmpich", MPI_PMI1, BESIDE},
    {"libmvapich", MPI_PMI1, BESIDE},
    {"libpmi.so", MPI_PMI1, BESIDE},
    {"libpmi2.so", MPI_PMI1, BESIDE},
    {"libpmpi.so", MPI_NONE, CALLS},
    {"libopen-rte.so", MPI_PMIX, BELOW},
    {"libopen-pal.so", MPI_PMIX, BELOW},
    {"liboshmem.so", MPI_PMIX, BESIDE},
    {"libpmix.so", MPI_PMIX, BELOW},
    {"mca_op_", MPI_NONE, BESIDE},
    {"mca_", MPI_NONE, BELOW},
    {"libmca_common_", MPI_NONE, BELOW},
    {"libucp.so", MPI_NONE, BELOW},
    {"libuct.so", MPI_NONE, BELOW},
    {"libuct_", MPI_NONE, BELOW},
    {"libucs.so", MPI_NONE, BELOW},
    {"libucs_", MPI_NONE, BELOW},
    {"libucm.so", MPI_NONE, BELOW},
    {"libucm_", MPI_NONE, BELOW},
    {"libfabric.so", MPI_NONE, BELOW},
    {"libevent-", MPI_NONE, BELOW},
    {"libevent_core-", MPI_NONE, BELOW},
    {"libevent.so", MPI_NONE, BELOW},
    {"libevent_core.", MPI_NONE, BELOW},
    {"libevent_pthre", MPI_NONE, BELOW},
};

static const struct library *library_of(const char *name)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (text_begins(name, libraries[i].begin))
            return &libraries[i];
    return NULL;
}

long mpi_names_version(const char *name)
{
    const char *so = strstr(name, ".so.");
    return so != NULL && isdigit((unsigned char)so[4]) ? strtol(so + 4, NULL, 10) : -1;
}

/* libmpi.so.12 is MPICH's ABI and Intel's; Open MPI has been at 20 and 40 since version 2. */
enum mpi_kind mpi_names_kind(const char *name)
{
    const struct library *library = library_of(name);
    if (library == NULL || library->kind != BY_VERSION)
        return library == NULL ? MPI_NONE : library->kind;
    long version = mpi_names_version(name);
    return version >= 0 && version < 20 ? MPI_PMI1 : MPI_PMIX;
}

bool mpi_names_library(const char *file)
{
    const struct library *library = library_of(text_base_name(file));
    return library != NULL && library->place == CALLS;
}

bool mpi_names_inside(const char *file)
{
    const char *base = text_base_name(file);
    const struct library *library = library_of(base);
    return library != NULL &&
           (library->place == CALLS || (library->place == BELOW && strstr(base, ".so") != NULL));
}

const char *mpi_names_call(const char *function)
{
    const char *name = function + (function[0] == 'P'), *lower = function + (function[0] == 'p');
    size_t length = strlen(function);
    if ((text_begins(name, "MPI_") && isupper((unsigned char)name[4])) ||
        (text_begins(name, "MPIX_") && isupper((unsigned char)name[5])))
        return name;
    return text_begins(lower, "mpi_") && function[length - 1] == '_' ? lower : NULL;
}

/* After "MPI_", in C and in Fortran. Behind a name with '*', more follows, as in MPI_Alltoallv. */
static bool is_one(const char *function, const char *const *calls)
{
    const char *name = mpi_names_call(function);
    if (name == NULL || strncasecmp(name, "mpi_", 4) != 0)
        return false;
    name += 4;
    for (size_t i = 0; calls[i] != NULL; i++) {
        size_t length = strcspn(calls[i], "*"), rest = strlen(name);
        if (rest >= length && strncasecmp(name, calls[i], length) == 0 &&
            (calls[i][length] == '*' || name[length] == '\0' || strcmp(name + length, "_") == 0))
            return true;
    }
    return false;
}

bool mpi_names_waits(const char *function)
{
    static const char *const calls[] = {
        "recv",    "send",       "ssend",      "rsend",     "sendrecv*", "probe",     "mprobe",
        "mrecv",   "wait",       "waitall",    "waitany",   "waitsome",  "barrier",   "bcast",
        "gather*", "scatter*",   "allgather*", "alltoall*", "reduce*",   "allreduce", "scan",
        "exscan",  "neighbor_*", "win_fence",  "win_wait",  "finalize",  NULL};
    return is_one(function, calls);
}

bool mpi_names_leaves_job(const char *function)
{
    static const char *const calls[] = {"file_*",      "comm_accept",  "comm_connect", "comm_join",
                                        "comm_spawn*", "lookup_name*", "abort*",       NULL};
    return is_one(function, calls);
}

bool mpi_names_meets_job(const char *function)
{
    static const char *const calls[] = {"comm_accept", "comm_connect", "comm_join", NULL};
    return is_one(function, calls);
}
