/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/module_open.h"
#include "io/proc.h"
#include "model/settings/mpi_names.h"
#include "stacks/module/unwind_module.h"
#include "stacks/native_test.h"
#include "stacks/tasks.h"

/* ---- Names ----------------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 160

static bool follows(const char *name, const char *at, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(at - name) >= length && strncmp(at - length, word, length) == 0;
}

/* "(anonymous namespace)" and "operator()" are parts of a name; any other parenthesis begins the
 * arguments. */
static bool is_argument_list(const char *name, const char *at)
{
    static const char anonymous[] = "(anonymous namespace)";
    return strncmp(at, anonymous, sizeof(anonymous) - 1) != 0 && !follows(name, at, "operator");
}

/* Copies a C++ name up to its arguments; what is between < and > becomes "...". */
static void put_shortened(const char *name, struct buf *out)
{
    int depth = 0;
    for (const char *at = name; *at != '\0'; at++) {
        bool operator_name = follows(name, at, "operator") || follows(name, at, "operator<");
        if (*at == '<' && !operator_name && depth++ == 0)
            buf_puts(out, "<...>");
        if (depth == 0 && *at == '(' && is_argument_list(name, at))
            return;
        if (depth == 0)
            buf_putc(out, *at);
        if (*at == '>' && depth > 0)
            depth--;
    }
}

static size_t length_before(const char *text, char end)
{
    size_t length = 0;
    while (length < NAME_MAX_BYTES - 1 && text[length] != '\0' && text[length] != end)
        length++;
    return length;
}

char *native_name(const struct unwind_frame *frame)
{
    struct buf text = BUF_INIT(NAME_MAX_BYTES);
    if (frame->function == NULL && frame->object[0] == '\0')
        buf_puts(&text, "(code without a file)");
    else if (frame->function == NULL)
        buf_printf(&text, "+0x%" PRIx64, frame->offset);
    else if (strchr(frame->function, '(') != NULL)
        put_shortened(frame->function, &text);
    else /* "name@@GLIBC_2.34": without the version */
        buf_printf(&text, "%.*s", (int)length_before(frame->function, '@'), frame->function);
    return buf_take(&text);
}

bool native_name_is_python(const char *function)
{
    return text_begins(function, "_PyEval_EvalFrame") ||
           text_begins(function, "PyEval_EvalFrame") || text_begins(function, "_TAIL_CALL_");
}

bool native_name_is_start(const char *function, const char *file)
{
    static const char *const names[] = {"_start",
                                        "__libc_start_main",
                                        "__libc_start_main_impl",
                                        "__libc_start_call_main",
                                        "start_thread",
                                        "thread_start",
                                        "clone",
                                        "__clone",
                                        "clone3",
                                        "__clone3"};
    const char *base = text_base_name(file);
    if (function[0] == '+')
        return text_begins(base, "libc.so") || text_begins(base, "libpthread.so");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(function, names[i]) == 0)
            return true;
    }
    return false;
}

/* ---- Calls of MPI ---------------------------------------------------------------------------- */

/* "MPI_Recv" and "PMPI_Recv", of a library of MPI itself. The interface to Fortran calls these. */
static bool is_mpi(const struct unwind_frame *frame)
{
    const char *name = frame->function != NULL ? mpi_names_call(frame->function) : NULL;
    return name != NULL && name[0] == 'M' && mpi_names_library(frame->object);
}

/* They are at both ends of nearly every stack. */
static bool is_system(const char *object)
{
    static const char *const names[] = {"libc.so",  "libc-2.",    "libpthread.so", "libpthread-2.",
                                        "libm.so",  "libm-2.",    "ld-2.",         "ld-linux",
                                        "ld-musl-", "linux-vdso", "[vdso"};
    const char *file = text_base_name(object);
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = text_begins(file, names[i]);
    return found;
}

