/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "states": what each worker is doing, and its stacks. Helper processes
 * read these, and the agent goes on meanwhile.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "agent/agent_state.h"
#include "base/mem.h"
#include "features/stacks/stack_helper_agent.h"
#include "features/stacks/stack_pool_agent.h"
#include "features/stacks/state_desk_agent_test.h"
#include "node/descendants.h"
#include "node/proc_state.h"
#include "stacks/stack.h"
#include "wire/control.pb-c.h"

/*
 * The stacks of workers and of the processes below them, for STATE_REPORT: their Python frames, and
 * the native ones if they are wanted. A process with neither has one line there, with its wait
 * channel and system call. Only native frames need a worker to be stopped.
 *
 * Helper processes read them (features/stacks/stack_pool_agent.h). What is not read within the
 * limit is left out. A shell or numactl often starts the program of a worker. So the first of its
 * processes that runs Python counts as the worker, and all others are children.
 */

#define RANK_STACKS_MS 1200        /* below the 2 s that the driver waits for the answer */
#define RANK_STACKS_NATIVE_MS 6000 /* below the 8 s, likewise */

#define PROCESSES_MAX 32                /* of one worker */
#define ITEMS_MAX 8192                  /* of all workers */
#define MESSAGE_BYTES ((size_t)4 << 20) /* of text, for all workers */
#define REMARKS_MAX 4

/* The processes of one worker among the items. */
struct span {
    size_t own;           /* the worker itself; NO_ITEM: it does not run */
    size_t below, beyond; /* those below it: from `below`, before `beyond` */
    bool all;             /* it has no more */
};

#define NO_ITEM SIZE_MAX

struct rank_stacks {
    struct stack_item *items;
    size_t count;
    struct span *spans;
    size_t ranks;
    struct stack_look *look;
};

static void add_item(struct rank_stacks *stacks, pid_t pid)
{
    if (stacks->count == ITEMS_MAX)
        return;
    MEM_ADD(stacks->items, stacks->count) = (struct stack_item){.pid = pid};
}

/* All workers first, then the processes below them, so that a worker with many children does not
 * take the time of the others. */
static void list_processes(const pid_t *pids, const struct descendants_table *processes,
                           struct rank_stacks *stacks)
{
    for (size_t i = 0; i < stacks->ranks; i++) {
        size_t own = stacks->count;
        if (pids[i] > 0)
            add_item(stacks, pids[i]);
        stacks->spans[i].own = stacks->count > own ? own : NO_ITEM;
    }
    for (size_t i = 0; i < stacks->ranks; i++) {
        pid_t *below = NULL;
        size_t found = pids[i] > 0 ? descendants_in(processes, pids[i], &below) : 0;
        stacks->spans[i].below = stacks->count;
        for (size_t j = 0; j < found && j + 1 < PROCESSES_MAX; j++)
            add_item(stacks, below[j]);
        stacks->spans[i].beyond = stacks->count;
        stacks->spans[i].all = stacks->count - stacks->spans[i].below == found;
        free(below);
    }
}

struct rank_stacks *rank_stacks_create(struct stack_pool *pool, const pid_t *pids, size_t count,
                                       const struct descendants_table *processes,
                                       enum look_depth depth, void (*done)(void *context),
                                       void *context)
{
    struct rank_stacks *stacks = mem_alloc(sizeof(*stacks));
    *stacks =
        (struct rank_stacks){.spans = mem_array(count + 1, sizeof(*stacks->spans)), .ranks = count};
    list_processes(pids, processes, stacks);
    stacks->look = stack_pool_look(pool, stacks->items, stacks->count, depth,
                                   depth > LOOK_PYTHON ? RANK_STACKS_NATIVE_MS : RANK_STACKS_MS,
                                   done, context);
    return stacks;
}

void rank_stacks_destroy(struct rank_stacks *stacks)
{
    if (stacks == NULL)
        return;
    stack_look_destroy(stacks->look);
    for (size_t i = 0; i < stacks->count; i++)
        stack_item_clear(&stacks->items[i]);
    free(stacks->items);
    free(stacks->spans);
    free(stacks);
}

struct builder {
    Hvdrun__StateReport *message;
    uint32_t seat;
    size_t rank_bytes, bytes; /* that may still be added, for this worker and in all */
    bool whole;               /* nothing of this worker is missing so far */
};

/* Takes it, if it fits. */
static void add_stack_take(struct builder *builder, Hvdrun__PythonStack *stack, bool child)
{
    Hvdrun__StateReport *message = builder->message;
    size_t cost = stack_answer_cost(stack);
    if (cost > builder->rank_bytes || cost > builder->bytes) {
        builder->whole = false;
        hvdrun__python_stack__free_unpacked(stack, NULL);
        return;
    }
    builder->rank_bytes -= cost;
    builder->bytes -= cost;
    stack->seat = builder->seat;
    if (child)
        stack->role = STACK_CHILD;
    MEM_ADD(message->stacks, message->n_stacks) = stack;
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
    MEM_ADD(message->remarks, message->n_remarks) = mem_strdup(remark);
}

/* What the kernel says of a process that cannot be read. */
static void add_unread(struct builder *builder, const struct stack_item *item, bool child)
{
    struct proc_state state;
    if (proc_state_read(item->pid, NULL, &state) == 0) {
        char *trouble AUTO_FREE =
            mem_printf("process %s; %s; %s", state.name, state.doing, item->why);
        Hvdrun__PythonStack *stack = stack_answer_trouble(trouble);
        stack->held = state.held;
        add_stack_take(builder, stack, child);
    }
    proc_state_destroy(&state);
}

