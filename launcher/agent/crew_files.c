/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "base/fd.h"

#define WHILE_SPAWNING 8 /* the worker's ends of its pipes, stdin of one, files that are read */

/* What stays open for one worker: its pidfd, its pipes, its connection to the MPI server. */
static uint64_t files_of(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                         const Hvdrun__Worker *worker)
{
    uint64_t pipes = prepare->merge_stderr ? 1 : 2;
    return 1 + pipes + (apps->kinds[worker->app] == MPI_NONE ? 0 : 1);
}

int crew_files_check(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                     struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    uint64_t allowed = (uint64_t)limit.rlim_cur, needed = WHILE_SPAWNING;
    for (size_t i = 0; i < prepare->n_workers; i++)
        needed += files_of(prepare, apps, prepare->workers[i]);
    /* the kernel gives the lowest number that is free, so it is how many there are */
    int lowest AUTO_FD = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (lowest < 0 && errno != EMFILE)
        return error_errno(err, errno, "cannot open /dev/null");
    uint64_t used = lowest < 0 ? allowed : (uint64_t)lowest;
    if (used + needed <= allowed)
        return 0;
    return error_set(err,
                     "%zu ranks here need about %" PRIu64 " open files and the limit is %" PRIu64
                     ": raise the hard limit (ulimit -Hn), or run fewer ranks on a host",
                     prepare->n_workers, used + needed, allowed);
}