void native_call_add(struct native_call *call, const struct unwind_frame *frame)
{
    bool inside = mpi_names_inside(frame->object), system = is_system(frame->object);
    call->count++;
    if (call->mpi + 1 == call->count && call->mpi > 0)
        call->back = frame->pc;
    call->strange = call->strange || (!inside && !system);
    call->guessed = call->guessed || !frame->certain;
    if (!system)
        call->outer_inside = inside;
    if (!is_mpi(frame))
        return;
    call->mpi = call->count;
    call->refused = call->strange || call->guessed || mpi_names_leaves_job(frame->function);
}

uint64_t native_call_back(const struct native_call *call)
{
    return call->mpi == 0 || call->mpi == call->count || call->refused ? 0 : call->back;
}

bool native_call_is_helper(const struct native_call *call)
{
    return call->outer_inside && !call->strange && call->mpi == 0;
}

#define THREADS_MAX 256
#define OUTER_FRAMES 10 /* of a stack that is too long, at its outer end */

/* ---- Reading --------------------------------------------------------------------------------- */

const struct unwind_module *native_load(const char *path, struct error *err)
{
    return module_open(path, UNWIND_MODULE_KIND, err);
}

struct reading {
    const struct unwind_module *module;
    const struct rights *rights;
    struct unwind_process *process;
    pid_t pid;
    int memory_fd;
    int64_t deadline_ns;
    struct native_stacks *out;
};

/* What a walk sees of the memory: the copied stack first. */
struct view {
    const struct reading *reading;
    const struct snapshot *snapshot;
    struct native_thread *thread;
    struct native_call *call;
};

static int read_view(void *context, uint64_t address, void *out, size_t length)
{
    const struct view *view = context;
    const struct snapshot *snapshot = view->snapshot;
    uint64_t offset = address - snapshot->stack_at;
    if (address >= snapshot->stack_at && offset <= snapshot->stack_length &&
        length <= snapshot->stack_length - offset) {
        memcpy(out, snapshot->stack + offset, length);
        return 0;
    }
    bool got = fd_pread(view->reading->memory_fd, out, length, (off_t)address) == (ssize_t)length;
    return got ? 0 : -1;
}

static int take_frame(void *context, const struct unwind_frame *source)
{
    const struct view *view = context;
    struct native_thread *thread = view->thread;
    if (thread->count == NATIVE_FRAMES_MAX || clock_mono_ns() > view->reading->deadline_ns)
        return -1;
    native_call_add(view->call, source);
    MEM_ADD(thread->frames, thread->count) =
        (struct stack_frame){.function = native_name(source),
                             .file = mem_strdup(source->line > 0 ? source->source : source->object),
                             .line = source->line,
                             .native = true};
    return 0;
}

static void drop_frames(struct native_thread *thread)
{
    process_frames_free(thread->frames, thread->count);
    *thread = (struct native_thread){.tid = thread->tid};
}

/* Below the interpreter's innermost frame, Python frames tell the same. */
static bool reaches_python(const struct native_thread *thread)
{
    for (size_t i = 0; i < thread->count; i++) {
        if (native_name_is_python(thread->frames[i].function))
            return true;
    }
    return false;
}

/* Of a stripped program, _start has no name, and what it has called in the C library does. */
static bool reaches_start(const struct native_thread *thread)
{
    bool found = false;
    for (size_t i = thread->count; i > 0 && i + 2 > thread->count && !found; i--)
        found = native_name_is_start(thread->frames[i - 1].function, thread->frames[i - 1].file);
    return found;
}

/* `ended`: the module found no further frame. That is also so if a register is unknown, so it
 * counts only if the snapshot has all of them. */
static bool is_whole(const struct native_thread *thread, bool ended, bool all_registers)
{
    return (ended && (all_registers || reaches_start(thread))) || reaches_python(thread) ||
           thread->count == NATIVE_FRAMES_MAX;
}

