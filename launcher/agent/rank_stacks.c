/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/stack_readers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/descendants.h"
#include "node/proc_state.h"
#include "stacks/tree.h"

#define PROCESSES_MAX 32                /* of one worker */
#define ITEMS_MAX 8192                  /* of all workers */
#define RANK_BYTES ((size_t)64 << 10)   /* of text, for one worker */
#define MESSAGE_BYTES ((size_t)4 << 20) /* for all of them */
#define FRAME_BYTES 16                  /* a frame costs this and its text */

struct items {
    struct stack_item *list;
    size_t count;
};

static void add_item(struct items *items, size_t rank, pid_t pid)
{
    if (items->count == ITEMS_MAX)
        return;
    items->list = mem_resize_array(items->list, items->count + 1, sizeof(*items->list));
    items->list[items->count++] = (struct stack_item){.rank = rank, .pid = pid};
}

/* All workers first, then the processes below them, so that a worker with many children does not
 * take the time of the others. */
static void list_processes(const pid_t *pids, size_t count, struct items *items)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0)
            add_item(items, i, pids[i]);
    }
    for (size_t i = 0; i < count; i++) {
        pid_t *below = NULL;
        size_t found = pids[i] > 0 ? descendants_list(pids[i], &below) : 0;
        for (size_t j = 0; j < found && j + 1 < PROCESSES_MAX; j++)
            add_item(items, i, below[j]);
        free(below);
    }
}

struct builder {
    Hvdrun__StateReport *message;
    uint32_t seat;
    size_t rank_bytes, bytes; /* that may still be added, for this worker and in all */
};

static Hvdrun__PythonFrame *new_frame(const struct process_frame *source)
{
    Hvdrun__PythonFrame *frame = mem_alloc(sizeof(*frame));
    hvdrun__python_frame__init(frame);
    frame->function = mem_strdup(source->function);
    frame->file = mem_strdup(source->file);
    frame->line = source->line > 0 ? (uint32_t)source->line : 0;
    return frame;
}

static bool afford(struct builder *builder, const struct process_thread *thread)
{
    size_t cost = FRAME_BYTES;
    for (size_t i = 0; thread != NULL && i < thread->count; i++)
        cost += FRAME_BYTES + strlen(thread->frames[i].function) + strlen(thread->frames[i].file);
    if (cost > builder->rank_bytes || cost > builder->bytes)
        return false;
    builder->rank_bytes -= cost;
    builder->bytes -= cost;
    return true;
}

static Hvdrun__PythonStack *new_stack(struct builder *builder, enum stack_role role)
{
    Hvdrun__StateReport *message = builder->message;
    message->stacks =
        mem_resize_array(message->stacks, message->n_stacks + 1, sizeof(Hvdrun__PythonStack *));
    Hvdrun__PythonStack *stack = mem_alloc(sizeof(*stack));
    hvdrun__python_stack__init(stack);
    stack->seat = builder->seat;
    stack->role = role;
    stack->doing = stack->trouble = stack->name = NULL;
    return message->stacks[message->n_stacks++] = stack;
}

static char *doing_of(const struct process_thread *thread)
{
    if (thread->running)
        return mem_strdup("running");
    return thread->call >= 0 ? proc_state_call(thread->call) : mem_strdup("");
}

static void add_thread(struct builder *builder, const struct process_thread *thread,
                       enum stack_role role)
{
    if (!afford(builder, thread))
        return;
    Hvdrun__PythonStack *stack = new_stack(builder, role);
    stack->doing = doing_of(thread);
    stack->trouble = mem_strdup("");
    stack->name = mem_strdup(thread->name);
    stack->holds_gil = thread->holds_gil;
    stack->n_frames = thread->count;
    stack->frames = mem_array(thread->count + 1, sizeof(Hvdrun__PythonFrame *));
    for (size_t i = 0; i < thread->count; i++)
        stack->frames[i] = new_frame(&thread->frames[i]);
}

