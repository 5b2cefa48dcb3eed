/* SPDX-License-Identifier: Apache-2.0 */
#include "node/proc_state.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/mem.h"
#include "node/descendants.h"

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

/* Where programs usually hang; other calls are shown by number. */
static const char *syscall_name(long number)
{
    static const struct {
        long number;
        const char *name;
    } known[] = {
        {SYS_read, "read"},
        {SYS_write, "write"},
        {SYS_readv, "readv"},
        {SYS_writev, "writev"},
        {SYS_ioctl, "ioctl"},
        {SYS_futex, "futex"},
        {SYS_ppoll, "ppoll"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll
        {SYS_poll, "poll"},
        {SYS_select, "select"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_pause, "pause"},
        {SYS_open, "open"},
#endif
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_wait4, "wait4"},
        {SYS_waitid, "waitid"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_recvmsg, "recvmsg"},
        {SYS_sendto, "sendto"},
        {SYS_sendmsg, "sendmsg"},
        {SYS_accept, "accept"},
        {SYS_accept4, "accept4"},
        {SYS_connect, "connect"},
        {SYS_openat, "openat"},
        {SYS_flock, "flock"},
        {SYS_fcntl, "fcntl"},
        {SYS_fsync, "fsync"},
        {SYS_munmap, "munmap"},
        {SYS_restart_syscall, "restart_syscall"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].number == number)
            return known[i].name;
    }
    return NULL;
}

static bool read_proc(pid_t pid, const char *file, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("/proc/%d/%s", (int)pid, file);
    buf_clear(out);
    return fd_read_file(path, out, NULL) == 0 && out->length > 0;
}

/* "futex" or "system call 202"; NULL: not readable, running, or not in one. Freed by the caller. */
static char *current_call(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    if (!read_proc(pid, "syscall", &text) || !isdigit((unsigned char)*buf_text(&text)))
        return NULL;
    long number = strtol(buf_text(&text), NULL, 10);
    const char *name = syscall_name(number);
    return name != NULL ? mem_strdup(name) : mem_printf("system call %ld", number);
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

/* The name in parentheses may hold anything, also ')' and newlines. false: the process is gone. */
static bool describe(pid_t pid, struct buf *out)
{
    struct buf stat AUTO_BUF = BUF_INIT(4096);
    if (!read_proc(pid, "stat", &stat))
        return false;
    const char *begin = strchr(buf_text(&stat), '('), *end = strrchr(buf_text(&stat), ')');
    if (begin == NULL || end == NULL || end < begin || strlen(end) < 4)
        return false;
    char *name AUTO_FREE = mem_strndup(begin + 1, (size_t)(end - begin - 1));
    for (char *at = name; *at != '\0'; at++)
        *at = iscntrl((unsigned char)*at) ? '?' : *at;
    char letter = end[2];
    buf_printf(out, "  pid %d (%s): %s", (int)pid, name, proc_state_word(letter));
    struct buf wait AUTO_BUF = BUF_INIT(256);
    if (read_proc(pid, "wchan", &wait) && strcmp(buf_text(&wait), "0") != 0)
        buf_printf(out, ", waits in %s", buf_text(&wait));
    char *call AUTO_FREE = current_call(pid);
    if (call != NULL)
        buf_printf(out, ", calls %s", call);
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

size_t proc_state_report(pid_t pid, size_t max, struct buf *out)
{
    pid_t *below = NULL;
    size_t count = descendants_list(pid, &below), shown = 0, more = 0;
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
