/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "stacks/python.h"
#include "stacks/tasks.h"

#define OUTER_FRAMES 20 /* of a stack that is too long, at its outer end */

struct access {
    int fd;
    int64_t deadline_ns;
    bool late;
};

static int read_access(void *context, uint64_t address, void *out, size_t length)
{
    struct access *access = context;
    access->late = access->late || clock_mono_ns() > access->deadline_ns;
    if (access->late)
        return -1;
    return fd_pread(access->fd, out, length, (off_t)address) == (ssize_t)length ? 0 : -1;
}

static void add_frame(struct process_thread *thread, const char *function, const char *file,
                      int line, bool native)
{
    thread->frames[thread->count++] =
        (struct stack_frame){mem_strdup(function), mem_strdup(file), line, native};
}

void process_frames_add(struct process_thread *thread, const struct stack_frame *source,
                        size_t count, size_t max, size_t outer, bool cut)
{
    size_t left_out = count > max ? count - max : 0;
    bool native = count > 0 && source[0].native;
    thread->frames =
        mem_resize_array(thread->frames, thread->count + max + 2, sizeof(*thread->frames));
    if (cut)
        add_frame(thread, STACK_MORE_FRAMES, "", 0, native);
    for (size_t i = 0; i < count; i++) {
        if (left_out > 0 && i == outer) {
            char *text AUTO_FREE = mem_printf("(%zu frames)", left_out);
            add_frame(thread, text, "", 0, native);
            i += left_out;
        }
        const struct stack_frame *frame = &source[count - 1 - i];
        add_frame(thread, frame->function, frame->file, frame->line, native);
    }
}

static void read_thread(const struct rights *rights, struct python *python, pid_t pid,
                        const struct task *leader, const struct python_thread *source,
                        struct process_thread *out)
{
    struct task before = {.runs = true}, after = {.runs = true};
    struct python_stack stack;
    *out = (struct process_thread){.call = -1, .holds_gil = source->holds_gil};
    if (source->native > 0 && source->native <= INT32_MAX)
        out->tid = leader->nested ? task_find(pid, (pid_t)source->native) : (pid_t)source->native;
    if (out->tid != 0 && task_read(pid, out->tid, &before) < 0)
        out->tid = 0;
    out->main = out->tid == pid;
    if (out->tid != 0) {
        out->call = task_call(rights, pid, out->tid, &out->running);
        if (strcmp(before.name, leader->name) != 0)
            memcpy(out->name, before.name, sizeof(out->name));
    }
    if (python_stack_read(python, source, &stack) == 0)
        process_frames_add(out, stack.frames, stack.count, PROCESS_FRAMES_MAX, OUTER_FRAMES,
                           stack.cut);
    python_stack_destroy(&stack);
    bool known = out->tid != 0 && task_read(pid, out->tid, &after) == 0;
    if (known && (before.runs || after.runs || before.switches != after.switches)) {
        out->running = true;
        out->call = -1;
    }
}

static void read_threads(const struct rights *rights, struct python *python, pid_t pid,
                         struct process_stacks *out)
{
    struct python_thread *threads = NULL;
    struct task leader;
    size_t count = 0, stacks = 0, unknown = 0;
    if (task_read(pid, pid, &leader) < 0 || python_threads(python, &threads, &count) < 0) {
        out->trouble = mem_strdup("the list of its threads cannot be read");
        return;
    }
    out->threads = mem_array(PROCESS_THREADS_MAX, sizeof(*out->threads));
    for (size_t i = 0; i < count && out->count < PROCESS_THREADS_MAX; i++) {
        struct process_thread *thread = &out->threads[out->count++];
        read_thread(rights, python, pid, &leader, &threads[i], thread);
        stacks += thread->frames != NULL ? 1 : 0;
        unknown += thread->frames == NULL && !thread->running ? 1 : 0;
    }
    free(threads);
    if (count == 0)
        out->trouble = mem_strdup("its interpreter has not started, or has ended");
    else if (stacks == 0 && unknown > 0) /* threads that run may change too fast */
        out->trouble = mem_strdup("its frames cannot be read");
}

/* A process that hides its files may be Python all the same: its name says so. */
static bool named_python(pid_t pid)
{
    struct task leader;
    return task_read(pid, pid, &leader) == 0 && strncmp(leader.name, "python", 6) == 0;
}

static void read_python(const struct rights *rights, pid_t pid, struct memory *memory,
                        const struct runtime *runtime, struct process_stacks *out)
{
    struct python python;
    out->minor = runtime->minor;
    if (python_init(&python, memory, runtime->address, runtime->minor) == 0)
        read_threads(rights, &python, pid, out);
    else if (runtime->minor >= LAYOUT_OLDEST && runtime->minor <= LAYOUT_NEWEST)
        out->trouble = mem_printf("this build of Python 3.%d is unknown to hvdrun", runtime->minor);
    else
        out->trouble =
            mem_printf("hvdrun knows only Python 3.%d to 3.%d", LAYOUT_OLDEST, LAYOUT_NEWEST);
    python_destroy(&python);
}

static void drop_threads(struct process_stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++)
        process_frames_free(stacks->threads[i].frames, stacks->threads[i].count);
    free(stacks->threads);
    stacks->threads = NULL;
    stacks->count = 0;
}

/* It has ended meanwhile, or runs another program: the memory that was opened is empty. */
static bool has_left(int fd, pid_t pid, uint64_t address)
{
    char byte;
    return fd_pread(fd, &byte, sizeof(byte), (off_t)address) == 0 || task_is_ending(pid, pid);
}

int process_stacks_read(struct runtime_files *files, const struct rights *rights, pid_t pid,
                        int64_t deadline_ns, struct process_stacks *out)
{
    int fd AUTO_FD = rights->memory(rights->context, pid), error = errno;
    struct access access = {.fd = fd, .deadline_ns = deadline_ns};
    struct memory memory = {read_access, &access, MEMORY_BUDGET};
    struct runtime runtime;
    *out = (struct process_stacks){.minor = -1};
    if (fd < 0) {
        bool hidden = (error == EACCES || error == EPERM) && named_python(pid);
        out->trouble = hidden ? refusal("its memory cannot be read", error) : NULL;
        return hidden ? 1 : 0;
    }
    if (runtime_find(files, pid, &memory, &runtime) == 0)
        return 0;
    read_python(rights, pid, &memory, &runtime, out);
    if (access.late) {
        mem_replace(&out->trouble, "there was not enough time to read its stacks");
    }
    if (out->trouble == NULL)
        return 1;
    drop_threads(out);
    if (!has_left(fd, pid, runtime.address))
        return 1;
    free(out->trouble);
    out->trouble = NULL;
    return 0;
}

void process_frames_free(struct stack_frame *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)frames[i].function);
        free((char *)frames[i].file);
    }
    free(frames);
}

void process_stacks_destroy(struct process_stacks *stacks)
{
    drop_threads(stacks);
    free(stacks->trouble);
    free(stacks->remark);
    *stacks = (struct process_stacks){.threads = NULL};
}
