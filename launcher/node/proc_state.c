/* SPDX-License-Identifier: Apache-2.0 */
#include "node/proc_state.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/mem.h"

#define FRAMES_MAX 8

const char *proc_state_word(char letter)
{
    switch (letter) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "in uninterruptible wait";
    case 'T': return "stopped";
    case 't': return "stopped by a debugger";
    case 'Z': return "ended, not reaped";
    case 'X': return "dead";
    case 'I': return "idle";
    default: return "in an unknown state";
    }
}

/* Where programs spend their time, or hang. */
#define CALL_LIST(X)     \
    X(read)              \
    X(write)             \
    X(pread64)           \
    X(pwrite64)          \
    X(readv)             \
    X(writev)            \
    X(preadv)            \
    X(pwritev)           \
    X(sendfile)          \
    X(splice)            \
    X(copy_file_range)   \
    X(lseek)             \
    X(ioctl)             \
    X(close)             \
    X(futex)             \
    X(ppoll)             \
    X(pselect6)          \
    X(epoll_pwait)       \
    X(sched_yield)       \
    X(nanosleep)         \
    X(clock_nanosleep)   \
    X(wait4)             \
    X(waitid)            \
    X(rt_sigsuspend)     \
    X(rt_sigtimedwait)   \
    X(rt_sigprocmask)    \
    X(kill)              \
    X(tgkill)            \
    X(exit_group)        \
    X(execve)            \
    X(clone)             \
    X(recvfrom)          \
    X(recvmsg)           \
    X(recvmmsg)          \
    X(sendto)            \
    X(sendmsg)           \
    X(sendmmsg)          \
    X(accept)            \
    X(accept4)           \
    X(connect)           \
    X(shutdown)          \
    X(openat)            \
    X(newfstatat)        \
    X(statx)             \
    X(statfs)            \
    X(fstatfs)           \
    X(getdents64)        \
    X(readlinkat)        \
    X(faccessat)         \
    X(unlinkat)          \
    X(mkdirat)           \
    X(flock)             \
    X(fcntl)             \
    X(fsync)             \
    X(fdatasync)         \
    X(sync)              \
    X(syncfs)            \
    X(fallocate)         \
    X(ftruncate)         \
    X(truncate)          \
    X(mount)             \
    X(umount2)           \
    X(mmap)              \
    X(munmap)            \
    X(mremap)            \
    X(mprotect)          \
    X(madvise)           \
    X(msync)             \
    X(brk)               \
    X(mlock)             \
    X(mlockall)          \
    X(mbind)             \
    X(move_pages)        \
    X(semop)             \
    X(semtimedop)        \
    X(semget)            \
    X(msgrcv)            \
    X(msgsnd)            \
    X(shmat)             \
    X(shmdt)             \
    X(mq_timedreceive)   \
    X(mq_timedsend)      \
    X(io_getevents)      \
    X(io_uring_enter)    \
    X(process_vm_readv)  \
    X(process_vm_writev) \
    X(sched_setaffinity) \
    X(sched_getaffinity) \
    X(getrandom)         \
    X(restart_syscall)

#ifdef SYS_poll /* older calls, which newer machines lack */
#define OLDER_CALL_LIST(X) \
    X(poll)                \
    X(select)              \
    X(epoll_wait)          \
    X(pause)               \
    X(open)                \
    X(stat)                \
    X(lstat)               \
    X(access)              \
    X(unlink)              \
    X(rename)              \
    X(mkdir)               \
    X(rmdir)               \
    X(readlink)            \
    X(vfork)               \
    X(fork)
#else
#define OLDER_CALL_LIST(X)
#endif

static const char *call_name(long number)
{
#define CALL_CASE(name) \
    case SYS_##name: return #name;
    switch (number) {
        CALL_LIST(CALL_CASE)
        OLDER_CALL_LIST(CALL_CASE)
    default: return NULL;
    }
}

char *proc_state_call(long number)
{
    const char *name = call_name(number);
    if (name != NULL)
        return mem_printf("calls %s", name);
    return mem_printf("is in system call number %ld", number);
}

static bool read_proc(pid_t pid, const char *file, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/%s", (int)pid, file);
    buf_clear(out);
    return fd_read_file(path, out, NULL) == 0 && out->length > 0;
}

/* What the process calls; NULL: not readable, running, or in no call. Freed by the caller. */
static char *current_call(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    if (!read_proc(pid, "syscall", &text) || !isdigit((unsigned char)*buf_text(&text)))
        return NULL;
    return proc_state_call(strtol(buf_text(&text), NULL, 10));
}

