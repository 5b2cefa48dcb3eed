/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/stack_readers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/descendants.h"
#include "node/file_wait.h"
#include "node/proc_state.h"
#include "stacks/tree.h"

#define PROCESSES_MAX 32                /* of one worker */
#define ITEMS_MAX 8192                  /* of all workers */
#define RANK_BYTES ((size_t)64 << 10)   /* of text, for one worker */
#define MESSAGE_BYTES ((size_t)4 << 20) /* for all of them */
#define REMARKS_MAX 4
#define FRAME_BYTES 16 /* a frame costs this and its text */

/* The processes of one worker among the items. */
struct span {
    size_t own;           /* the worker itself; NO_ITEM: it does not run */
    size_t below, beyond; /* those below it: from `below`, before `beyond` */
};

#define NO_ITEM SIZE_MAX

struct rank_stacks {
    struct stack_item *items;
    size_t count;
    struct span *spans;
    size_t ranks;
    struct stack_readers *readers; /* NULL: they have ended */
};

static void add_item(struct rank_stacks *stacks, size_t rank, pid_t pid)
{
    if (stacks->count == ITEMS_MAX)
        return;
    stacks->items = mem_resize_array(stacks->items, stacks->count + 1, sizeof(*stacks->items));
    stacks->items[stacks->count++] = (struct stack_item){.rank = rank, .pid = pid};
}

/* All workers first, then the processes below them, so that a worker with many children does not
 * take the time of the others. */
static void list_processes(const pid_t *pids, const struct descendants_table *processes,
                           struct rank_stacks *stacks)
{
    for (size_t i = 0; i < stacks->ranks; i++) {
        size_t own = stacks->count;
        if (pids[i] > 0)
            add_item(stacks, i, pids[i]);
        stacks->spans[i].own = stacks->count > own ? own : NO_ITEM;
    }
    for (size_t i = 0; i < stacks->ranks; i++) {
        pid_t *below = NULL;
        size_t found = pids[i] > 0 ? descendants_in(processes, pids[i], &below) : 0;
        stacks->spans[i].below = stacks->count;
        for (size_t j = 0; j < found && j + 1 < PROCESSES_MAX; j++)
            add_item(stacks, i, below[j]);
        stacks->spans[i].beyond = stacks->count;
        free(below);
    }
}

struct rank_stacks *rank_stacks_create(const pid_t *pids, size_t count,
                                       const struct descendants_table *processes,
                                       struct held_readers *held,
                                       const struct unwind_module *module)
{
    struct rank_stacks *stacks = mem_alloc(sizeof(*stacks));
    int64_t limit_ms = module != NULL ? RANK_STACKS_NATIVE_MS : RANK_STACKS_MS;
    *stacks =
        (struct rank_stacks){.spans = mem_array(count + 1, sizeof(*stacks->spans)), .ranks = count};
    list_processes(pids, processes, stacks);
    stacks->readers = stack_readers_create(stacks->items, stacks->count, held, module,
                                           clock_mono_ns() + limit_ms * 1000000);
    return stacks;
}

bool rank_stacks_advance(struct rank_stacks *stacks)
{
    if (stacks->readers == NULL || !stack_readers_advance(stacks->readers))
        return stacks->readers == NULL;
    stack_readers_end(stacks->readers, stacks->items);
    stacks->readers = NULL;
    return true;
}

