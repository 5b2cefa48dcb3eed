/* SPDX-License-Identifier: Apache-2.0 */
#include "node/held_child.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
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
    char *path AUTO_FREE = mem_printf("/proc/%d/stat", (int)pid);
    struct buf text AUTO_BUF = BUF_INIT(4096);
    if (fd_read_file(path, &text, NULL) < 0)
        return -1;
    const char *name_end = strrchr(buf_text(&text), ')'), *last = strrchr(buf_text(&text), ' ');
    if (name_end == NULL || strncmp(name_end, ") Z", 3) != 0 || is_reapable(pid))
        return -1;
    return (int)strtol(last, NULL, 10);
}

bool held_child_waits(pid_t pid)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    bool waits = false;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL && !waits;
         entry = readdir(folder)) {
        long tid = strtol(entry->d_name, NULL, 10);
        if (tid <= 0 || tid == pid)
            continue;
        char *stat AUTO_FREE = mem_printf("%s/%s/stat", path, entry->d_name);
        struct buf text AUTO_BUF = BUF_INIT(4096);
        const char *name_end =
            fd_read_file(stat, &text, NULL) == 0 ? strrchr(buf_text(&text), ')') : NULL;
        waits = name_end != NULL && name_end[1] == ' ' && strchr("SD", name_end[2]) != NULL;
    }
    if (folder != NULL)
        closedir(folder);
    return waits;
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