static void add_process(struct builder *builder, const struct process_stacks *process, bool child)
{
    if (process->trouble != NULL && afford(builder, NULL)) {
        Hvdrun__PythonStack *stack = new_stack(builder, child ? STACK_CHILD : STACK_MAIN);
        stack->doing = mem_strdup("");
        stack->trouble = mem_strdup(process->trouble);
        stack->name = mem_strdup("");
    }
    bool has_main = false;
    for (size_t i = 0; i < process->count; i++)
        has_main = has_main || process->threads[i].main;
    for (size_t i = 0; i < process->count; i++) {
        const struct process_thread *thread = &process->threads[i];
        bool is_main = has_main ? thread->main : i == 0; /* the oldest one, if none is known */
        add_thread(builder, thread, child ? STACK_CHILD : is_main ? STACK_MAIN : STACK_OTHER);
    }
}

/* A process that does not run Python. Returns false if it has gone. */
static bool add_bare(struct builder *builder, pid_t pid, bool child)
{
    struct proc_state state;
    bool there = proc_state_read(pid, &state) == 0 && afford(builder, NULL);
    if (there) {
        Hvdrun__PythonStack *stack = new_stack(builder, child ? STACK_CHILD : STACK_MAIN);
        char *text AUTO_FREE = mem_printf("process %s", state.name);
        stack->doing = mem_strdup(state.doing);
        stack->trouble = mem_strdup("");
        stack->name = mem_strdup("");
        stack->bare = true;
        stack->frames = mem_array(1, sizeof(Hvdrun__PythonFrame *));
        stack->frames[stack->n_frames++] =
            new_frame(&(struct process_frame){.function = text, .file = ""});
    }
    proc_state_destroy(&state);
    return there;
}

static bool has_python(const struct items *items, size_t rank)
{
    for (size_t i = 0; i < items->count; i++) {
        if (items->list[i].rank == rank && items->list[i].done && items->list[i].python)
            return true;
    }
    return false;
}

/* The items of one worker: itself, then those below it, parents first. A worker that only waits for
 * Python below it is left out. */
static void add_rank(struct builder *builder, const pid_t *pids, const struct items *items,
                     size_t rank)
{
    bool child = false, late = false, python = has_python(items, rank);
    builder->rank_bytes = RANK_BYTES;
    for (size_t i = 0; i < items->count; i++) {
        const struct stack_item *item = &items->list[i];
        if (item->rank != rank)
            continue;
        late = late || !item->done;
        if (!item->done)
            continue;
        if (item->python)
            add_process(builder, &item->stacks, child);
        else if ((python && item->pid == pids[rank]) || !add_bare(builder, item->pid, child))
            continue;
        child = true;
    }
    const struct process_stacks missing = {.trouble = "not all of its processes were read in time"};
    if (late)
        add_process(builder, &missing, child);
}

void rank_stacks_fill(const pid_t *pids, Hvdrun__StateReport *message)
{
    struct items items = {.list = NULL};
    struct builder builder = {.message = message, .bytes = MESSAGE_BYTES};
    int64_t deadline_ns = clock_mono_ns() + (int64_t)RANK_STACKS_MS * 1000000;
    list_processes(pids, message->n_seats, &items);
    stack_readers_run(items.list, items.count, deadline_ns);
    for (size_t i = 0; i < message->n_seats; i++) {
        builder.seat = message->seats[i];
        add_rank(&builder, pids, &items, i);
    }
    for (size_t i = 0; i < items.count; i++)
        process_stacks_destroy(&items.list[i].stacks);
    free(items.list);
}

void rank_stacks_free(Hvdrun__StateReport *message)
{
    for (size_t i = 0; i < message->n_stacks; i++)
        hvdrun__python_stack__free_unpacked(message->stacks[i], NULL);
    free(message->stacks);
    message->stacks = NULL;
    message->n_stacks = 0;
}