void rank_stacks_destroy(struct rank_stacks *stacks)
{
    if (stacks == NULL)
        return;
    if (stacks->readers != NULL)
        stack_readers_end(stacks->readers, stacks->items);
    for (size_t i = 0; i < stacks->count; i++)
        process_stacks_destroy(&stacks->items[i].stacks);
    free(stacks->items);
    free(stacks->spans);
    free(stacks);
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
    frame->native = source->native;
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
    if (thread->call < 0)
        return mem_strdup("");
    char *call = proc_state_call(thread->call);
    char *system AUTO_FREE =
        thread->main && thread->tid > 0 ? file_wait_system("", thread->tid) : NULL;
    if (system == NULL)
        return call;
    char *text = mem_printf("%s" FILE_WAIT_ON "%s", call, system);
    free(call);
    return text;
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

static void add_trouble(struct builder *builder, const char *trouble, bool child)
{
    if (!afford(builder, NULL))
        return;
    Hvdrun__PythonStack *stack = new_stack(builder, child ? STACK_CHILD : STACK_MAIN);
    stack->doing = mem_strdup("");
    stack->trouble = mem_strdup(trouble);
    stack->name = mem_strdup("");
}

static void add_process(struct builder *builder, const struct process_stacks *process, bool child)
{
    bool has_main = false;
    if (process->trouble != NULL)
        add_trouble(builder, process->trouble, child);
    for (size_t i = 0; i < process->count; i++)
        has_main = has_main || process->threads[i].main;
    for (size_t i = 0; i < process->count; i++) {
        const struct process_thread *thread = &process->threads[i];
        bool is_main = has_main ? thread->main : i == 0; /* the oldest one, if none is known */
        enum stack_role role = thread->task ? STACK_TASK : is_main ? STACK_MAIN : STACK_OTHER;
        add_thread(builder, thread, child ? STACK_CHILD : role);
    }
}

/* Remarks that differ; a few of them say it all. */
static void add_remark(Hvdrun__StateReport *message, const char *remark)
{
    for (size_t i = 0; i < message->n_remarks; i++) {
        if (strcmp(message->remarks[i], remark) == 0)
            return;
    }
    if (message->n_remarks == REMARKS_MAX)
        return;
    message->remarks =
        mem_resize_array(message->remarks, message->n_remarks + 1, sizeof(*message->remarks));
    message->remarks[message->n_remarks++] = mem_strdup(remark);
}

/* One thread of a process that does not run Python, below the name of the process. */
static void add_bare_thread(struct builder *builder, const struct proc_state *state,
                            const struct process_thread *thread, enum stack_role role)
{
    if (!afford(builder, thread))
        return;
    Hvdrun__PythonStack *stack = new_stack(builder, role);
    size_t count = thread != NULL ? thread->count : 0;
    char *text AUTO_FREE = mem_printf("process %s", state->name);
    stack->doing = thread != NULL && !thread->main ? doing_of(thread) : mem_strdup(state->doing);
    stack->trouble = mem_strdup("");
    stack->name = mem_strdup(thread != NULL ? thread->name : "");
    stack->bare = true;
    stack->frames = mem_array(count + 1, sizeof(Hvdrun__PythonFrame *));
    stack->frames[stack->n_frames++] =
        new_frame(&(struct process_frame){.function = text, .file = ""});
    for (size_t i = 0; i < count; i++)
        stack->frames[stack->n_frames++] = new_frame(&thread->frames[i]);
}

/* A process that does not run Python. Returns false if it has gone. */
static bool add_bare(struct builder *builder, const struct stack_item *item, bool child)
{
    const struct process_stacks *process = &item->stacks;
    struct proc_state state;
    bool there = proc_state_read(item->pid, &state) == 0, has_main = false;
    for (size_t i = 0; there && i < process->count; i++) {
        const struct process_thread *thread = &process->threads[i];
        has_main = has_main || thread->main;
        add_bare_thread(builder, &state, thread,
                        child          ? STACK_CHILD
                        : thread->main ? STACK_MAIN
                                       : STACK_OTHER);
    }
    if (there && !has_main)
        add_bare_thread(builder, &state, NULL, child ? STACK_CHILD : STACK_MAIN);
    proc_state_destroy(&state);
    return there;
}

/* What the kernel says of a process whose reader it holds. */
static void add_held(struct builder *builder, const struct stack_item *item, bool child)
{
    struct proc_state state;
    if (proc_state_read(item->pid, &state) == 0) {
        char *trouble AUTO_FREE =
            mem_printf("process %s; %s; its memory cannot be read, most likely because a file "
                       "system or swap space does not answer",
                       state.name, state.doing);
        add_trouble(builder, trouble, child);
    }
    proc_state_destroy(&state);
}

static bool has_python(const struct rank_stacks *stacks, const struct span *span)
{
    bool has = span->own != NO_ITEM && stacks->items[span->own].python;
    for (size_t i = span->below; i < span->beyond && !has; i++)
        has = stacks->items[i].python;
    return has;
}

/* Returns whether it was added: a process that has gone is not. */
static bool add_item_stacks(struct builder *builder, const struct stack_item *item, bool child)
{
    if (item->held) {
        add_held(builder, item, child);
        return true;
    }
    if (!item->done)
        return false;
    if (item->stacks.remark != NULL)
        add_remark(builder->message, item->stacks.remark);
    if (!item->python)
        return add_bare(builder, item, child);
    add_process(builder, &item->stacks, child);
    return true;
}

/* The worker itself, then the processes below it, parents first. A worker that only waits for
 * Python below it is left out. */
static void add_rank(struct builder *builder, const struct rank_stacks *stacks,
                     const struct span *span)
{
    bool child = false, late = false, python = has_python(stacks, span);
    builder->rank_bytes = RANK_BYTES;
    if (span->own != NO_ITEM) {
        const struct stack_item *own = &stacks->items[span->own];
        late = !own->done && !own->held;
        if (own->python || own->held || !python)
            child = add_item_stacks(builder, own, false);
    }
    for (size_t i = span->below; i < span->beyond; i++) {
        const struct stack_item *item = &stacks->items[i];
        late = late || (!item->done && !item->held);
        child = add_item_stacks(builder, item, child) || child;
    }
    if (late)
        add_trouble(builder, "not all of its processes were read in time", child);
}

void rank_stacks_fill(struct rank_stacks *stacks, Hvdrun__StateReport *message)
{
    struct builder builder = {.message = message, .bytes = MESSAGE_BYTES};
    for (size_t i = 0; i < stacks->ranks && i < message->n_seats; i++) {
        builder.seat = message->seats[i];
        add_rank(&builder, stacks, &stacks->spans[i]);
    }
}

void rank_stacks_free(Hvdrun__StateReport *message)
{
    for (size_t i = 0; i < message->n_stacks; i++)
        hvdrun__python_stack__free_unpacked(message->stacks[i], NULL);
    for (size_t i = 0; i < message->n_remarks; i++)
        free(message->remarks[i]);
    free(message->stacks);
    free(message->remarks);
    message->stacks = NULL;
    message->remarks = NULL;
    message->n_stacks = message->n_remarks = 0;
}
