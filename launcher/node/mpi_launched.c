/* SPDX-License-Identifier: Apache-2.0 */
#include "node/mpi_launched.h"

#include <string.h>

#include "base/buf.h"
#include "io/proc.h"

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_other_server(const char *pair, enum mpi_kind given, const char *nspace)
{
    static const char space[] = "PMIX_NAMESPACE=";
    static const char *const pmi1[] = {"PMI_FD=", "PMI_PORT=", "PMI_RANK=", "PMI_SIZE=", "PMI_ID="};
    if (starts_with(pair, space))
        return given != MPI_PMIX || strcmp(pair + sizeof(space) - 1, nspace) != 0;
    for (size_t i = 0; given != MPI_PMI1 && i < sizeof(pmi1) / sizeof(pmi1[0]); i++) {
        if (starts_with(pair, pmi1[i]))
            return true;
    }
    return false;
}

bool mpi_launched_by_other(const char *environment, size_t length, enum mpi_kind given,
                           const char *nspace)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(environment + at, '\0', length - at);
        if (end == NULL)
            return false;
        if (is_other_server(environment + at, given, nspace))
            return true;
        at = (size_t)(end - environment) + 1;
    }
    return false;
}

bool mpi_process_launched_by_other(pid_t pid, enum mpi_kind given, const char *nspace)
{
    struct buf text AUTO_BUF = BUF_INIT(4 << 20);
    (void)proc_read(pid, 0, "environ", &text);
    return mpi_launched_by_other(buf_text(&text), text.length, given, nspace);
}
