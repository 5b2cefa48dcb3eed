/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/rights_own.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/mem.h"
#include "stacks/snapshot.h"

static int open_memory(void *context, pid_t pid)
{
    (void)context;
    char *path AUTO_FREE = mem_printf("/proc/%d/mem", (int)pid);
    return fd_open(path, O_RDONLY, 0);
}

static int read_call(void *context, pid_t pid, pid_t tid, struct buf *out)
{
    (void)context;
    char *path AUTO_FREE = mem_printf("/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    return fd_read_file(path, out, NULL) == 0 && out->length > 0 ? 0 : -1;
}

static void stop(void *context, pid_t pid, int memory_fd, int64_t deadline_ns,
                 struct snapshot_order *orders, size_t count)
{
    (void)context;
    snapshot_stopping(pid, memory_fd, deadline_ns, orders, count);
}

const struct rights rights_own = {NULL, open_memory, read_call, stop};
