/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/sender_driver.h"

#include <stdlib.h>

#include "base/mem.h"
#include "features/tree/parcels.h"
#include "features/tree/tree_frames.h"

struct sent {
    struct parcel parcel; /* the first member: parcels.h */
    enum frame_type type;
    uint32_t epoch;
    struct buf head;            /* the body, as far as it is this node's own */
    struct shared_block *block; /* the rest */
};

/* What ends with the same block, and leaves together at the end of the loop's turn. */
struct cast {
    struct cast *next;
    struct shared_block *block;
    Hvdrun__TreeEntry **entries;
    size_t count, room;
};

struct tree_sender {
    struct job *job;
    const struct tree_routes *routes;
    void (*late)(void *context, int place);
    void *context;
    struct parcels_out *outs; /* by place */
    int size;
    int64_t passed, repeated;
    size_t waiting; /* bytes of the blocks of all casts */
    struct cast *first, **last;
    struct loop_timer *flush, *tick;
    int64_t now; /* ticks */
};

static void free_sent(struct parcel *parcel)
{
    struct sent *sent = (struct sent *)parcel;
    buf_destroy(&sent->head);
    shared_block_release(sent->block);
    free(sent);
}

static void cast_free(struct cast *cast)
{
    for (size_t i = 0; i < cast->count; i++)
        hvdrun__tree_entry__free_unpacked(cast->entries[i], NULL);
    shared_block_release(cast->block);
    free(cast->entries);
    free(cast);
}

/* Those of the same hop as entry number `from`, which are no more in the cast then. */
static void send_to_hop(struct tree_sender *sender, struct cast *cast, int *hops, size_t from)
{
    Hvdrun__TreeEntry **entries AUTO_FREE = mem_array(cast->count - from, sizeof(*entries));
    Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
    int hop = hops[from];
    message.entries = entries;
    for (size_t i = from; i < cast->count; i++) {
        if (hops[i] != hop)
            continue;
        entries[message.n_entries++] = cast->entries[i];
        hops[i] = TREE_ROOT;
        if ((int)cast->entries[i]->place == hop)
            parcels_out_went_direct(&sender->outs[hop], cast->entries[i]->serial);
        else
            sender->passed++;
    }
    node_link_send_pieces(sender->job->places[hop], FRAME_TREE_DOWN, 0, &message.base,
                          TREE_DOWN_BLOCK, cast->block);
}

static void send_cast(struct tree_sender *sender, struct cast *cast)
{
    int *hops AUTO_FREE = mem_array(cast->count, sizeof(*hops));
    for (size_t i = 0; i < cast->count; i++)
        hops[i] = tree_routes_hop(sender->routes, (int)cast->entries[i]->place);
    for (size_t i = 0; i < cast->count; i++) {
        if (hops[i] != TREE_ROOT)
            send_to_hop(sender, cast, hops, i);
    }
}

static struct cast *take_first(struct tree_sender *sender)
{
    struct cast *cast = sender->first;
    sender->first = cast->next;
    if (sender->first == NULL)
        sender->last = &sender->first;
    sender->waiting -= cast->block->length;
    return cast;
}

static void send_casts(void *context)
{
    struct tree_sender *sender = context;
    while (sender->first != NULL) {
        struct cast *cast = take_first(sender);
        send_cast(sender, cast);
        cast_free(cast);
    }
}

static Hvdrun__TreeEntry *entry_of(int place, const struct sent *sent)
{
    Hvdrun__TreeEntry *entry = mem_alloc(sizeof(*entry));
    *entry = (Hvdrun__TreeEntry)HVDRUN__TREE_ENTRY__INIT;
    entry->place = (uint32_t)place;
    entry->serial = sent->parcel.serial;
    entry->type = (uint32_t)sent->type;
    entry->epoch = sent->epoch;
    entry->body.len = sent->head.length;
    entry->body.data = mem_dup(buf_text(&sent->head), sent->head.length);
    return entry;
}

static void add_to_cast(struct tree_sender *sender, int place, const struct sent *sent)
{
    struct cast *cast = sender->first;
    while (cast != NULL && cast->block != sent->block)
        cast = cast->next;
    if (cast == NULL) {
        cast = mem_alloc(sizeof(*cast));
        cast->block = shared_block_hold(sent->block);
        sender->waiting += sent->block->length;
        *sender->last = cast;
        sender->last = &cast->next;
    }
    cast->entries = mem_one_more(cast->entries, cast->count, &cast->room, sizeof(*cast->entries));
    cast->entries[cast->count++] = entry_of(place, sent);
    loop_timer_set(sender->flush, 0);
}

