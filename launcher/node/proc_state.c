/* SPDX-License-Identifier: Apache-2.0 */
#include "node/proc_state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/text.h"
#include "io/proc.h"
#include "model/exit/signal_name.h"
#include "node/cgroup.h"

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

/* The build makes the list. */
static const char *call_name(long number)
{
#define CALL(name) \
    case SYS_##name: return #name;
    switch (number) {
#include "node/calls.def"
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

/* After a stop, the kernel begins some calls again under another number, and its own function says
 * which one that was. NULL: it does not. */
static const char *call_again(const char *wait)
{
    if (text_begins(wait, "futex_"))
        return "calls futex";
    return text_begins(wait, "poll_") || text_begins(wait, "do_sys_poll") ? "calls poll" : NULL;
}

/* "calls read"; NULL: it is in no call, or that is unknown. */
static char *call_text(const struct proc_facts *facts)
{
    if (facts->call != SYS_restart_syscall)
        return facts->call >= 0 ? proc_state_call(facts->call) : NULL;
    const char *again = call_again(facts->wait);
    return again != NULL ? mem_strdup(again) : NULL;
}

static char *held_text(const struct proc_facts *facts)
{
    const char *name = signal_short_name(facts->stop_signal);
    if (facts->letter == 'T')
        return name != NULL ? mem_printf("stopped (SIG%s)", name) : mem_strdup("stopped");
    if (facts->letter == 't')
        return mem_strdup("stopped by a debugger");
    if (text_begins(facts->wait, "mem_cgroup_oom"))
        return mem_strdup("out of memory in its cgroup");
    return facts->frozen ? mem_strdup("frozen by a cgroup") : NULL;
}

char *proc_state_doing(const struct proc_facts *facts, bool with_wait, bool *held)
{
    char *text = held_text(facts);
    *held = text != NULL;
    if (text != NULL)
        return text;
    if (facts->letter != 'S' && facts->letter != 'D')
        return mem_strdup(facts->letter == 'Z' && facts->threads > 1
                              ? "its first thread has ended"
                              : proc_state_word(facts->letter));
    char *call AUTO_FREE = call_text(facts);
    bool waits = facts->wait[0] != '\0' && (with_wait || call == NULL);
    if (call == NULL && !waits)
        return mem_strdup(proc_state_word(facts->letter));
    return mem_printf("%s%s%s%s", call != NULL ? call : "", call != NULL && waits ? ", " : "",
                      waits ? "waits in " : "", waits ? facts->wait : "");
}

static void append_stack(pid_t pid, struct buf *out)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    if (!proc_read(pid, 0, "stack", &text))
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

#define STOP_MAX 64

/* `tid` is 0 for the first thread, and then as in io/proc.h. -1: the process is gone. */
static int read_state(pid_t pid, pid_t tid, struct proc_facts *out)
{
    struct proc_stat stat;
    struct buf wait AUTO_BUF = BUF_INIT(256);
    if (proc_read_stat(pid, tid, &stat) < 0)
        return -1;
    out->letter = stat.state;
    out->threads = (long)stat.threads;
    /* where the kernel lets it wait, if it says so */
    if (out->letter != 'R' && proc_read(pid, tid, "wchan", &wait) &&
        strcmp(buf_text(&wait), "0") != 0)
        snprintf(out->wait, sizeof(out->wait), "%s", buf_text(&wait));
    if (out->letter == 'T' && (tid == 0 || proc_read_stat(pid, 0, &stat) == 0) && stat.code > 0 &&
        stat.code < STOP_MAX)
        out->stop_signal = (int)stat.code; /* threads do not say it */
    /* Kernels compile the freezer of cgroups in two ways. That of version 1 may leave a process
     * where it waits. */
    out->frozen = text_begins(out->wait, "do_freezer_trap") ||
                  strcmp(out->wait, "get_signal") == 0 ||
                  (out->letter == 'D' && cgroup_is_frozen(pid));
    return 0;
}

/* The name may hold anything, also newlines. */
static char *read_name(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(256);
    (void)proc_read(pid, 0, "comm", &text);
    buf_truncate(&text, text.length > 0 ? text.length - 1 : 0);
    char *name = mem_strdup(buf_text(&text));
    plain_line(name, '?');
    return name;
}

static long read_call(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    if (!proc_read(pid, 0, "syscall", &text) || !isdigit((unsigned char)*buf_text(&text)))
        return -1;
    return strtol(buf_text(&text), NULL, 10);
}

int proc_state_read(pid_t pid, const long *call, struct proc_state *out)
{
    struct proc_facts facts = {.call = -1};
    *out = (struct proc_state){.name = NULL};
    if (read_state(pid, 0, &facts) < 0)
        return -1;
    out->name = read_name(pid);
    facts.call = call != NULL ? *call : read_call(pid);
    out->doing = proc_state_doing(&facts, true, &out->held);
    return 0;
}

char *proc_state_held(pid_t pid)
{
    struct proc_facts facts = {.call = -1};
    return read_state(pid, 0, &facts) < 0 || facts.letter == 'R' ? NULL : held_text(&facts);
}

#define PF_EXITING 0x4 /* of the kernel's sched.h */

bool proc_state_ends(pid_t pid)
{
    struct proc_stat stat;
    pid_t *threads AUTO_FREE = NULL;
    size_t count = proc_threads(pid, SIZE_MAX, &threads);
    bool ends = count > 0;
    for (size_t i = 0; i < count && ends; i++) /* the first may have ended alone */
        ends = proc_read_stat(pid, threads[i], &stat) == 0 && (stat.flags & PF_EXITING) != 0;
    return ends;
}

char *proc_state_thread(pid_t pid, pid_t tid, long call, bool *held)
{
    struct proc_facts facts = {.call = call};
    *held = false;
    if (read_state(pid, tid, &facts) < 0)
        return call >= 0 ? proc_state_call(call) : mem_strdup("");
    return proc_state_doing(&facts, false, held);
}

void proc_state_destroy(struct proc_state *state)
{
    free(state->name);
    free(state->doing);
}

/* false: the process is gone. */
static bool describe(pid_t pid, struct buf *out)
{
    struct proc_facts facts = {.call = -1};
    if (read_state(pid, 0, &facts) < 0)
        return false;
    char *name AUTO_FREE = read_name(pid);
    facts.call = read_call(pid);
    char *held AUTO_FREE = held_text(&facts), *call AUTO_FREE = call_text(&facts);
    buf_printf(out, "  pid %d (%s): %s", (int)pid, name,
               held != NULL ? held : proc_state_word(facts.letter));
    if (facts.wait[0] != '\0')
        buf_printf(out, ", waits in %s", facts.wait);
    if (call != NULL)
        buf_printf(out, ", %s", call);
    if (facts.threads > 1)
        buf_printf(out, ", %ld threads", facts.threads);
    buf_putc(out, '\n');
    if (facts.letter != 'Z')
        append_stack(pid, out);
    return true;
}

size_t proc_state_report(const struct descendants_table *table, pid_t pid, size_t max,
                         struct buf *out)
{
    pid_t *below AUTO_FREE = NULL;
    size_t count = descendants_in(table, pid, &below), shown = 0, more = 0;
    for (size_t i = 0; i <= count; i++) {
        if (shown < max)
            shown += describe(i == 0 ? pid : below[i - 1], out) ? 1 : 0;
        else
            more++;
    }
    if (more > 0)
        buf_printf(out, "  and %zu more processes\n", more);
    return shown;
}

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
    const char *found = text_line_after(buf_text(&text), "mnt_id:");
    return found == NULL ? -1 : strtol(found, NULL, 10);
}

/* "42 28 0:40 / /data rw,relatime shared:1 - nfs4 server:/data rw" */
static char *system_of(const char *root, pid_t tid, long mount)
{
    struct buf text AUTO_BUF = BUF_INIT(MOUNTS_MAX);
    char *path AUTO_FREE = mem_printf("%s/proc/%d/mountinfo", root, (int)tid);
    fd_read_file(path, &text, NULL);
    for (const char *line = buf_text(&text); *line != '\0'; line = text_behind(line, '\n')) {
        size_t length = strcspn(line, "\n");
        const char *mark = memmem(line, length, " - ", 3);
        if (strtol(line, NULL, 10) == mount && mark != NULL)
            return mem_strndup(mark + 3, strcspn(mark + 3, " \n"));
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