static void append_stack(pid_t pid, struct buf *out)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    if (!read_proc(pid, "stack", &text))
        return;
    struct buf line AUTO_BUF = BUF_INIT(4096);
    const char *at = buf_text(&text);
    for (int frames = 0; *at != '\0' && frames < FRAMES_MAX; frames++) {
        /* "[<0>] futex_wait_queue+0x5f/0x90" */
        size_t length = strcspn(at, "\n");
        const char *name = memchr(at, ' ', length);
        name = name != NULL ? name + 1 : at;
        buf_printf(&line, "%s%.*s", frames > 0 ? " < " : "", (int)strcspn(name, "+\n "), name);
        at += length + (at[length] == '\n');
    }
    if (line.length > 0)
        buf_printf(out, "    kernel stack: %s\n", buf_text(&line));
}

/* The name in parentheses may hold anything, also ')' and newlines. NULL: the process is gone. */
static char *name_and_letter(pid_t pid, char *letter)
{
    struct buf stat AUTO_BUF = BUF_INIT(4096);
    if (!read_proc(pid, "stat", &stat))
        return NULL;
    const char *begin = strchr(buf_text(&stat), '('), *end = strrchr(buf_text(&stat), ')');
    if (begin == NULL || end == NULL || end < begin || strlen(end) < 4)
        return NULL;
    char *name = mem_strndup(begin + 1, (size_t)(end - begin - 1));
    for (char *at = name; *at != '\0'; at++)
        *at = iscntrl((unsigned char)*at) ? '?' : *at;
    *letter = end[2];
    return name;
}

/* Where the kernel lets the process wait; false: it does not wait, or the kernel does not say. */
static bool wait_channel(pid_t pid, struct buf *out)
{
    return read_proc(pid, "wchan", out) && strcmp(buf_text(out), "0") != 0;
}

int proc_state_read(pid_t pid, struct proc_state *out)
{
    char letter = '\0';
    struct buf wait AUTO_BUF = BUF_INIT(256);
    *out = (struct proc_state){.name = name_and_letter(pid, &letter)};
    if (out->name == NULL)
        return -1;
    char *call AUTO_FREE = current_call(pid);
    bool waits = letter != 'R' && wait_channel(pid, &wait);
    if ((letter != 'S' && letter != 'D') || (call == NULL && !waits))
        out->doing = mem_strdup(proc_state_word(letter));
    else
        out->doing =
            mem_printf("%s%s%s%s", call != NULL ? call : "", call != NULL && waits ? ", " : "",
                       waits ? "waits in " : "", waits ? buf_text(&wait) : "");
    return 0;
}

void proc_state_destroy(struct proc_state *state)
{
    free(state->name);
    free(state->doing);
}

/* false: the process is gone. */
static bool describe(pid_t pid, struct buf *out)
{
    char letter = '\0', *name AUTO_FREE = name_and_letter(pid, &letter);
    if (name == NULL)
        return false;
    buf_printf(out, "  pid %d (%s): %s", (int)pid, name, proc_state_word(letter));
    struct buf wait AUTO_BUF = BUF_INIT(256);
    if (wait_channel(pid, &wait))
        buf_printf(out, ", waits in %s", buf_text(&wait));
    char *call AUTO_FREE = current_call(pid);
    if (call != NULL)
        buf_printf(out, ", %s", call);
    struct buf status AUTO_BUF = BUF_INIT(1 << 16);
    const char *threads =
        read_proc(pid, "status", &status) ? strstr(buf_text(&status), "\nThreads:") : NULL;
    long count = threads != NULL ? strtol(threads + 9, NULL, 10) : 1;
    if (count > 1)
        buf_printf(out, ", %ld threads", count);
    buf_putc(out, '\n');
    if (letter != 'Z')
        append_stack(pid, out);
    return true;
}

size_t proc_state_report(const struct descendants_table *table, pid_t pid, size_t max,
                         struct buf *out)
{
    pid_t *below = NULL;
    size_t count = descendants_in(table, pid, &below), shown = 0, more = 0;
    for (size_t i = 0; i <= count; i++) {
        if (shown < max)
            shown += describe(i == 0 ? pid : below[i - 1], out) ? 1 : 0;
        else
            more++;
    }
    if (more > 0)
        buf_printf(out, "  and %zu more processes\n", more);
    free(below);
    return shown;
}
