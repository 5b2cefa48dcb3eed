/* SPDX-License-Identifier: Apache-2.0 */
#include "simfail/agenda.h"

#include <stdlib.h>

void agenda_add(struct agenda *agenda, int64_t at_ns, enum event_kind kind, int who)
{
    int place = agenda->count++;
    if (place >= AGENDA_MAX)
        abort();
    for (; place > 0 && agenda->items[place - 1].at_ns <= at_ns; place--)
        agenda->items[place] = agenda->items[place - 1];
    agenda->items[place] = (struct event){at_ns, kind, who};
}

bool agenda_next(struct agenda *agenda, struct event *event)
{
    if (agenda->count == 0)
        return false;
    *event = agenda->items[--agenda->count];
    return true;
}
