/* SPDX-License-Identifier: Apache-2.0 */
#include "node/held_child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc.h"
#include "node/descendants.h"

#define ENOUGH_MS 1000

/* Zombies are reapable at once, unless another thread of the process is still there. */
static bool is_reapable(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

int held_child_status(pid_t pid)
{
    struct proc_stat stat;
    if (proc_read_stat(pid, 0, &stat) < 0 || stat.state != 'Z' || is_reapable(pid))
        return -1;
    return (int)stat.code;
}

bool held_child_waits(pid_t pid)
{
    pid_t *threads AUTO_FREE = NULL;
    size_t count = proc_threads(pid, SIZE_MAX, &threads);
    for (size_t i = 0; i < count; i++) {
        struct proc_stat stat;
        if (threads[i] != pid && proc_read_stat(pid, threads[i], &stat) == 0 &&
            (stat.state == 'S' || stat.state == 'D'))
            return true;
    }
    return false;
}

bool held_children_only(struct held_children *children)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = descendants_list(getpid(), &all), held = 0;
    int64_t now = clock_mono_ms();
    while (held < count && held_child_status(all[held]) >= 0)
        held++;
    if (count == 0 || held < count)
        children->since_ms = 0;
    else if (children->since_ms == 0)
        children->since_ms = now;
    return children->since_ms != 0 && now - children->since_ms > ENOUGH_MS;
}
