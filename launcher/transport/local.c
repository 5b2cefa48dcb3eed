/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

/* All descriptors above 2 but `keep`. The kernel's close_range() is old enough to rely on (5.9);
 * where a sandbox refuses it, each descriptor is closed by itself. */
static void close_others(int keep)
{
    if ((keep == 3 || close_range(3, (unsigned)keep - 1, 0) == 0) &&
        close_range((unsigned)keep + 1, ~0u, 0) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 ? limit : 1024); fd++) {
        if (fd != keep)
            close(fd);
    }
}

static int agent_process(const struct local_agent *agent, int fd)
{
    setsid();
    close_others(fd);
    /* The agent speaks through its link alone; the terminal is the driver's. */
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd >= 0) {
        dup2(null_fd, STDIN_FILENO);
        dup2(null_fd, STDOUT_FILENO);
        close(null_fd);
    }
    return agent->run(agent->context, fd);
}

int local_fork(const struct local_agent *agent, const char *host, struct transport_stream *stream,
               struct error *err)
{
    int ends[2];
    if (fd_socketpair(ends) < 0)
        return error_errno(err, errno, "cannot make the link to the agent of %s", host);
    pid_t pid = fork();
    if (pid == 0)
        exit(agent_process(agent, ends[1]));
    int errnum = errno;
    fd_close(&ends[1]);
    if (pid < 0) {
        fd_close(&ends[0]);
        return error_errno(err, errnum, "cannot fork the agent of %s", host);
    }
    *stream = (struct transport_stream){
        .read_fd = ends[0], .write_fd = ends[0], .pid = pid, .same_machine = true};
    return 0;
}