/* Keeps the longer one of what the thread had and of what it finds. */
static void walk(const struct reading *reading, const struct snapshot *snapshot, bool all_registers,
                 struct native_thread *thread)
{
    struct native_thread found = {.tid = thread->tid};
    struct native_call call = {.count = 0};
    struct view view = {reading, snapshot, &found, &call};
    const struct unwind_memory memory = {read_view, &view};
    bool ended = reading->module->walk(reading->process, &snapshot->registers, &memory, take_frame,
                                       &view) == 0;
    found.whole = is_whole(&found, ended, all_registers);
    found.ended = ended && (all_registers || reaches_start(&found));
    found.back = found.ended ? native_call_back(&call) : 0;
    found.helper = found.ended && native_call_is_helper(&call);
    bool better = found.count > thread->count || (found.whole && found.count == thread->count);
    struct native_thread worse = better ? *thread : found;
    if (better)
        *thread = found;
    drop_frames(&worse);
}

static void set_trouble(struct native_stacks *out, char *text)
{
    if (out->trouble == NULL)
        out->trouble = text;
    else
        free(text);
}

static void walk_waiting(struct reading *reading, struct native_thread *thread)
{
    struct snapshot snapshot;
    if (clock_mono_ns() > reading->deadline_ns ||
        snapshot_waiting(reading->rights, reading->pid, thread->tid, reading->memory_fd,
                         &snapshot) < 0)
        return;
    walk(reading, &snapshot, false, thread);
    snapshot_destroy(&snapshot);
}

/* What can still not be read of a thread that has ended is no trouble. */
static void note_error(struct reading *reading, pid_t tid, int error)
{
    if (error == 0 || error == ESRCH || task_is_ending(reading->pid, tid))
        return;
    if (error == ETIMEDOUT)
        set_trouble(reading->out, mem_strdup("not all threads could be stopped in time"));
    else
        set_trouble(reading->out, refusal("a thread that runs cannot be stopped", error));
}

static void walk_running(struct reading *reading)
{
    struct native_stacks *out = reading->out;
    struct snapshot_order *orders AUTO_FREE = mem_array(out->count + 1, sizeof(*orders));
    size_t *which AUTO_FREE = mem_array(out->count + 1, sizeof(*which)), count = 0;
    for (size_t i = 0; i < out->count; i++) {
        if (out->threads[i].whole)
            continue;
        orders[count].tid = out->threads[i].tid;
        which[count++] = i;
    }
    if (count > 0)
        reading->rights->stop(reading->rights->context, reading->pid, reading->memory_fd,
                              reading->deadline_ns, orders, count);
    for (size_t i = 0; i < count; i++) {
        struct native_thread *thread = &out->threads[which[i]];
        if (orders[i].error == 0)
            walk(reading, &orders[i].out, true, thread);
        else if (thread->count == 0)
            note_error(reading, orders[i].tid, orders[i].error);
        snapshot_destroy(&orders[i].out);
    }
}

static void read_threads(struct reading *reading)
{
    struct native_stacks *out = reading->out;
    pid_t *tids = NULL;
    size_t count = proc_threads(reading->pid, THREADS_MAX, &tids);
    out->threads = mem_array(count + 1, sizeof(*out->threads));
    out->count = count;
    out->all = count > 0 && count < THREADS_MAX;
    for (size_t i = 0; i < count; i++) {
        out->threads[i].tid = tids[i];
        walk_waiting(reading, &out->threads[i]);
    }
    free(tids);
    walk_running(reading);
}

