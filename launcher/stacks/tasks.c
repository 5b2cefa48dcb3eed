/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/tasks.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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

int task_place(const struct rights *rights, pid_t pid, pid_t tid, uint64_t *sp, uint64_t *pc)
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

bool task_is_stuck(pid_t pid, pid_t tid)
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
