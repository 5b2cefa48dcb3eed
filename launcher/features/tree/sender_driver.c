/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/sender_driver.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "features/tree/tree_frames.h"

struct sent {
    struct parcel parcel; /* the first member: parcels.h */
    int place;
    enum frame_type type;
    uint32_t epoch;
    struct buf head;            /* the body, as far as it is this node's own */
    struct shared_block *block; /* the rest */
};

static void free_sent(struct parcel *parcel)
{
    struct sent *sent = (struct sent *)parcel;
    buf_destroy(&sent->head);
    shared_block_release(sent->block);
    free(sent);
}

static bool takes(void *context, int place, size_t bytes)
{
    const struct tree_sender *sender = context;
    const struct node_link *node = sender->job->places[place];
    return node->link != NULL && link_takes(node->link, bytes);
}

static void ready(void *context)
{
    const struct tree_sender *sender = context;
    loop_timer_set(sender->flush, 0);
}

static void send_parcels(void *context, int hop, struct parcel *const *parcels, size_t count)
{
    const struct tree_sender *sender = context;
    Hvdrun__TreeEntry *all AUTO_FREE = mem_array(count, sizeof(*all));
    Hvdrun__TreeEntry **entries AUTO_FREE = mem_array(count, sizeof(*entries));
    Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
    for (size_t i = 0; i < count; i++) {
        const struct sent *sent = (const struct sent *)parcels[i];
        all[i] = (Hvdrun__TreeEntry)HVDRUN__TREE_ENTRY__INIT;
        all[i].place = (uint32_t)sent->place;
        all[i].serial = sent->parcel.serial;
        all[i].type = (uint32_t)sent->type;
        all[i].epoch = sent->epoch;
        all[i].body.len = sent->head.length;
        all[i].body.data = (uint8_t *)buf_text(&sent->head); /* protobuf-c only reads it */
        entries[i] = &all[i];
    }
    message.entries = entries;
    message.n_entries = count;
    node_link_send_pieces(sender->job->places[hop], FRAME_TREE_DOWN, 0, &message.base,
                          TREE_DOWN_BLOCK, ((const struct sent *)parcels[0])->block);
}

static void late(void *context, int place)
{
    const struct tree_sender *sender = context;
    sender->late(sender->context, place);
}

/* A heartbeat is answered behind all that the agent has sent before. The last one may be a period
 * ago on any link. */
static int64_t behind(void *context, int place)
{
    const struct tree_sender *sender = context;
    int64_t since_ms = clock_mono_ms() - sender->job->places[place]->answered_ns / 1000000;
    return since_ms < LIVENESS_PERIOD_MS ? 0 : (since_ms - LIVENESS_PERIOD_MS) / TREE_TICK_MS;
}

static void flush(void *context)
{
    const struct tree_sender *sender = context;
    outbox_flush(sender->outbox);
}

static void tick(void *context)
{
    const struct tree_sender *sender = context;
    if (outbox_tick(sender->outbox))
        loop_timer_set(sender->tick, TREE_TICK_MS);
}

void tree_sender_open(struct tree_sender *sender, const struct tree_routes *routes, int64_t limit)
{
    static const struct outbox_ops ops = {takes, ready, send_parcels, late, behind, free_sent};
    sender->outbox = outbox_create(routes, limit, &ops, sender);
    sender->flush = loop_timer_create(sender->job->loop, flush, sender);
    sender->tick = loop_timer_create(sender->job->loop, tick, sender);
}

void tree_sender_close(struct tree_sender *sender)
{
    outbox_destroy(sender->outbox);
    loop_timer_destroy(sender->flush);
    loop_timer_destroy(sender->tick);
}

void tree_sender_send(const struct tree_sender *sender, int place, bool own_link,
                      enum frame_type type, uint32_t epoch, const ProtobufCMessage *message,
                      unsigned field, struct shared_block *block)
{
    struct sent *sent = MEM_NEW((struct sent){
        .place = place, .type = type, .epoch = epoch, .block = shared_block_hold(block)});
    sent->head = message_head(message, field, block->length);
    sent->parcel.block = block;
    sent->parcel.block_bytes = block->length;
    sent->parcel.bytes = sizeof(*sent) + sent->head.length + block->length;
    sent->parcel.own_link = own_link;
    outbox_add(sender->outbox, place, &sent->parcel);
    if (!loop_timer_is_set(sender->tick))
        loop_timer_set(sender->tick, TREE_TICK_MS);
}
