/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of the exec transport: calls begin in their order, so many at the same time. */
#include "transport/exec/exec.h"

#include <stdlib.h>

#include "base/mem.h"
#include "transport/exec/call.h"

struct queue;

struct queued {
    struct transport_call_head head;
    struct queue *queue;
    struct exec_call *call;
    struct queued *next; /* among those that wait */
    bool waiting, running;
};

struct queue {
    int window; /* 0: no limit */
    int running;
    struct queued *first;
    struct loop_timer *turn; /* calls begin from the loop */
};

static void next_turn(struct queue *queue)
{
    if (queue->first != NULL && (queue->window <= 0 || queue->running < queue->window))
        loop_timer_set(queue->turn, 0);
}

static void leave(struct queued *entry)
{
    struct queue *queue = entry->queue;
    struct queued **at = &queue->first;
    while (entry->waiting && *at != entry)
        at = &(*at)->next;
    if (entry->waiting)
        *at = entry->next;
    if (entry->running)
        queue->running--;
    entry->waiting = entry->running = false;
    next_turn(queue);
}

static void call_over(void *context)
{
    leave(context);
}

static void begin_next(void *context)
{
    struct queue *queue = context;
    struct queued *entry = queue->first;
    if (entry == NULL)
        return;
    queue->first = entry->next;
    entry->waiting = false;
    entry->running = true;
    queue->running++;
    next_turn(queue);
    exec_call_begin(entry->call); /* last: the entry may be hung up in there */
}

static struct queue *queue_of(struct exec_transport *exec)
{
    if (exec->state == NULL) {
        struct queue *queue = mem_alloc(sizeof(*queue));
        *queue = (struct queue){.window = exec->window};
        queue->turn = loop_timer_create(exec->room->loop, begin_next, queue);
        exec->state = queue;
    }
    return exec->state;
}

static struct transport_call *exec_transport_call(void *context,
                                                  const struct transport_target *target,
                                                  const struct transport_events *events,
                                                  void *events_context);

static void hang_up(struct transport_call *call)
{
    struct queued *entry = (struct queued *)call;
    leave(entry);
    exec_call_destroy(entry->call);
    free(entry);
}

static const struct transport_ops exec_ops = {
    .name = "exec", .call = exec_transport_call, .hang_up = hang_up};

static struct transport_call *exec_transport_call(void *context,
                                                  const struct transport_target *target,
                                                  const struct transport_events *events,
                                                  void *events_context)
{
    struct exec_transport *exec = context;
    struct queue *queue = queue_of(exec);
    struct queued *entry = mem_alloc(sizeof(*entry));
    *entry = (struct queued){.head = {&exec_ops}, .queue = queue, .waiting = true};
    const struct exec_command command = {.room = exec->room,
                                         .words = &exec->words,
                                         .boot_word = exec->boot_word,
                                         .same_machine = exec->same_machine,
                                         .is_ssh = exec->is_ssh};
    entry->call = exec_call_create(&command, target, events, events_context, call_over, entry);
    struct queued **end = &queue->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = entry;
    next_turn(queue);
    return (struct transport_call *)entry;
}

struct transport exec_transport(struct exec_transport *exec)
{
    return (struct transport){&exec_ops, exec};
}

void exec_transport_close(struct exec_transport *exec)
{
    struct queue *queue = exec->state;
    if (queue == NULL)
        return;
    loop_timer_destroy(queue->turn);
    free(queue);
    exec->state = NULL;
}
