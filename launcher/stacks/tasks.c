/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/tasks.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "io/proc.h"

char *refusal(const char *what, int error)
{
    struct buf scope AUTO_BUF = BUF_INIT(16);
    bool refused = error == EACCES || error == EPERM;
    if (refused && fd_read_file("/proc/sys/kernel/yama/ptrace_scope", &scope, NULL) == 0 &&
        *buf_text(&scope) > '0')
        return mem_printf("%s: %s (kernel.yama.ptrace_scope is %c)", what, strerror(error),
                          *buf_text(&scope));
    return mem_printf("%s: %s", what, strerror(error));
}

#define STATUS_MAX (1 << 16)
#define TASKS_MAX 65536
#define FLAG_EXITING 0x4 /* the kernel's PF_EXITING */

/* The value after "\nNAME:\t"; NULL: none. */
static const char *field(const char *status, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = status; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == ':')
            return at + length + 1 + strspn(at + length + 1, " \t");
    }
    return NULL;
}

static unsigned long long number(const char *status, const char *name)
{
    const char *at = field(status, name);
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

int task_read(pid_t pid, pid_t tid, struct task *out)
{
    struct buf text AUTO_BUF = BUF_INIT(STATUS_MAX);
    *out = (struct task){.inner = tid};
    if (!proc_read(pid, tid, "status", &text))
        return -1;
    const char *status = buf_text(&text);
    const char *name = field(status, "Name"), *state = field(status, "State");
    const char *inner = field(status, "NSpid");
    for (size_t i = 0; name != NULL && name[i] != '\n' && i + 1 < sizeof(out->name); i++)
        out->name[i] = name[i];
    plain_text(out->name);
    out->runs = state != NULL && *state == 'R';
    out->stuck = state != NULL && *state == 'D';
    out->switches =
        number(status, "voluntary_ctxt_switches") + number(status, "nonvoluntary_ctxt_switches");
    while (inner != NULL && isdigit((unsigned char)*inner)) {
        char *end = NULL;
        long value = strtol(inner, &end, 10);
        out->nested = out->inner != (pid_t)value || out->nested;
        out->inner = (pid_t)value;
        inner = end + strspn(end, "\t ");
    }
    return 0;
}

pid_t task_find(pid_t pid, pid_t inner)
{
    struct task task;
    pid_t *tids = NULL, found = 0;
    if (inner <= 0 || task_read(pid, pid, &task) < 0)
        return 0;
    if (!task.nested)
        return task_read(pid, inner, &task) == 0 ? inner : 0;
    size_t count = proc_threads(pid, TASKS_MAX, &tids);
    for (size_t i = 0; i < count && found == 0; i++)
        found = task_read(pid, tids[i], &task) == 0 && task.inner == inner ? tids[i] : 0;
    free(tids);
    return found;
}

long task_call(const struct rights *rights, pid_t pid, pid_t tid, bool *running)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    *running = false;
    if (rights->call(rights->context, pid, tid, &text) < 0)
        return -1;
    *running = strncmp(buf_text(&text), "running", 7) == 0;
    return isdigit((unsigned char)*buf_text(&text)) ? strtol(buf_text(&text), NULL, 10) : -1;
}

/* Its stack pointer and its next instruction. -1: it runs, or they cannot be read. */
static int task_place(const struct rights *rights, pid_t pid, pid_t tid, uint64_t *sp, uint64_t *pc)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    if (rights->call(rights->context, pid, tid, &text) < 0)
        return -1;
    /* "202 0x7f.. ... SP PC", or "-1 SP PC" outside of a call */
    const char *begin = buf_text(&text), *last = strrchr(begin, ' ');
    const char *before = last != NULL ? memrchr(begin, ' ', (size_t)(last - begin)) : NULL;
    *pc = last != NULL ? strtoull(last, NULL, 16) : 0;
    *sp = before != NULL ? strtoull(before, NULL, 16) : 0;
    return *sp != 0 && *pc != 0 ? 0 : -1;
}

static bool task_is_stuck(pid_t pid, pid_t tid)
{
    struct task task;
    return task_read(pid, tid, &task) == 0 && task.stuck;
}

bool task_is_ending(pid_t pid, pid_t tid)
{
    struct proc_stat stat;
    return proc_read_stat(pid, tid, &stat) < 0 || stat.state == 'Z' || stat.state == 'X' ||
           (stat.flags & FLAG_EXITING) != 0;
}

#define STOP_MS 200 /* a thread that does not stop by then is deep in the kernel */
#define EAGER_TRIES 50
#define PAGE 4096u
#define CHUNK ((size_t)16 << 10)
#define RED_ZONE 128u /* below the stack pointer: a function that calls no other may use it */

#ifdef __aarch64__
#define SP_REGISTER 31
#define GENERAL_REGISTERS 31

static void take_registers(const struct user_regs_struct *from, struct unwind_registers *out)
{
    for (int i = 0; i < GENERAL_REGISTERS; i++)
        out->values[i] = from->regs[i];
    out->values[SP_REGISTER] = from->sp;
    out->known = ((uint64_t)1 << (SP_REGISTER + 1)) - 1;
    out->pc = from->pc;
}
#else
#define SP_REGISTER 7
#define PC_REGISTER 16