void native_read(const struct unwind_module *module, const struct rights *rights, pid_t pid,
                 int64_t deadline_ns, struct native_stacks *out)
{
    char why[256] = "";
    int fd AUTO_FD = rights->memory(rights->context, pid), error = errno;
    *out = (struct native_stacks){.threads = NULL};
    if (fd < 0) {
        if (error != ENOENT && error != ESRCH)
            out->trouble = refusal("its memory cannot be read", error);
        return;
    }
    struct reading reading = {.module = module,
                              .rights = rights,
                              .process = module->open(pid, why, sizeof(why)),
                              .pid = pid,
                              .memory_fd = fd,
                              .deadline_ns = deadline_ns,
                              .out = out};
    if (reading.process == NULL)
        out->trouble = mem_printf("libdw cannot read it: %s", why);
    else
        read_threads(&reading);
    module->close(reading.process);
}

void native_stacks_destroy(struct native_stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++)
        drop_frames(&stacks->threads[i]);
    free(stacks->threads);
    free(stacks->trouble);
    *stacks = (struct native_stacks){.threads = NULL};
}

/* ---- Together with Python frames ------------------------------------------------------------- */

static struct process_thread *find_thread(const struct process_stacks *stacks, pid_t tid)
{
    for (size_t i = 0; i < stacks->count; i++) {
        if (stacks->threads[i].tid == tid)
            return &stacks->threads[i];
    }
    return NULL;
}

/* How many of the innermost frames are to be shown: those above the interpreter, or all but the
 * outermost ones that every program has. */
static size_t shown_frames(const struct native_thread *source, bool python)
{
    size_t count = source->count;
    for (size_t i = 0; python && i < count; i++) {
        if (native_name_is_python(source->frames[i].function))
            return i;
    }
    while (source->whole && count > 1 &&
           native_name_is_start(source->frames[count - 1].function, source->frames[count - 1].file))
        count--;
    return count;
}

static void add_frames(const struct native_thread *source, struct process_thread *out)
{
    size_t shown = shown_frames(source, out->count > 0);
    bool cut = !source->whole && shown == source->count && shown > 0;
    process_frames_add(out, source->frames, shown, PROCESS_NATIVE_FRAMES_MAX, OUTER_FRAMES, cut);
}

/* A thread that runs no Python. */
static struct process_thread *new_thread(const struct rights *rights, pid_t pid, pid_t tid,
                                         struct process_stacks *stacks)
{
    struct task leader, task;
    if (stacks->count >= PROCESS_THREADS_MAX || task_read(pid, tid, &task) < 0 ||
        task_read(pid, pid, &leader) < 0)
        return NULL;
    struct process_thread *out = &MEM_ADD(stacks->threads, stacks->count);
    *out = (struct process_thread){.tid = tid, .main = tid == pid};
    out->call = task_call(rights, pid, tid, &out->running);
    out->running = out->running || task.runs;
    if (strcmp(task.name, leader.name) != 0)
        memcpy(out->name, task.name, sizeof(out->name));
    return out;
}

void process_native_add(const struct rights *rights, pid_t pid, const struct native_stacks *native,
                        struct process_stacks *stacks)
{
    if (native->trouble != NULL && stacks->trouble == NULL && stacks->remark == NULL)
        stacks->remark = mem_strdup(native->trouble);
    stacks->whole = native->all && native->trouble == NULL;
    for (size_t i = 0; i < native->count; i++) {
        const struct native_thread *source = &native->threads[i];
        struct process_thread *thread = find_thread(stacks, source->tid);
        if (thread == NULL && source->count > 0)
            thread = new_thread(rights, pid, source->tid, stacks);
        if (thread != NULL && source->count > 0)
            add_frames(source, thread);
        stacks->whole = stacks->whole && thread != NULL && source->count > 0 && source->ended;
        if (thread == NULL)
            continue;
        thread->back = source->back;
        thread->helper = source->helper;
    }
}

void process_native_read(const struct unwind_module *module, const struct rights *rights, pid_t pid,
                         int64_t deadline_ns, struct process_stacks *stacks)
{
    struct native_stacks native;
    native_read(module, rights, pid, deadline_ns, &native);
    process_native_add(rights, pid, &native, stacks);
    native_stacks_destroy(&native);
}
