/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

const char *transport_stage_name(enum transport_stage stage)
{
    static const char *const names[] = {
#define TRANSPORT_STAGE_NAME(name, text) [name] = (text),
        TRANSPORT_STAGE_LIST(TRANSPORT_STAGE_NAME)
#undef TRANSPORT_STAGE_NAME
    };
    return names[stage];
}

struct transport_call *transport_call(const struct transport *transport,
                                      const struct transport_target *target,
                                      const struct transport_events *events, void *events_context)
{
    return transport->ops->call(transport->context, target, events, events_context);
}

void transport_hang_up(struct transport_call *call)
{
    if (call != NULL)
        ((struct transport_call_head *)call)->ops->hang_up(call);
}

/* Local agents. */

static int agent_process(const struct local_agent *agent, const char *host, int fd)
{
    setsid();
    fd_close_others(fd);
    /* The agent speaks through its link alone; the terminal is the driver's. */
    int null_fd = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null_fd >= 0) {
        fd_dup2(null_fd, STDIN_FILENO);
        fd_dup2(null_fd, STDOUT_FILENO);
        close(null_fd);
    }
    return agent->run(agent->context, host, fd);
}

int local_fork(const struct local_agent *agent, const char *host, struct transport_stream *stream,
               struct error *err)
{
    int ends[2];
    if (fd_socketpair(ends) < 0)
        return error_errno(err, errno, "cannot create the link to the agent of %s", host);
    pid_t pid = fork();
    if (pid == 0)
        exit(agent_process(agent, host, ends[1]));
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
