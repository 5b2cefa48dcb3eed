/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/process_native.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/hang/stack.h"
#include "stacks/native_name.h"
#include "stacks/tasks.h"

#define OUTER_FRAMES 10 /* of a stack that is too long, at its outer end */

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

static void add_frame(struct process_thread *out, const char *function, const char *file, int line)
{
    out->frames[out->count++] = (struct stack_frame){
        .function = mem_strdup(function), .file = mem_strdup(file), .line = line, .native = true};
}

/* Of a long stack, both ends. The outermost first. */
static void add_frames(const struct native_thread *source, struct process_thread *out)
{
    bool python = out->count > 0;
    size_t shown = shown_frames(source, python);
    size_t left_out = shown > PROCESS_NATIVE_FRAMES_MAX ? shown - PROCESS_NATIVE_FRAMES_MAX : 0;
    out->frames = mem_resize_array(out->frames, out->count + PROCESS_NATIVE_FRAMES_MAX + 2,
                                   sizeof(*out->frames));
    if (!source->whole && shown == source->count && shown > 0)
        add_frame(out, STACK_MORE_FRAMES, "", 0);
    for (size_t i = 0; i < shown; i++) {
        if (left_out > 0 && i == OUTER_FRAMES) {
            char *text AUTO_FREE = mem_printf("(%zu frames)", left_out);
            add_frame(out, text, "", 0);
            i += left_out;
        }
        const struct stack_frame *frame = &source->frames[shown - 1 - i];
        add_frame(out, frame->function, frame->file, frame->line);
    }
}

/* A thread that runs no Python. */
static struct process_thread *new_thread(const struct rights *rights, pid_t pid, pid_t tid,
                                         struct process_stacks *stacks)
{
    struct task leader, task;
    if (stacks->count >= PROCESS_THREADS_MAX || task_read(pid, tid, &task) < 0 ||
        task_read(pid, pid, &leader) < 0)
        return NULL;
    stacks->threads =
        mem_resize_array(stacks->threads, stacks->count + 1, sizeof(*stacks->threads));
    struct process_thread *out = &stacks->threads[stacks->count++];
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
    for (size_t i = 0; i < native->count; i++) {
        const struct native_thread *source = &native->threads[i];
        struct process_thread *thread = find_thread(stacks, source->tid);
        if (thread == NULL && source->count > 0)
            thread = new_thread(rights, pid, source->tid, stacks);
        if (thread != NULL && source->count > 0)
            add_frames(source, thread);
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
