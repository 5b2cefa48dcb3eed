/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/hangup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* isatty(3) fails for a terminal that is gone already. */
static bool may_be_terminal(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISCHR(info.st_mode);
}

int hangup_leave(bool output_too)
{
    int null AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    int result = null < 0 ? -1 : 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && result == 0; fd++) {
        bool leaves = may_be_terminal(fd) || (output_too && fd != STDIN_FILENO);
        result = leaves && fd_dup2(null, fd) < 0 ? -1 : 0;
    }
    return result;
}

static bool takes(struct job *job, bool output_too, const char *what)
{
    if (job->settings->on_hangup != SET_HANGUP_DETACH || job_part(job, job_control) == NULL)
        return false;
    if (hangup_leave(output_too) < 0)
        return false;
    job->left_terminal = true;
    log_notice(&job->log, "the %s is gone, and the job goes on without it", what);
    return true;
}

/* The shell and the kernel each send a HUP when a terminal closes. */
bool hangup_takes(struct job *job)
{
    if (job->left_terminal)
        return true;
    return takes(job, false, "terminal");
}

bool hangup_takes_reader(struct job *job)
{
    return takes(job, true, "reader of the output");
}