/* Returns whether it was added: a process that has gone is not. */
static bool add_item_stacks(struct builder *builder, struct stack_item *item, bool child)
{
    Hvdrun__StackAnswer *answer = item->answer;
    builder->whole = builder->whole && answer != NULL && answer->whole && !answer->python;
    if (item->remark != NULL)
        add_remark(builder->message, item->remark);
    if (answer == NULL && item->why != NULL)
        add_unread(builder, item, child);
    if (answer == NULL)
        return item->why != NULL;
    bool there = answer->n_stacks > 0;
    if (answer->remark[0] != '\0')
        add_remark(builder->message, answer->remark);
    for (size_t i = 0; i < answer->n_stacks; i++)
        add_stack_take(builder, answer->stacks[i], child);
    answer->n_stacks = 0;
    return there;
}

static bool is_python(const struct stack_item *item)
{
    return item->answer != NULL && item->answer->python;
}

static bool is_late(const struct stack_item *item)
{
    return item->answer == NULL && item->why == NULL;
}

static bool has_python(const struct rank_stacks *stacks, const struct span *span)
{
    bool has = span->own != NO_ITEM && is_python(&stacks->items[span->own]);
    for (size_t i = span->below; i < span->beyond && !has; i++)
        has = is_python(&stacks->items[i]);
    return has;
}

/* The worker itself, then the processes below it, parents first. A worker that only waits for
 * Python below it is left out. */
static void add_rank(struct builder *builder, const struct rank_stacks *stacks,
                     const struct span *span)
{
    bool child = false, late = false, python = has_python(stacks, span);
    builder->rank_bytes = STACK_RANK_BYTES;
    builder->whole = span->own != NO_ITEM && span->all && !python;
    if (span->own != NO_ITEM) {
        struct stack_item *own = &stacks->items[span->own];
        late = is_late(own);
        if (is_python(own) || own->why != NULL || !python)
            child = add_item_stacks(builder, own, false);
    }
    for (size_t i = span->below; i < span->beyond; i++) {
        struct stack_item *item = &stacks->items[i];
        late = late || is_late(item);
        child = add_item_stacks(builder, item, child) || child;
    }
    if (late)
        add_stack_take(builder, stack_answer_trouble("not all of its processes were read in time"),
                       child);
    if (builder->whole && !late)
        builder->message->whole[builder->message->n_whole++] = builder->seat;
}

void rank_stacks_fill(struct rank_stacks *stacks, Hvdrun__StateReport *message)
{
    struct builder builder = {.message = message, .bytes = MESSAGE_BYTES};
    message->whole = mem_array(message->n_seats + 1, sizeof(*message->whole));
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
    free(message->whole);
    message->whole = NULL;
    message->n_whole = 0;
    message->stacks = NULL;
    message->remarks = NULL;
    message->n_stacks = message->n_remarks = 0;
}

#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

/* A report whose stacks are being read. */
struct pending {
    struct pending *next;
    struct state_desk *desk;
    struct crew_states states;
    struct rank_stacks *stacks;
    struct asked asked;
};

struct state_desk {
    struct stack_pool *pool;
    struct pending *first;
};

static void destroy_pending(struct pending *pending)
{
    struct pending **at = &pending->desk->first;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    rank_stacks_destroy(pending->stacks);
    crew_states_destroy(&pending->states);
    free(pending);
}

static void stacks_are_read(void *context)
{
    struct pending *pending = context;
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    const struct crew_states *states = &pending->states;
    message.seats = states->seats;
    message.texts = states->texts.items;
    message.n_seats = message.n_texts = states->texts.count;
    rank_stacks_fill(pending->stacks, &message);
    asked_answer(&pending->asked, &message.base);
    rank_stacks_free(&message);
    destroy_pending(pending);
}

static struct state_desk *desk_of(struct agent *agent)
{
    struct state_desk *desk = agent_own(agent, state_desk);
    if (desk != NULL)
        return desk;
    desk = mem_alloc(sizeof(*desk));
    desk->pool = stack_pool_create(agent->loop, agent->helpers, agent->helper_program);
    agent->own[AGENT_PART_state_desk] = desk;
    return desk;
}

/* The answer comes as soon as the stacks are there. */
static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    uint32_t depth = ((const Hvdrun__StateRequest *)request)->depth;
    struct state_desk *desk = desk_of(agent);
    struct pending *pending = mem_alloc(sizeof(*pending));
    struct descendants_table *processes = descendants_table_read(ASKED_THREADS);
    *pending = (struct pending){.next = desk->first, .desk = desk, .asked = *asked};
    crews_states(agent->crews, agent_own(agent, worker_lines), processes, &pending->states);
    pending->stacks = rank_stacks_create(
        desk->pool, pending->states.pids, pending->states.texts.count, processes,
        depth < LOOK_CALLS ? (enum look_depth)depth : LOOK_CALLS, stacks_are_read, pending);
    descendants_table_destroy(processes);
    desk->first = pending;
}

/* What was asked for and is not answered yet gets no answer. */
static void close_part(struct agent *agent)
{
    struct state_desk *desk = agent_own(agent, state_desk);
    if (desk == NULL)
        return;
    while (desk->first != NULL)
        destroy_pending(desk->first);
    stack_pool_destroy(desk->pool);
    free(desk);
}

static const struct ask_rule topics[] = {{&topic_states, answer}, {.topic = NULL}};
const struct agent_part state_desk_agent_part = {
    .name = "state_desk", .topics = topics, .close = close_part};
