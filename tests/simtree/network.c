/* SPDX-License-Identifier: Apache-2.0 */
#include "simtree/network.h"

#include <stdlib.h>

#include "base/mem.h"

static bool is_before(const struct message *one, const struct message *other)
{
    return one->at != other->at ? one->at < other->at : one->order < other->order;
}

static void swap(struct message *one, struct message *other)
{
    struct message kept = *one;
    *one = *other;
    *other = kept;
}

void network_add(struct network *network, const struct message *message)
{
    network->heap =
        mem_one_more(network->heap, network->count, &network->room, sizeof(*network->heap));
    size_t at = network->count++;
    network->heap[at] = *message;
    if (message->order == 0)
        network->heap[at].order = ++network->order;
    for (; at > 0 && is_before(&network->heap[at], &network->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&network->heap[at], &network->heap[(at - 1) / 2]);
}

static void sink(struct network *network)
{
    size_t at = 0;
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < network->count; child++) {
            if (is_before(&network->heap[child], &network->heap[least]))
                least = child;
        }
        if (least == at)
            return;
        swap(&network->heap[at], &network->heap[least]);
        at = least;
    }
}

bool network_take(struct network *network, struct message *out)
{
    if (network->count == 0)
        return false;
    *out = network->heap[0];
    network->heap[0] = network->heap[--network->count];
    sink(network);
    return true;
}

void network_clear(struct network *network)
{
    for (size_t i = 0; i < network->count; i++)
        free(network->heap[i].entries);
    free(network->heap);
}
