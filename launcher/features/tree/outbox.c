/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/outbox.h"

#include <stdlib.h>

#include "base/mem.h"
#include "features/tree/tree_frames.h"

struct item { /* leaves at the end of the turn */
    int hop;  /* to whom */
    struct parcel *parcel;
};

struct hop {
    size_t bytes; /* of items */
    uint64_t run; /* the last one that it is in */
};

struct outbox {
    const struct tree_routes *routes;
    const struct outbox_ops *ops;
    void *context;
    struct parcels_out *outs; /* by place, as `hops` */
    struct hop *hops;
    int size;
    struct item *items;
    size_t count, room;
    uint64_t run; /* of items that follow each other and have the same block */
    int64_t now;  /* ticks */
    struct outbox_counts counts;
};

struct outbox *outbox_create(const struct tree_routes *routes, int64_t limit,
                             const struct outbox_ops *ops, void *context)
{
    struct outbox *outbox = mem_alloc(sizeof(*outbox));
    const struct tree_shape *shape = &routes->shape;
    size_t copies = (size_t)shape->radix * (size_t)tree_levels(shape);
    *outbox =
        (struct outbox){.routes = routes, .ops = ops, .context = context, .size = shape->size};
    outbox->outs = mem_array((size_t)shape->size, sizeof(*outbox->outs));
    outbox->hops = mem_array((size_t)shape->size, sizeof(*outbox->hops));
    for (int i = 0; i < shape->size; i++)
        parcels_out_init(&outbox->outs[i], TREE_PATIENCE, limit, copies, ops->free);
    return outbox;
}

void outbox_destroy(struct outbox *outbox)
{
    if (outbox == NULL)
        return;
    for (int i = 0; i < outbox->size; i++)
        parcels_out_clear(&outbox->outs[i]);
    for (size_t i = 0; i < outbox->count; i++)
        parcel_release(outbox->items[i].parcel, outbox->ops->free);
    free(outbox->items);
    free(outbox->hops);
    free(outbox->outs);
    free(outbox);
}

/* One agent may be in a run twice, and its own order holds. */
static int compare(const void *left, const void *right)
{
    const struct item *one = left, *other = right;
    if (one->hop != other->hop)
        return one->hop < other->hop ? -1 : 1;
    return one->parcel->serial < other->parcel->serial ? -1 : 1;
}

static void send_run(struct outbox *outbox, struct item *items, size_t count)
{
    struct parcel **parcels AUTO_FREE = mem_array(count, sizeof(*parcels));
    qsort(items, count, sizeof(*items), compare);
    for (size_t i = 0; i < count; i++)
        parcels[i] = items[i].parcel;
    for (size_t i = 0, first = 0; i < count; first = i) {
        while (i < count && items[i].hop == items[first].hop)
            i++;
        outbox->ops->send(outbox->context, items[first].hop, &parcels[first], i - first);
    }
}

void outbox_flush(struct outbox *outbox)
{
    struct item *items = outbox->items;
    for (size_t i = 0, first = 0; i < outbox->count; first = i) {
        while (i < outbox->count && items[i].parcel->block == items[first].parcel->block)
            i++;
        send_run(outbox, &items[first], i - first);
    }
    for (size_t i = 0; i < outbox->count; i++) {
        outbox->hops[items[i].hop].bytes = 0;
        parcel_release(items[i].parcel, outbox->ops->free);
    }
    outbox->count = 0;
}

static bool is_in_run(const struct outbox *outbox, const struct parcel *parcel)
{
    return outbox->count > 0 && outbox->items[outbox->count - 1].parcel->block == parcel->block;
}

/* Its block may go there anyway. */
static size_t more_for(const struct outbox *outbox, int place, const struct parcel *parcel)
{
    bool known = is_in_run(outbox, parcel) && outbox->hops[place].run == outbox->run;
    return parcel->bytes - (known ? parcel->block_bytes : 0);
}