static void send_direct(const struct tree_sender *sender, int place, const struct sent *sent)
{
    Hvdrun__TreeEntry *entry = entry_of(place, sent);
    Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
    message.entries = &entry;
    message.n_entries = 1;
    node_link_send_pieces(sender->job->places[place], FRAME_TREE_DOWN, 0, &message.base,
                          TREE_DOWN_BLOCK, sent->block);
    hvdrun__tree_entry__free_unpacked(entry, NULL);
}

static void tick_later(const struct tree_sender *sender)
{
    if (!loop_timer_is_set(sender->tick))
        loop_timer_set(sender->tick, TREE_TICK_MS);
}

void tree_sender_again(struct tree_sender *sender, int place)
{
    struct parcels_out *out = &sender->outs[place];
    for (const struct parcel *parcel = parcels_out_again(out); parcel != NULL;
         parcel = parcels_out_again(out)) {
        send_direct(sender, place, (const struct sent *)parcel);
        sender->repeated++;
    }
}

void tree_sender_send(struct tree_sender *sender, int place, bool direct, enum frame_type type,
                      uint32_t epoch, const ProtobufCMessage *message, unsigned field,
                      struct shared_block *block)
{
    struct sent *sent = mem_alloc(sizeof(*sent));
    *sent = (struct sent){.type = type, .epoch = epoch, .block = shared_block_hold(block)};
    sent->head = message_head(message, field, block->length);
    sent->parcel.bytes = sizeof(*sent) + sent->head.length + block->length;
    if (direct && parcels_out_is_full(&sender->outs[place], sent->parcel.bytes))
        tree_sender_again(sender, place);
    parcels_out_add(&sender->outs[place], &sent->parcel, sender->now);
    tick_later(sender);
    if (direct) {
        parcels_out_went_direct(&sender->outs[place], sent->parcel.serial);
        send_direct(sender, place, sent);
    } else {
        add_to_cast(sender, place, sent);
    }
}

int tree_sender_confirm(struct tree_sender *sender, int place, uint64_t serial)
{
    return parcels_out_confirm(&sender->outs[place], serial);
}

void tree_sender_forget(struct tree_sender *sender, int place)
{
    parcels_out_clear(&sender->outs[place]);
}

void tree_sender_heard(struct tree_sender *sender, int place)
{
    parcels_out_wait(&sender->outs[place], sender->now);
}

bool tree_sender_owes(const struct tree_sender *sender, int place)
{
    return sender->outs[place].first != NULL;
}

bool tree_sender_is_late(const struct tree_sender *sender, int place)
{
    return parcels_out_is_late(&sender->outs[place], sender->now);
}

size_t tree_sender_waiting(const struct tree_sender *sender)
{
    return sender->waiting;
}

int64_t tree_sender_passed(const struct tree_sender *sender)
{
    return sender->passed;
}

int64_t tree_sender_repeated(const struct tree_sender *sender)
{
    return sender->repeated;
}

/* A silent link is judged by its node's liveness: what went through others may have come. */
static void tick(void *context)
{
    struct tree_sender *sender = context;
    bool more = false;
    sender->now++;
    for (int i = 0; i < sender->size; i++) {
        const struct node_link *node = sender->job->places[i];
        if (!node_link_alive(node))
            continue;
        if (tree_sender_is_late(sender, i) && !node->suspect && sender->job->state < JOB_CLOSING)
            sender->late(sender->context, i);
        more |= sender->outs[i].first != NULL;
    }
    if (more)
        tick_later(sender);
}

struct tree_sender *tree_sender_create(struct job *job, const struct tree_routes *routes,
                                       int64_t patience, void (*late)(void *context, int place),
                                       void *context)
{
    struct tree_sender *sender = mem_alloc(sizeof(*sender));
    *sender = (struct tree_sender){.job = job,
                                   .routes = routes,
                                   .late = late,
                                   .context = context,
                                   .size = tree_routes_shape(routes)->size};
    sender->outs = mem_array((size_t)sender->size, sizeof(*sender->outs));
    size_t copies =
        (size_t)tree_routes_shape(routes)->radix * (size_t)tree_levels(tree_routes_shape(routes));
    for (int i = 0; i < sender->size; i++)
        parcels_out_init(&sender->outs[i], patience, copies, free_sent);
    sender->last = &sender->first;
    sender->flush = loop_timer_create(job->loop, send_casts, sender);
    sender->tick = loop_timer_create(job->loop, tick, sender);
    return sender;
}

void tree_sender_destroy(struct tree_sender *sender)
{
    if (sender == NULL)
        return;
    for (int i = 0; i < sender->size; i++)
        parcels_out_clear(&sender->outs[i]);
    while (sender->first != NULL)
        cast_free(take_first(sender));
    loop_timer_destroy(sender->flush);
    loop_timer_destroy(sender->tick);
    free(sender->outs);
    free(sender);
}
