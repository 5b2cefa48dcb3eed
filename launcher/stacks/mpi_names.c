/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/mpi_names.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool begins_with_one(const char *text, const char *const *names)
{
    bool found = false;
    for (size_t i = 0; names[i] != NULL && !found; i++)
        found = text_begins(text, names[i]);
    return found;
}

bool mpi_names_library(const char *file)
{
    static const char *const names[] = {"libmpi.so",           "libpmpi.so",
                                        "libmpi_abi.so",       "libmpi_mpifh.so",
                                        "libmpi_usempi.so",    "libmpi_usempi_ignore_tkr.so",
                                        "libmpi_usempif08.so", "libmpi_cxx.so",
                                        "libmpifort.so",       "libmpicxx.so",
                                        "libmpich.so",         "libmpichfort.so",
                                        "libmpichcxx.so",      NULL};
    return begins_with_one(text_base_name(file), names);
}

/* mca_op_avx.so and its like compute. */
bool mpi_names_inside(const char *file)
{
    static const char *const names[] = {"libopen-rte.so",
                                        "libopen-pal.so",
                                        "mca_",
                                        "libmca_common_",
                                        "libpmix.so",
                                        "libucp.so",
                                        "libuct.so",
                                        "libuct_",
                                        "libucs.so",
                                        "libucs_",
                                        "libucm.so",
                                        "libucm_",
                                        "libfabric.so",
                                        "libevent-",
                                        "libevent_core-",
                                        "libevent.so",
                                        "libevent_core.",
                                        "libevent_pthre",
                                        NULL};
    const char *base = text_base_name(file);
    return mpi_names_library(base) ||
           (begins_with_one(base, names) && strstr(base, ".so") != NULL &&
            !text_begins(base, "mca_op_"));
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
