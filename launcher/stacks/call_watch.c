/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/call_watch.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/proc.h"

#define WATCHES_MAX 1024 /* each is an open file: and at most a quarter of what we may open */
#define UNUSED_MS 300000 /* longer than the time between two looks */
#define PARANOID_MAX 2   /* with which every user may count */
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

struct watch {
    pid_t tid;
    uint64_t address, number, start; /* start: of the thread */
    int64_t asked_ms;
    int fd;
};

struct call_watches {
    struct watch *list;
    size_t count;
    uint64_t last; /* number */
    bool tried;
    int error; /* 0: the kernel counts */
};

struct call_watches *call_watches_create(void)
{
    return mem_alloc(sizeof(struct call_watches));
}

void call_watches_destroy(struct call_watches *watches)
{
    if (watches == NULL)
        return;
    for (size_t i = 0; i < watches->count; i++)
        fd_close(&watches->list[i].fd);
    free(watches->list);
    free(watches);
}

/* `tid` 0: this thread. -1 and errno. */
static int begin_count(pid_t tid, uint64_t address)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .size = PERF_ATTR_SIZE_VER1,
                                   .bp_type = HW_BREAKPOINT_X,
                                   .bp_addr = address,
                                   .bp_len = sizeof(long),
                                   .sample_period = 1,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING};
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* -1: it is unknown, since it has not counted all the time. */
static int64_t count_of(int fd)
{
    struct {
        uint64_t count, enabled, running;
    } value;
    bool known = fd_read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) &&
                 value.enabled == value.running;
    return known ? (int64_t)value.count : -1;
}

__attribute__((noinline)) static void nothing(void)
{
    __asm__ volatile("");
}

/* Some virtual machines take a breakpoint, and never come to it. */
static int try_count(void)
{
    void (*function)(void) = nothing;
    uint64_t address = 0;
    memcpy(&address, &function, sizeof(function));
    int fd AUTO_FD = begin_count(0, address);
    if (fd < 0)
        return errno;
    int64_t before = count_of(fd);
    function();
    return before == 0 && count_of(fd) == 1 ? 0 : ENOTSUP;
}

static void drop(struct call_watches *watches, struct watch *watch)
{
    fd_close(&watch->fd);
    *watch = watches->list[--watches->count];
}

size_t call_watches_expire(struct call_watches *watches)
{
    int64_t now_ms = clock_mono_ms();
    for (size_t i = watches->count; i > 0; i--) {
        if (now_ms - watches->list[i - 1].asked_ms > UNUSED_MS)
            drop(watches, &watches->list[i - 1]);
    }
    return watches->count;
}

/* Its number can get to another thread. 0: the process has no such thread. */
static uint64_t start_of(pid_t pid, pid_t tid)
{
    struct proc_stat stat;
    return proc_read_stat(pid, tid, &stat) == 0 ? stat.start_ticks : 0;
}

static bool has_room(const struct call_watches *watches)
{
    struct rlimit files;
    bool known = getrlimit(RLIMIT_NOFILE, &files) == 0;
    return watches->count < WATCHES_MAX && known && watches->count < files.rlim_cur / 4;
}

static struct watch *find(const struct call_watches *watches, pid_t tid)
{
    for (size_t i = 0; i < watches->count; i++) {
        if (watches->list[i].tid == tid)
            return &watches->list[i];
    }
    return NULL;
}

uint64_t call_watches_number(struct call_watches *watches, pid_t pid, pid_t tid, uint64_t address)
{
    int64_t now_ms = clock_mono_ms();
    uint64_t start = start_of(pid, tid);
    struct watch *watch = find(watches, tid);
    if (watch != NULL && watch->start == start && watch->address == address &&
        count_of(watch->fd) == 0) {
        watch->asked_ms = now_ms;
        return watch->number;
    }
    if (watch != NULL)
        drop(watches, watch);
    call_watches_expire(watches);
    if (!watches->tried)
        watches->error = try_count();
    watches->tried = true;
    errno = start == 0 ? ESRCH : watches->error != 0 ? watches->error : EMFILE;
    bool may = start != 0 && watches->error == 0 && has_room(watches);
    int fd = may ? begin_count(tid, address) : -1;
    if (fd < 0)
        return 0;
    MEM_ADD(watches->list, watches->count) = (struct watch){.tid = tid,
                                                            .address = address,
                                                            .number = ++watches->last,
                                                            .start = start,
                                                            .asked_ms = now_ms,
                                                            .fd = fd};
    return watches->last;
}

/* Up to 2, the setting is not the cause: a container refuses the system call. */
char *call_watches_refusal(int error)
{
    struct buf value AUTO_BUF = BUF_INIT(64);
    bool read = (error == EACCES || error == EPERM) && fd_read_file(PARANOID, &value, NULL) == 0;
    long paranoid = read && value.length > 0 ? strtol(buf_text(&value), NULL, 10) : 0;
    char *cause AUTO_FREE = paranoid > PARANOID_MAX
                                ? mem_printf(" (kernel.perf_event_paranoid is %ld)", paranoid)
                                : NULL;
    return mem_printf("it cannot be seen whether calls of MPI return: %s%s", strerror(error),
                      cause != NULL ? cause : "");
}
