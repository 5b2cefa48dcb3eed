/* SPDX-License-Identifier: Apache-2.0 */
#include "node/file_wait.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define MOUNTS_MAX ((size_t)1 << 20)

/* Calls whose first argument is the descriptor that they wait for. */
static bool takes_descriptor(long call)
{
    static const long calls[] = {SYS_read,   SYS_write,     SYS_readv,  SYS_writev,     SYS_pread64,
                                 SYS_preadv, SYS_pwrite64,  SYS_fsync,  SYS_fdatasync,  SYS_fstat,
                                 SYS_fcntl,  SYS_ftruncate, SYS_fchdir, SYS_getdents64, SYS_close};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i] == call)
            return true;
    }
    return false;
}

/* Of a server or of a program, by the beginning of their names. */
static bool can_hang(const char *system)
{
    static const char *const systems[] = {"nfs",  "cifs",   "smb", "lustre", "ceph",  "fuse",
                                          "gpfs", "beegfs", "9p",  "afs",    "pvfs2", "virtiofs"};
    for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
        if (strncmp(system, systems[i], strlen(systems[i])) == 0)
            return true;
    }
    return false;
}

/* "0 0x3 0x7ffc... ": the number of the call, then its arguments. -1: there is none. */
static int waited_for(const char *root, pid_t tid)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    char *path AUTO_FREE = mem_printf("%s/proc/%d/syscall", root, (int)tid), *rest;
    if (fd_read_file(path, &text, NULL) < 0 || buf_text(&text)[0] < '0' || buf_text(&text)[0] > '9')
        return -1;
    long call = strtol(buf_text(&text), &rest, 10);
    unsigned long fd = strtoul(rest, NULL, 16);
    return takes_descriptor(call) && fd <= 1 << 24 ? (int)fd : -1;
}

static long mount_of(const char *root, pid_t tid, int fd)
{
    struct buf text AUTO_BUF = BUF_INIT(8192);
    char *path AUTO_FREE = mem_printf("%s/proc/%d/fdinfo/%d", root, (int)tid, fd);
    if (fd_read_file(path, &text, NULL) < 0)
        return -1;
    const char *found = strstr(buf_text(&text), "mnt_id:");
    return found == NULL ? -1 : strtol(found + strlen("mnt_id:"), NULL, 10);
}

/* "42 28 0:40 / /data rw,relatime shared:1 - nfs4 server:/data rw" */
static char *system_of(const char *root, pid_t tid, long mount)
{
    struct buf text AUTO_BUF = BUF_INIT(MOUNTS_MAX);
    char *path AUTO_FREE = mem_printf("%s/proc/%d/mountinfo", root, (int)tid);
    fd_read_file(path, &text, NULL);
    for (const char *line = buf_text(&text); *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *mark = memmem(line, length, " - ", 3);
        if (strtol(line, NULL, 10) == mount && mark != NULL)
            return mem_strndup(mark + 3, strcspn(mark + 3, " \n"));
        line += length + (line[length] == '\n');
    }
    return NULL;
}

char *file_wait_system(const char *root, pid_t tid)
{
    int fd = waited_for(root, tid);
    long mount = fd < 0 ? -1 : mount_of(root, tid, fd);
    char *system = mount < 0 ? NULL : system_of(root, tid, mount);
    if (system != NULL && can_hang(system))
        return system;
    free(system);
    return NULL;
}
