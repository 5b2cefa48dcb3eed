/* SPDX-License-Identifier: Apache-2.0 */
#include "io/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"

struct reaper {
    void (*exited)(void *context, const struct reaper_exit *exit);
    void *context;
};

struct reaper *reaper_create(void (*exited)(void *context, const struct reaper_exit *exit),
                             void *context)
{
    struct reaper *reaper = mem_alloc(sizeof(*reaper));
    signal(SIGCHLD, SIG_DFL); /* if our parent ignored it, the kernel would reap them unseen */
    *reaper = (struct reaper){exited, context};
    return reaper;
}

void reaper_destroy(struct reaper *reaper)
{
    free(reaper);
}

/* Calls `exited` for one child that has ended (pid -1: any); false: there is none. A thread of ours
 * that traces a process makes the kernel tell of stops too, asked for or not. */
static bool collect(struct reaper *reaper, pid_t pid, int64_t when_ns)
{
    struct reaper_exit exit = {.when_ns = when_ns};
    do {
        exit.pid = wait4(pid, &exit.wait_status, WNOHANG, &exit.usage);
    } while (exit.pid < 0 && errno == EINTR);
    if (exit.pid > 0 && !WIFSTOPPED(exit.wait_status))
        reaper->exited(reaper->context, &exit);
    return exit.pid > 0;
}

void reaper_collect(struct reaper *reaper)
{
    int64_t now = clock_mono_ns();
    bool more = true;
    while (more)
        more = collect(reaper, -1, now);
}

void reaper_collect_one(struct reaper *reaper, pid_t pid)
{
    collect(reaper, pid, clock_mono_ns());
}

static bool is_there(idtype_t which, pid_t pid)
{
    siginfo_t info;
    return waitid(which, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool reaper_has_children(void)
{
    return is_there(P_ALL, 0);
}

bool reaper_has(pid_t pid)
{
    return is_there(P_PID, pid);
}
