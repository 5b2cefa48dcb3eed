/* SPDX-License-Identifier: Apache-2.0 */
#include "node/oom.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/cgroup.h"

#define VICTIMS_MAX 256
#define RECORDS_MAX 65536 /* of the kernel's log that one call reads */

struct oom_watch {
    int64_t cgroup, machine; /* counters at the start; -1: not known */
    int log;                 /* /dev/kmsg behind its last record; -1: not readable */
    pid_t victims[VICTIMS_MAX];
    size_t victim_count;
};

static int64_t cgroup_kills(void)
{
    return cgroup_memory_counter("memory.events", "memory.oom_control", "oom_kill");
}

static int64_t machine_kills(void)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    if (fd_read_file("/proc/vmstat", &text, NULL) < 0)
        return -1;
    const char *line = strstr(buf_text(&text), "\noom_kill ");
    return line != NULL ? strtoll(line + 10, NULL, 10) : -1;
}

struct oom_watch *oom_watch_create(void)
{
    struct oom_watch *watch = mem_alloc(sizeof(*watch));
    watch->cgroup = cgroup_kills();
    watch->machine = machine_kills();
    watch->log = fd_open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (watch->log >= 0 && lseek(watch->log, 0, SEEK_END) < 0)
        fd_close(&watch->log);
    return watch;
}

void oom_watch_destroy(struct oom_watch *watch)
{
    if (watch == NULL)
        return;
    fd_close(&watch->log);
    free(watch);
}

pid_t oom_victim_in(const char *record)
{
    static const char said[] = "Killed process ";
    const char *at = strstr(record, said);
    if (at == NULL || !isdigit((unsigned char)at[sizeof(said) - 1]))
        return -1;
    long pid = strtol(at + sizeof(said) - 1, NULL, 10);
    return pid > 0 && pid < INT32_MAX ? (pid_t)pid : -1;
}

/* Each read gives one record; EPIPE means that records were overwritten before we came. */
static void read_log(struct oom_watch *watch)
{
    char record[8192];
    for (int i = 0; watch->log >= 0 && i < RECORDS_MAX; i++) {
        ssize_t got = fd_read(watch->log, record, sizeof(record) - 1);
        if (got < 0 && errno == EPIPE)
            continue;
        if (got <= 0)
            return;
        record[got] = '\0';
        pid_t victim = oom_victim_in(record);
        if (victim > 0)
            watch->victims[watch->victim_count++ % VICTIMS_MAX] = victim;
    }
}

enum oom_verdict oom_watch_verdict(struct oom_watch *watch, pid_t pid)
{
    read_log(watch);
    for (size_t i = 0; i < watch->victim_count && i < VICTIMS_MAX; i++) {
        if (watch->victims[i] == pid)
            return OOM_CERTAIN;
    }
    if (watch->cgroup >= 0 && cgroup_kills() > watch->cgroup)
        return OOM_LIKELY;
    if (watch->machine >= 0 && machine_kills() > watch->machine)
        return OOM_POSSIBLE;
    return OOM_NO;
}
