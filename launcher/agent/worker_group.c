/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_group.h"

#include <signal.h>
#include <unistd.h>

#include "base/mem.h"
#include "node/descendants.h"

void worker_group_signal(pid_t group, int signal)
{
    /* Between vfork and its setsid() the child has no group of its own yet. */
    if (kill(-group, signal) < 0)
        kill(group, signal);
}

void worker_group_signal_rest(pid_t group, int signal)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = descendants_list(getpid(), &all);
    for (size_t i = 0; i < count; i++) {
        if (all[i] == group)
            return;
    }
    for (size_t i = 0; i < count; i++) {
        if (getpgid(all[i]) == group)
            kill(all[i], signal);
    }
}
