/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's place in the tree. It passes on what its parent sends for those below it, and tells
 * the driver on its own link which parcels it has taken. It does nothing before the driver says
 * TREE_OPEN or TREE_JOIN.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/modules.h"
#include "agent/part.h"
#include "base/mem.h"
#include "features/tree/neighbours.h"
#include "features/tree/parcels.h"
#include "features/tree/tree_frames.h"
#include "io/send_queue.h"

struct tree_desk {
    struct agent *agent;
    struct tree_shape shape;
    int place;
    struct tree_neighbours *neighbours;
    uint32_t order; /* the number of the last TREE_JOIN */
    uint64_t taken; /* the serial of the last parcel that was */
};

/* `below`: a child; 0: our own connection to the agent above. */
static void say_left(const struct tree_desk *desk, int below, const char *why)
{
    Hvdrun__TreeLeft message = HVDRUN__TREE_LEFT__INIT;
    message.why = (char *)why; /* protobuf-c only reads it */
    message.number = desk->order;
    message.below = (uint32_t)below;
    post_message(&desk->agent->post, FRAME_TREE_LEFT, &message.base);
}

static void return_to_driver(void *context, const char *why)
{
    say_left(context, 0, why);
}

static void joined(void *context)
{
    const struct tree_desk *desk = context;
    Hvdrun__TreeJoined message = HVDRUN__TREE_JOINED__INIT;
    message.place = (uint32_t)desk->place;
    message.number = desk->order;
    post_message(&desk->agent->post, FRAME_TREE_JOINED, &message.base);
}

/* Down */

/* Before what ranks do next: so the driver knows that it may take any way to this agent. */
static void confirm(const struct tree_desk *desk)
{
    Hvdrun__TreeTaken message = HVDRUN__TREE_TAKEN__INIT;
    message.serial = desk->taken;
    post_message(&desk->agent->post, FRAME_TREE_TAKEN, &message.base);
}

static void deliver(const struct tree_desk *desk, const Hvdrun__TreeEntry *entry,
                    const ProtobufCBinaryData *block)
{
    size_t length = entry->body.len + block->len;
    uint8_t *body AUTO_FREE = mem_alloc(length + 1);
    const struct frame_header header = {.version = FRAME_VERSION,
                                        .type = (uint8_t)entry->type,
                                        .length = (uint32_t)length,
                                        .node = FRAME_NODE_NONE,
                                        .epoch = entry->epoch};
    if (entry->body.len > 0)
        memcpy(body, entry->body.data, entry->body.len);
    if (block->len > 0)
        memcpy(body + entry->body.len, block->data, block->len);
    desk->agent->take(desk->agent, &header, body);
}

/* -1: the driver never sends this, or one is missing: no way loses any. */
static int take_own(struct tree_desk *desk, const Hvdrun__TreeEntry *entry,
                    const ProtobufCBinaryData *block)
{
    if (!tree_takes(entry->type) || entry->serial == 0)
        return -1;
    if (desk->agent->link == NULL)
        return 0; /* the agent has broken off */
    switch (parcel_turn(&desk->taken, entry->serial)) {
    case PARCEL_KNOWN: return 0;
    case PARCEL_EARLY: return -1;
    case PARCEL_NEXT: break;
    }
    confirm(desk);
    deliver(desk, entry, block);
    return 0;
}

/* Those below one child. The block is made for the first of them that is there. A child that is too
 * slow gets what waits for it, and all that follows, from the driver. */
static void pass_on(struct tree_desk *desk, const Hvdrun__TreeDown *message, int child,
                    struct shared_block **block)
{
    struct link *to = neighbours_child(desk->neighbours, child);
    Hvdrun__TreeEntry **entries AUTO_FREE = mem_array(message->n_entries, sizeof(*entries));
    Hvdrun__TreeDown down = HVDRUN__TREE_DOWN__INIT;
    down.entries = entries;
    for (size_t i = 0; i < message->n_entries; i++) {
        if (tree_toward(&desk->shape, child, (int)message->entries[i]->place) >= 0)
            entries[down.n_entries++] = message->entries[i];
    }
    if (to == NULL || down.n_entries == 0)
        return;
    if (link_queued(to) > TREE_CHILD_QUEUE_MAX) {
        neighbours_drop(desk->neighbours, child);
        say_left(desk, child, "");
        return;
    }
    if (*block == NULL) {
        *block = shared_block_create(message->block.len);
        if (message->block.len > 0)
            memcpy((*block)->bytes, message->block.data, message->block.len);
    }
    link_send_pieces(to, FRAME_TREE_DOWN, 0, &down.base, TREE_DOWN_BLOCK, *block);
}

static void pass_to_children(struct tree_desk *desk, const Hvdrun__TreeDown *message)
{
    int children = tree_children(&desk->shape, desk->place);
    int first = tree_first_child(&desk->shape, desk->place);
    struct shared_block *block = NULL;
    for (int i = 0; i < children; i++)
        pass_on(desk, message, first + i, &block);
    shared_block_release(block);
}

static bool is_for_us(const struct tree_desk *desk, const Hvdrun__TreeDown *message)
{
    for (size_t i = 0; i < message->n_entries; i++) {
        uint32_t place = message->entries[i]->place;
        if (place >= (uint32_t)desk->shape.size ||
            tree_toward(&desk->shape, desk->place, (int)place) < 0)
            return false;
    }
    return true;
}

