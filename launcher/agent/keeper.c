/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "model/exit/signal_name.h"
#include "node/descendants.h"
#include "node/runtime_dir.h"

#define LOOK_MS 1000    /* between two looks at the clocks */
#define STALLED_MS 2000 /* later than that: we ourselves did not run */
#define AGAIN_MS 5
#define KILL_PATIENCE_MS 10000
#define START_SILENCE_MS 30000 /* until the agent says more */
#define START_GRACE_MS 5000

struct keeper {
    pid_t agent;
    int line_fd, signal_fd, stream_fd;
    struct keeper_beat limits;
    int64_t heard_ms;   /* the agent, last */
    int64_t hung_up_ms; /* when the stream was; 0: it is not */
    int64_t held_ms;    /* since when the agent is (node/descendants.h); 0: it is not */
    int64_t looked_ms;
    bool agent_ended;
    int wait_status;
};

static void collect(struct keeper *keeper)
{
    for (;;) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return;
        if (pid == keeper->agent) {
            keeper->agent_ended = true;
            keeper->wait_status = wait_status;
        }
    }
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* The agent first: it must not start anything while we are at it. */
static void end_all(struct keeper *keeper)
{
    int64_t limit = clock_mono_ms() + KILL_PATIENCE_MS;
    struct held_children held = {0};
    if (!keeper->agent_ended)
        kill(keeper->agent, SIGKILL);
    fd_close(&keeper->stream_fd);
    collect(keeper);
    while (has_children() && clock_mono_ms() < limit && !held_children_only(&held)) {
        pid_t *all AUTO_FREE = NULL;
        size_t count = descendants_list(getpid(), &all);
        for (size_t i = 0; i < count; i++)
            kill(all[i], SIGKILL);
        collect(keeper);
        if (has_children())
            poll(NULL, 0, AGAIN_MS);
        collect(keeper);
    }
    runtime_dir_sweep();
}

static void read_line(struct keeper *keeper)
{
    struct keeper_beat beat;
    ssize_t got = recv(keeper->line_fd, &beat, sizeof(beat), MSG_DONTWAIT);
    while (got == (ssize_t)sizeof(beat)) {
        keeper->limits = beat;
        keeper->heard_ms = clock_mono_ms();
        got = recv(keeper->line_fd, &beat, sizeof(beat), MSG_DONTWAIT);
    }
    if (got == 0) /* it ends: SIGCHLD is on its way */
        fd_close(&keeper->line_fd);
}

static void read_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    while (fd_read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            collect(keeper);
        else if (!keeper->agent_ended)
            kill(keeper->agent, (int)info.ssi_signo);
    }
}

static bool is_overdue(const struct keeper *keeper, int64_t now)
{
    const struct keeper_beat *limits = &keeper->limits;
    if (now - keeper->heard_ms > limits->silence_ms + limits->grace_ms + KEEPER_MARGIN_MS)
        return true;
    return keeper->hung_up_ms != 0 &&
           now - keeper->hung_up_ms > limits->grace_ms + KEEPER_MARGIN_MS;
}

/* The kernel tells of its end only when it lets go of all of its threads. */
static void look_at_held_agent(struct keeper *keeper, int64_t now)
{
    int status = keeper->line_fd < 0 ? held_child_status(keeper->agent) : -1;
    if (status < 0) {
        keeper->held_ms = 0;
    } else if (keeper->held_ms == 0) {
        keeper->held_ms = now;
    } else if (now - keeper->held_ms >= LOOK_MS) {
        keeper->wait_status = status;
        keeper->agent_ended = true;
    }
}

/* Until the agent has ended or its time is over. */
static void watch(struct keeper *keeper)
{
    keeper->heard_ms = keeper->looked_ms = clock_mono_ms();
    while (!keeper->agent_ended) {
        struct pollfd fds[] = {
            {.fd = keeper->signal_fd, .events = POLLIN},
            {.fd = keeper->line_fd, .events = POLLIN},
            {.fd = keeper->hung_up_ms == 0 ? keeper->stream_fd : -1, .events = POLLRDHUP}};
        poll(fds, sizeof(fds) / sizeof(fds[0]), LOOK_MS);
        int64_t now = clock_mono_ms();
        if (now - keeper->looked_ms > LOOK_MS + STALLED_MS) {
            keeper->heard_ms = now;
            keeper->hung_up_ms = keeper->hung_up_ms == 0 ? 0 : now;
        }
        keeper->looked_ms = now;
        read_signals(keeper);
        if (fds[1].revents != 0)
            read_line(keeper);
        if ((fds[2].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
            keeper->hung_up_ms = now;
        if (!keeper->agent_ended)
            look_at_held_agent(keeper, now);
        if (!keeper->agent_ended && is_overdue(keeper, now))
            return;
    }
}

static pid_t start(const struct keeper_config *config, int ends[2])
{
    pid_t pid = fork();
    if (pid != 0) {
        int errnum = errno;
        close(config->agent_fds[0]);
        close(config->agent_fds[1]);
        errno = errnum;
        return pid;
    }
    fd_close(&ends[0]);
    close(config->stream_fd);
    setsid(); /* what is sent to our group is not meant for the workers */
    sigprocmask(SIG_SETMASK, config->mask, NULL);
    exit(config->agent(config->context, ends[1]));
}

int keeper_run(const struct keeper_config *config, struct error *err)
{
    int ends[2];
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
#define WATCH(name) sigaddset(&watched, name);
    SIGNAL_PASSED_LIST(WATCH) /* a scheduler's warning must not end us */
    signal(SIGCHLD, SIG_DFL); /* an ignored one would be reaped by the kernel, unseen */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, errno, "cannot create the connection between agent and keeper");
    struct keeper keeper = {.line_fd = ends[0],
                            .stream_fd = config->stream_fd,
                            .limits = {START_SILENCE_MS, START_GRACE_MS}};
    keeper.agent = start(config, ends);
    int errnum = errno;
    fd_close(&ends[1]);
    keeper.signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper.agent < 0 || keeper.signal_fd < 0)
        error_errno(err, keeper.agent < 0 ? errnum : errno, "cannot start the agent");
    else
        watch(&keeper);
    prctl(PR_SET_NAME, "hvdrun-keeper");
    if (keeper.agent >= 0)
        end_all(&keeper);
    fd_close(&keeper.line_fd);
    fd_close(&keeper.signal_fd);
    if (keeper.agent < 0 || !keeper.agent_ended)
        return keeper.agent < 0 ? -1 : 128 + SIGKILL;
    return WIFEXITED(keeper.wait_status) ? WEXITSTATUS(keeper.wait_status)
                                         : 128 + WTERMSIG(keeper.wait_status);
}