static void go(struct outbox *outbox, int place, int way)
{
    struct parcel *parcel = outbox->outs[place].unsent;
    struct hop *hop = &outbox->hops[way == PARCEL_OWN_LINK ? place : way];
    hop->bytes += more_for(outbox, (int)(hop - outbox->hops), parcel);
    if (!is_in_run(outbox, parcel))
        outbox->run++;
    hop->run = outbox->run;
    MEM_ADD_ROOM(outbox->items, outbox->count, outbox->room) =
        (struct item){(int)(hop - outbox->hops), parcel};
    parcel->holds++;
    if (outbox->count == 1)
        outbox->ops->ready(outbox->context);
    outbox->counts.passed += way != PARCEL_OWN_LINK;
    parcels_out_goes(&outbox->outs[place], way, outbox->now);
}

static bool takes(const struct outbox *outbox, int place, const struct parcel *parcel, size_t spare)
{
    size_t bytes = outbox->hops[place].bytes + more_for(outbox, place, parcel);
    return outbox->ops->takes(outbox->context, place, bytes + spare);
}

/* By way of others, if most of the queue of that agent's link is left for what only it gets. */
static int way_to(const struct outbox *outbox, int place, const struct parcel *parcel)
{
    int hop = tree_routes_hop(outbox->routes, place);
    bool others = hop != place && !parcel->own_link && takes(outbox, hop, parcel, TREE_SPARE_BYTES);
    return others ? hop : PARCEL_OWN_LINK;
}

/* All that may go now. */
static void send_next(struct outbox *outbox, int place)
{
    struct parcels_out *out = &outbox->outs[place];
    while (out->unsent != NULL) {
        int way = way_to(outbox, place, out->unsent);
        if (!parcels_out_may_go(out, way) ||
            (way == PARCEL_OWN_LINK && !takes(outbox, place, out->unsent, 0)))
            return;
        go(outbox, place, way);
    }
}

void outbox_add(struct outbox *outbox, int place, struct parcel *parcel)
{
    parcels_out_add(&outbox->outs[place], parcel);
    send_next(outbox, place);
}

/* Each time, another place is the first to get room. */
bool outbox_tick(struct outbox *outbox)
{
    bool more = false;
    outbox->now++;
    for (int i = 0; i < outbox->size; i++) {
        int place = (int)((outbox->now + i) % outbox->size);
        if (!outbox_owes(outbox, place))
            continue;
        more = true;
        if (outbox_is_late(outbox, place))
            outbox->ops->late(outbox->context, place);
        send_next(outbox, place);
    }
    return more;
}

void outbox_return(struct outbox *outbox, int place)
{
    outbox->counts.repeated += parcels_out_return(&outbox->outs[place]);
    send_next(outbox, place);
}

int outbox_confirm(struct outbox *outbox, int place, uint64_t serial)
{
    int result = parcels_out_confirm(&outbox->outs[place], serial);
    send_next(outbox, place);
    return result;
}

void outbox_forget(struct outbox *outbox, int place)
{
    parcels_out_clear(&outbox->outs[place]);
}

void outbox_heard(struct outbox *outbox, int place)
{
    parcels_out_wait(&outbox->outs[place], outbox->now);
}

bool outbox_owes(const struct outbox *outbox, int place)
{
    return outbox->outs[place].first != NULL;
}

bool outbox_owes_below(const struct outbox *outbox, int place)
{
    for (int i = place; i < outbox->size; i++)
        if (outbox_owes(outbox, i) && tree_toward(&outbox->routes->shape, place, i) >= 0)
            return true;
    return false;
}

bool outbox_is_late(const struct outbox *outbox, int place)
{
    int64_t behind = outbox->ops->behind(outbox->context, place);
    return parcels_out_is_late(&outbox->outs[place], outbox->now - behind);
}

bool outbox_on_own_link(const struct outbox *outbox, int place)
{
    return outbox->outs[place].way == PARCEL_OWN_LINK;
}

size_t outbox_waiting(const struct outbox *outbox, int place)
{
    return outbox->hops[place].bytes + parcels_out_held(&outbox->outs[place]);
}

const struct outbox_counts *outbox_counts(const struct outbox *outbox)
{
    return &outbox->counts;
}
