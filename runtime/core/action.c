/* SPDX-License-Identifier: Apache-2.0 */
#include "core/action.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void stall_destroy(struct stall *stall)
{
    free(stall->name);
    free(stall->waiting);
    free(stall->missing);
}

void action_destroy(struct action *action)
{
    for (size_t i = 0; i < action->count; i++)
        request_destroy(&action->parts[i].request);
    free(action->parts);
    free(action->bytes);
    free(action->text);
    stall_destroy(&action->stall);
    *action = (struct action){0};
}

void actions_destroy(struct actions *actions)
{
    struct action action;
    while (actions_take(actions, &action))
        action_destroy(&action);
    free(actions->items);
    *actions = (struct actions){0};
}

void actions_add_take(struct actions *actions, const struct action *action)
{
    if (actions->first + actions->count == actions->room) {
        if (actions->first > 0)
            memmove(actions->items, actions->items + actions->first,
                    actions->count * sizeof *actions->items);
        actions->first = 0;
        if (2 * actions->count >= actions->room) {
            actions->room = 2 * actions->room + 16;
            actions->items =
                mem_resize_array(actions->items, actions->room, sizeof *actions->items);
        }
    }
    actions->items[actions->first + actions->count++] = *action;
}

bool actions_take(struct actions *actions, struct action *out)
{
    if (actions->count == 0)
        return false;
    *out = actions->items[actions->first++];
    actions->count--;
    return true;
}
