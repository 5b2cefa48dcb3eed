/* SPDX-License-Identifier: Apache-2.0 */
#include "node/activity.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "node/descendants.h"
#include "node/usage.h"

static bool add_process(pid_t pid, struct buf *scratch, struct activity *out)
{
    static const uint64_t us_in_s = 1000000;
    struct process_usage found;
    if (!process_usage_read(pid, scratch, &found))
        return false;
    out->cpu_us += found.stat.cpu_ticks * us_in_s / (uint64_t)sysconf(_SC_CLK_TCK);
    out->faults += found.stat.faults;
    out->debugged = out->debugged || found.stat.state == 't';
    if (found.has_io)
        out->io_bytes += found.io.read_bytes + found.io.written_bytes;
    out->waits += process_waits_read(pid, scratch);
    return true;
}

bool activity_read(pid_t pid, struct activity *out)
{
    AUTO_BUF struct buf scratch = BUF_INIT(USAGE_TEXT_MAX);
    pid_t *below = NULL;
    *out = (struct activity){.cpu_us = 0};
    if (!add_process(pid, &scratch, out))
        return false;
    size_t count = descendants_list(pid, &below);
    for (size_t i = 0; i < count && i + 1 < ACTIVITY_PROCESSES_MAX; i++)
        add_process(below[i], &scratch, out);
    free(below);
    return true;
}