static void take_registers(const struct user_regs_struct *from, struct unwind_registers *out)
{
    const uint64_t values[] = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
                               from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
                               from->r12, from->r13, from->r14, from->r15, from->rip};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        out->values[i] = values[i];
    out->known = ((uint64_t)1 << (PC_REGISTER + 1)) - 1;
    out->pc = from->rip;
}
#endif

/* Copies from below the stack pointer on, as far as it can. */
static void take_stack(int memory_fd, struct snapshot *out)
{
    uint64_t sp = out->registers.values[SP_REGISTER];
    out->stack_at = sp - RED_ZONE;
    out->stack = mem_alloc(SNAPSHOT_STACK);
    out->stack_length = 0;
    while (out->stack_length < SNAPSHOT_STACK) {
        ssize_t got = fd_pread(memory_fd, out->stack + out->stack_length,
                               CHUNK - (out->stack_at + out->stack_length) % PAGE,
                               (off_t)(out->stack_at + out->stack_length));
        if (got <= 0)
            break;
        out->stack_length += (size_t)got;
        if (SNAPSHOT_STACK - out->stack_length < CHUNK)
            break;
    }
}

int snapshot_waiting(const struct rights *rights, pid_t pid, pid_t tid, int memory_fd,
                     struct snapshot *out)
{
    struct task before, after;
    *out = (struct snapshot){.stack = NULL};
    if (task_read(pid, tid, &before) < 0 || before.runs ||
        task_place(rights, pid, tid, &out->registers.values[SP_REGISTER], &out->registers.pc) < 0)
        return -1;
    out->registers.known = (uint64_t)1 << SP_REGISTER;
#ifdef PC_REGISTER
    out->registers.values[PC_REGISTER] = out->registers.pc;
    out->registers.known |= (uint64_t)1 << PC_REGISTER;
#endif
    take_stack(memory_fd, out);
    if (task_read(pid, tid, &after) == 0 && !after.runs && after.switches == before.switches)
        return 0;
    snapshot_destroy(out);
    return -1;
}

void snapshot_destroy(struct snapshot *snapshot)
{
    free(snapshot->stack);
    *snapshot = (struct snapshot){.stack = NULL};
}

/* A signal that came first has stopped the thread instead of us: it gets the signal back. */
static intptr_t pending_signal(pid_t tid)
{
    siginfo_t info;
    if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) < 0 || info.si_code >> 8 == PTRACE_EVENT_STOP)
        return 0;
    return info.si_signo;
}

/* 0: it has stopped, and these are its registers. */
static int wait_for_registers(pid_t tid, int64_t deadline_ns, struct user_regs_struct *out)
{
    struct iovec place = {out, sizeof(*out)};
    int64_t limit_ns = clock_mono_ns() + (int64_t)STOP_MS * 1000000;
    for (int i = 0;; i++) {
        if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place) == 0)
            return place.iov_len == sizeof(*out) ? 0 : ENOTSUP; /* a 32-bit program has fewer */
        int64_t now = clock_mono_ns();
        if (errno != ESRCH)
            return errno;
        if (now > limit_ns || now > deadline_ns)
            return ETIMEDOUT;
        if (i < EAGER_TRIES)
            sched_yield();
        else
            poll(NULL, 0, 1);
    }
}

/* The thread that calls this must end soon: see above. */
static int stop_and_take(pid_t tid, int memory_fd, int64_t deadline_ns, struct snapshot *out)
{
    struct user_regs_struct registers;
    char byte;
    /* If the process's memory map is locked, we wait here and not while the thread is stopped. */
    (void)fd_pread(memory_fd, &byte, sizeof(byte), PAGE);
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return errno;
    int error = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? errno : 0;
    if (error == 0)
        error = wait_for_registers(tid, deadline_ns, &registers);
    if (error == 0) {
        take_registers(&registers, &out->registers);
        take_stack(memory_fd, out);
    }
    /* Of a thread that has not stopped, it fails; then the end of this thread does it. */
    (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)pending_signal(tid));
    return error;
}

struct tracer {
    pid_t pid;
    int memory_fd;
    int64_t deadline_ns;
    struct snapshot_order *orders;
    size_t count;
};

static void *trace(void *context)
{
    struct tracer *tracer = context;
    for (size_t i = 0; i < tracer->count; i++) {
        struct snapshot_order *order = &tracer->orders[i];
        if (clock_mono_ns() < tracer->deadline_ns && !task_is_stuck(tracer->pid, order->tid))
            order->error =
                stop_and_take(order->tid, tracer->memory_fd, tracer->deadline_ns, &order->out);
    }
    return NULL;
}

static void stop_threads(void *context, pid_t pid, int memory_fd, int64_t deadline_ns,
                         struct snapshot_order *orders, size_t count)
{
    (void)context;
    struct tracer tracer = {pid, memory_fd, deadline_ns, orders, count};
    pthread_t thread;
    for (size_t i = 0; i < count; i++) {
        orders[i].error = ETIMEDOUT;
        orders[i].out = (struct snapshot){.stack = NULL};
    }
    int error = pthread_create(&thread, NULL, trace, &tracer);
    if (error == 0)
        pthread_join(thread, NULL);
    for (size_t i = 0; error != 0 && i < count; i++)
        orders[i].error = error;
}

/* ---- The rights of this process itself ------------------------------------------------------- */

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

const struct rights rights_own = {NULL, open_memory, read_call, stop_threads};
