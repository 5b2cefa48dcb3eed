/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "simcore/node.h"

static char *keys_of(const struct action *action)
{
    AUTO_BUF struct buf keys = BUF_INIT(1 << 16);
    for (size_t i = 0; i < action->count; i++)
        buf_printf(&keys, "%s ", action->parts[i].request.key);
    return buf_take(&keys);
}

/* Each rank has other rows to gather: set rank r has r more than the first. So this is the least
 * that a rank may have taken it for. */
static size_t bytes_at_least(const struct sim_set *set, int set_rank, const struct part *part)
{
    struct request request = part->request;
    int64_t shape[2];
    if (request.kind == KIND_ALLGATHER) {
        memcpy(shape, request.shape, sizeof shape);
        shape[0] -= set_rank;
        request.shape = shape;
    }
    return request_fused_bytes(&request, set->count);
}

static void check_fusion(struct world *world, int set, int rank, const struct action *action)
{
    size_t bytes = 0;
    int set_rank = program_set_rank(world->program, set, rank);
    for (size_t i = 0; i < action->count; i++) {
        bytes += bytes_at_least(&world->program->sets[set], set_rank, &action->parts[i]);
        if (action->count > 1 &&
            !request_fuses(&action->parts[0].request, &action->parts[i].request))
            world_break(world, FUSION, "'%s' is fused with '%s'", action->parts[0].request.key,
                        action->parts[i].request.key);
    }
    if (action->count > 1 && bytes > world->program->threshold && !world->program->tunes)
        world_break(world, FUSION, "%zu tensors with %zu bytes are fused", action->count, bytes);
}

/* The highest of the parts. A rank that has joined knows only what the root says. */
static int priority_of(const struct action *action)
{
    int priority = INT_MIN;
    for (size_t i = 0; i < action->count; i++) {
        const struct part *part = &action->parts[i];
        const struct ticket *ticket = part->token;
        int own = ticket == NULL || ticket->call == NULL ? part->request.priority
                                                         : ticket->call->priority;
        priority = own > priority ? own : priority;
    }
    return priority;
}

/* Only the root sees which operations belong to one decision, and only if it sends them. */
static void check_priority(struct world *world, int set, int rank, const struct action *action)
{
    struct node *node = &world->nodes[set][rank];
    int priority = priority_of(action);
    if (world->program->sets[set].ranks[0] != rank || world->program->sets[set].count == 1)
        return;
    if (priority > node->least_priority)
        world_break(world, PRIORITY, "'%s' with priority %d runs after one with %d",
                    action->parts[0].request.key, priority, node->least_priority);
    node->least_priority = priority;
}

void check_operation(struct world *world, int set, int rank, const struct action *action)
{
    struct node *node = &world->nodes[set][rank];
    struct operation *operation = &world->operations[set][node->runs];
    char *keys = keys_of(action);
    check_fusion(world, set, rank, action);
    check_priority(world, set, rank, action);
    if (operation->keys == NULL) {
        operation->keys = keys;
        operation->has_data = request_has_tensor(&action->parts[0].request);
        operation->tunings = node->tunings;
        return;
    }
    if (operation->tunings != node->tunings)
        world_break(world, TUNED, "set %d, operation %d: rank %d has changed %d times, others %d",
                    set, node->runs, rank, node->tunings, operation->tunings);
    if (strcmp(operation->keys, keys) != 0)
        world_break(world, SAME_ORDER, "set %d, operation %d: rank %d runs %s, others %s", set,
                    node->runs, rank, keys, operation->keys);
    free(keys);
}

static bool ranks_disagree(const struct world *world, const struct call *call)
{
    bool differ = false;
    struct request first = program_request(world->program, call, 0);
    for (int i = 1; i < world->program->sets[call->set].count; i++) {
        struct request other = program_request(world->program, call, i);
        differ = differ || request_difference(&first, &other) != NULL;
        request_destroy(&other);
    }
    request_destroy(&first);
    return differ;
}

/* What is foreseen when no rank dies and none shuts down early. */
static enum hvd_status foreseen(const struct world *world, const struct call *call)
{
    return call != NULL && ranks_disagree(world, call) ? HVD_ERR_MISMATCH : HVD_OK;
}

static bool breaks(enum hvd_status status)
{
    return status == HVD_ERR_PEER_LOST || status == HVD_ERR_SHUT_DOWN;
}

void check_ticket(struct world *world, int rank, const struct ticket *ticket)
{
    const char *name = ticket->call == NULL ? "join" : ticket->call->name;
    if (ticket->completions != 1)
        world_break(world, COMPLETE_ONCE, "rank %d: '%s' of step %d is complete %d times", rank,
                    name, ticket->step, ticket->completions);
    if (breaks(ticket->status) && (world->program->dies >= 0 || world->program->leaves >= 0))
        return;
    enum hvd_status right = foreseen(world, ticket->call);
    if (ticket->status != right && !world->program->joins)
        world_break(world, RIGHT_STATUS, "rank %d: '%s' of step %d has status %d, not %d: %s", rank,
                    name, ticket->step, ticket->status, right, ticket->text);
}

static void compare(struct world *world, int rank, const struct ticket *one, int other_rank,
                    const struct ticket *other)
{
    if (breaks(one->status) || breaks(other->status))
        return;
    if (one->status != other->status)
        world_break(world, SAME_STATUS, "step %d: status %d on rank %d, and %d on rank %d",
                    one->step, one->status, rank, other->status, other_rank);
    if (strcmp(one->text, other->text) != 0)
        world_break(world, SAME_TEXT, "rank %d: %s; rank %d: %s", rank, one->text, other_rank,
                    other->text);
    if (one->last_joined != other->last_joined)
        world_break(world, LAST_JOINED, "rank %d hears %d, and rank %d hears %d", rank,
                    one->last_joined, other_rank, other->last_joined);
}

static void compare_with_others(struct world *world, int rank, const struct ticket *ticket)
{
    for (int other = rank + 1; other < world->program->ranks; other++)
        for (int i = 0; i < world->ranks[other].ticket_count; i++) {
            const struct ticket *theirs = &world->ranks[other].tickets[i];
            if (theirs->call == ticket->call && theirs->completions > 0 &&
                (ticket->call != NULL || theirs->step >= 0))
                compare(world, rank, ticket, other, theirs);
        }
}

static void check_ended(struct world *world, int rank)
{
    for (int set = 0; set < world->program->set_count; set++) {
        const struct node *node = &world->nodes[set][rank];
        if (node->core != NULL && !node->ended)
            world_break(world, ENDS, "the set %d of rank %d has not ended", set, rank);
    }
}

void check_world(struct world *world)
{
    for (int rank = 0; rank < world->program->ranks; rank++) {
        if (!world->ranks[rank].alive)
            continue;
        for (int i = 0; i < world->ranks[rank].ticket_count; i++) {
            const struct ticket *ticket = &world->ranks[rank].tickets[i];
            if (ticket->completions == 0)
                world_break(world, COMPLETE_ALL, "rank %d: '%s' of step %d is not complete", rank,
                            ticket->call == NULL ? "join" : ticket->call->name, ticket->step);
            compare_with_others(world, rank, ticket);
        }
        check_ended(world, rank);
    }
}
