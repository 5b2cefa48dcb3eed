/* SPDX-License-Identifier: Apache-2.0 */
#include "simcore/agenda.h"

#include <stdlib.h>

#include "base/mem.h"

void agenda_destroy(struct agenda *agenda)
{
    for (size_t i = 0; i < agenda->count; i++)
        free(agenda->heap[i].bytes);
    free(agenda->heap);
    *agenda = (struct agenda){0};
}

static bool before(const struct task *a, const struct task *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct agenda *agenda, size_t a, size_t b)
{
    struct task task = agenda->heap[a];
    agenda->heap[a] = agenda->heap[b];
    agenda->heap[b] = task;
}

void agenda_add(struct agenda *agenda, struct task task)
{
    if (agenda->count == agenda->room) {
        agenda->room = 2 * agenda->room + 64;
        agenda->heap = mem_resize_array(agenda->heap, agenda->room, sizeof *agenda->heap);
    }
    task.order = agenda->next++;
    size_t at = agenda->count++;
    agenda->heap[at] = task;
    for (; at > 0 && before(&agenda->heap[at], &agenda->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(agenda, at, (at - 1) / 2);
}

bool agenda_take(struct agenda *agenda, struct task *task)
{
    if (agenda->count == 0)
        return false;
    *task = agenda->heap[0];
    agenda->heap[0] = agenda->heap[--agenda->count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < agenda->count; child++)
            if (before(&agenda->heap[child], &agenda->heap[least]))
                least = child;
        if (least == at)
            return true;
        swap(agenda, at, least);
        at = least;
    }
}
