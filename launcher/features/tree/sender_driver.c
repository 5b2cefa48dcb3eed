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
struct item {
    int hop; /* to whom */
    Hvdrun__TreeEntry *entry;
};

struct cast {
    struct cast *next;
    struct shared_block *block;
    struct item *items;
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
    bool held;      /* a parcel waits for room on a link */
    struct cast *first, *newest;
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
        hvdrun__tree_entry__free_unpacked(cast->items[i].entry, NULL);
    shared_block_release(cast->block);
    free(cast->items);
    free(cast);
}

/* One agent may be in a cast twice, and its own order holds. */
static int compare(const void *left, const void *right)
{
    const struct item *one = left, *other = right;
    if (one->hop != other->hop)
        return one->hop < other->hop ? -1 : 1;
    return one->entry->serial < other->entry->serial ? -1 : 1;
}

static void send_cast(struct tree_sender *sender, struct cast *cast)
{
    Hvdrun__TreeEntry **entries AUTO_FREE = mem_array(cast->count, sizeof(*entries));
    qsort(cast->items, cast->count, sizeof(*cast->items), compare);
    for (size_t i = 0; i < cast->count;) {
        Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
        int hop = cast->items[i].hop;
        message.entries = entries;
        for (; i < cast->count && cast->items[i].hop == hop; i++) {
            entries[message.n_entries++] = cast->items[i].entry;
            sender->passed += (int)cast->items[i].entry->place != hop;
        }
        node_link_send_pieces(sender->job->places[hop], FRAME_TREE_DOWN, 0, &message.base,
                              TREE_DOWN_BLOCK, cast->block);
    }
}

static struct cast *take_first(struct tree_sender *sender)
{
    struct cast *cast = sender->first;
    sender->first = cast->next;
    if (sender->first == NULL)
        sender->newest = NULL;
    sender->waiting -= cast->block->length;
    return cast;
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

/* Only to the newest one: so each agent gets its own in order. */
static void add_to_cast(struct tree_sender *sender, int place, int hop, const struct sent *sent)
{
    struct cast *cast = sender->newest;
    if (cast == NULL || cast->block != sent->block) {
        cast = mem_alloc(sizeof(*cast));
        *cast = (struct cast){.block = shared_block_hold(sent->block)};
        *(sender->newest == NULL ? &sender->first : &sender->newest->next) = cast;
        sender->newest = cast;
        sender->waiting += sent->block->length;
    }
    cast->items = mem_one_more(cast->items, cast->count, &cast->room, sizeof(*cast->items));
    cast->items[cast->count++] = (struct item){hop, entry_of(place, sent)};
    loop_timer_set(sender->flush, 0);
}

/* By way of others, if most of the queue of that agent's link is left for what only it gets. */
static int way_to(const struct tree_sender *sender, int place, const struct parcel *parcel)
{
    int hop = tree_routes_hop(sender->routes, place);
    bool others = hop != place && !parcel->own_link &&
                  node_link_takes(sender->job->places[hop],
                                  sender->waiting + parcel->bytes + TREE_SPARE_BYTES);
    return others ? hop : PARCEL_OWN_LINK;
}

/* All that may go now. */
static void send_next(struct tree_sender *sender, int place)
{
    struct parcels_out *out = &sender->outs[place];
    while (out->unsent != NULL) {
        const struct parcel *parcel = out->unsent;
        int way = way_to(sender, place, parcel);
        if (!parcels_out_may_go(out, way) ||
            (way == PARCEL_OWN_LINK &&
             !node_link_takes(sender->job->places[place], sender->waiting + parcel->bytes)))
            return;
        add_to_cast(sender, place, way == PARCEL_OWN_LINK ? place : way,
                    (const struct sent *)parcel);
        parcels_out_goes(out, way, sender->now);
    }
}

/* All that leaves in one turn counts for each link, so others may only have waited for its end. */
static void send_casts(void *context)
{
    struct tree_sender *sender = context;
    while (sender->first != NULL) {
        struct cast *cast = take_first(sender);
        send_cast(sender, cast);
        cast_free(cast);
    }
    for (int i = 0; sender->held && i < sender->size; i++)
        send_next(sender, i);
    sender->held = sender->first != NULL;
}

void tree_sender_send(struct tree_sender *sender, int place, bool own_link, enum frame_type type,
                      uint32_t epoch, const ProtobufCMessage *message, unsigned field,
                      struct shared_block *block)
{
    struct sent *sent = mem_alloc(sizeof(*sent));
    *sent = (struct sent){.type = type, .epoch = epoch, .block = shared_block_hold(block)};
    sent->head = message_head(message, field, block->length);
    sent->parcel.bytes = sizeof(*sent) + sent->head.length + block->length;
    sent->parcel.own_link = own_link;
    parcels_out_add(&sender->outs[place], &sent->parcel);
    send_next(sender, place);
    if (!loop_timer_is_set(sender->tick))
        loop_timer_set(sender->tick, TREE_TICK_MS);
}

void tree_sender_return(struct tree_sender *sender, int place)
{
    sender->repeated += parcels_out_return(&sender->outs[place]);
    send_next(sender, place);
}

int tree_sender_confirm(struct tree_sender *sender, int place, uint64_t serial)
{
    int result = parcels_out_confirm(&sender->outs[place], serial);
    send_next(sender, place);
    return result;
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

int64_t tree_sender_passed(const struct tree_sender *sender)
{
    return sender->passed;
}

int64_t tree_sender_repeated(const struct tree_sender *sender)
{
    return sender->repeated;
}

/* A silent link is judged by its node's liveness: what went through others may have come. */
static void look_at(struct tree_sender *sender, int place)
{
    struct node_link *node = sender->job->places[place];
    if (sender->outs[place].bytes > TREE_UNCONFIRMED_MAX)
        node_link_give_up(node, "its agent does not take what MPI ranks exchange");
    else if (tree_sender_is_late(sender, place) && !node->suspect &&
             sender->job->state < JOB_CLOSING)
        sender->late(sender->context, place);
    else
        send_next(sender, place);
}

static void tick(void *context)
{
    struct tree_sender *sender = context;
    bool more = false;
    sender->now++;
    for (int i = 0; i < sender->size; i++) {
        if (sender->outs[i].first == NULL || !node_link_alive(sender->job->places[i]))
            continue;
        look_at(sender, i);
        more = true;
    }
    if (more)
        loop_timer_set(sender->tick, TREE_TICK_MS);
}

struct tree_sender *tree_sender_create(struct job *job, const struct tree_routes *routes,
                                       int64_t limit, void (*late)(void *context, int place),
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
        parcels_out_init(&sender->outs[i], TREE_PATIENCE, limit, copies, free_sent);
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
