/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/agenda.h"

static bool before(const struct task *a, const struct task *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

void agenda_clear(struct agenda *agenda)
{
    agenda->count = 0;
    agenda->order = 0;
}

bool agenda_add(struct agenda *agenda, const struct task *task)
{
    if (agenda->count == AGENDA_ROOM)
        return false;
    struct task added = *task;
    added.order = agenda->order++;
    int at = agenda->count++;
    while (at > 0 && before(&added, &agenda->tasks[(at - 1) / 2])) {
        agenda->tasks[at] = agenda->tasks[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->tasks[at] = added;
    return true;
}

const struct task *agenda_first(const struct agenda *agenda)
{
    return agenda->count > 0 ? &agenda->tasks[0] : NULL;
}

struct task agenda_take(struct agenda *agenda)
{
    const struct task first = agenda->tasks[0];
    const struct task last = agenda->tasks[--agenda->count];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= agenda->count)
            break;
        if (child + 1 < agenda->count && before(&agenda->tasks[child + 1], &agenda->tasks[child]))
            child++;
        if (!before(&agenda->tasks[child], &last))
            break;
        agenda->tasks[at] = agenda->tasks[child];
        at = child;
    }
    agenda->tasks[at] = last;
    return first;
}
