/* SPDX-License-Identifier: Apache-2.0 */
#include "io/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

#define STAT_MAX 4096

bool proc_read(pid_t pid, pid_t tid, const char *file, struct buf *out)
{
    char path[128];
    if (tid == 0)
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    else
        snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
    buf_clear(out);
    return fd_read_file(path, out, NULL) == 0;
}

int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *out)
{
    struct buf text AUTO_BUF = BUF_INIT(STAT_MAX);
    return proc_read(pid, tid, "stat", &text) ? proc_stat_read(buf_text(&text), out) : -1;
}

const char *proc_variable(const struct buf *environment, const char *name)
{
    size_t length = strlen(name);
    const char *at = buf_text(environment), *end = at + environment->length;
    for (; at < end; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

size_t proc_threads(pid_t pid, size_t max, pid_t **out)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
    size_t count = 0, room = 0;
    *out = NULL;
    for (; entry != NULL && count < max; entry = readdir(folder)) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        MEM_ADD_ROOM(*out, count, room) = tid;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}