/* Others first: they have a longer way. */
static int take(void *context, const uint8_t *body, size_t length)
{
    struct tree_desk *desk = context;
    ProtobufCBinaryData *block;
    Hvdrun__TreeDown *message = (Hvdrun__TreeDown *)message_borrow(
        &hvdrun__tree_down__descriptor, body, length, TREE_DOWN_BLOCK, &block);
    int result = message != NULL && is_for_us(desk, message) ? 0 : -1;
    if (result == 0)
        pass_to_children(desk, message);
    for (size_t i = 0; result == 0 && i < message->n_entries; i++) {
        if (message->entries[i]->place == (uint32_t)desk->place)
            result = take_own(desk, message->entries[i], &message->block);
    }
    if (block != NULL)
        block->data = NULL;
    message_free(message == NULL ? NULL : &message->base);
    return result;
}

/* Orders */

#define DEAD_MIN_MS 10000 /* a shorter limit ends connections that only say nothing */

static int64_t dead_after_ms(const struct agent *agent)
{
    return agent->liveness.lost_ms < DEAD_MIN_MS ? DEAD_MIN_MS : agent->liveness.lost_ms;
}

/* The desk, and the agent's neighbours. NULL: the driver broke the protocol. */
static struct tree_desk *get_desk(struct agent *agent, uint32_t place, uint32_t size,
                                  uint32_t radix, const ProtobufCBinaryData *key)
{
    static const struct tree_neighbours_ops ops = {joined, return_to_driver, take};
    struct tree_desk *desk = agent_own(agent, tree_desk);
    struct tree_shape shape = {(int)(size & INT32_MAX), (int)(radix & INT32_MAX)};
    if (!tree_shape_is_valid(&shape) || place >= size || key->len != TLS_KEY_SIZE ||
        (desk != NULL && (desk->place != (int)place || desk->shape.size != shape.size))) {
        agent_end_breach(agent, "the tree has no such place");
        return NULL;
    }
    if (desk != NULL)
        return desk;
    desk = MEM_NEW((struct tree_desk){.agent = agent, .shape = shape, .place = (int)place});
    desk->neighbours = neighbours_create(agent->loop, &shape, (int)place, key->data,
                                         dead_after_ms(agent), &ops, desk);
    agent->own[AGENT_PART_tree_desk] = desk;
    return desk;
}

static int use_tls(struct tree_desk *desk, struct error *err)
{
    const char *path = modules_find(desk->agent->modules, "hvdrun-tls.so", err);
    return path == NULL ? -1 : neighbours_use_tls(desk->neighbours, path, err);
}

static void take_open(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__TreeOpen *message = body;
    struct tree_desk *desk =
        get_desk(agent, message->place, message->size, message->radix, &message->key);
    Hvdrun__TreeOpened answer = HVDRUN__TREE_OPENED__INIT;
    struct error err = ERROR_INIT;
    (void)header;
    if (desk == NULL)
        return;
    if (use_tls(desk, &err) < 0 ||
        neighbours_wait(desk->neighbours, message->address, &answer.port, &err) < 0)
        answer.problem = err.text;
    post_message(&agent->post, FRAME_TREE_OPENED, &answer.base);
}

static int join(struct tree_desk *desk, const Hvdrun__TreeJoin *message, struct error *err)
{
    struct socket_address parent;
    if (message->port == 0 || !socket_address_set(&parent, message->address, message->port))
        return error_set(err, "the agent above has no address");
    return use_tls(desk, err) < 0 ? -1 : neighbours_join(desk->neighbours, &parent, err);
}

static void take_join(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__TreeJoin *message = body;
    struct tree_desk *desk =
        get_desk(agent, message->place, message->size, message->radix, &message->key);
    struct error err = ERROR_INIT;
    (void)header;
    if (desk == NULL)
        return;
    desk->order = message->number;
    if (join(desk, message, &err) < 0)
        return_to_driver(desk, err.text);
}

static void take_left(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct tree_desk *desk = agent_own(agent, tree_desk);
    (void)header, (void)body;
    if (desk == NULL)
        return;
    neighbours_leave(desk->neighbours);
}

static void take_direct(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct tree_desk *desk = agent_own(agent, tree_desk);
    if (desk == NULL || take(desk, body, header->length) < 0)
        agent_end_breach(agent, "TREE_DOWN cannot be read");
}

static void close_part(struct agent *agent)
{
    struct tree_desk *desk = agent_own(agent, tree_desk);
    neighbours_destroy(desk->neighbours);
    free(desk);
}

static const struct agent_order orders[] = {
    {FRAME_TREE_OPEN, &hvdrun__tree_open__descriptor, take_open},
    {FRAME_TREE_JOIN, &hvdrun__tree_join__descriptor, take_join},
    {FRAME_TREE_LEFT, &hvdrun__tree_left__descriptor, take_left},
    {FRAME_TREE_DOWN, NULL, take_direct},
    {0}};
const struct agent_part tree_desk_agent_part = {
    .name = "tree_desk", .orders = orders, .close = close_part};
