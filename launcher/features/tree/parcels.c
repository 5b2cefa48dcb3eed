/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/parcels.h"

void parcels_out_init(struct parcels_out *out, int64_t patience, int64_t limit, size_t copies,
                      parcel_free *release)
{
    *out = (struct parcels_out){.last = &out->first,
                                .way = PARCEL_OWN_LINK,
                                .patience = patience,
                                .limit = limit,
                                .copies = copies,
                                .free = release};
}

void parcel_release(struct parcel *parcel, parcel_free *release)
{
    if (--parcel->holds == 0)
        release(parcel);
}

static void drop_first(struct parcels_out *out)
{
    struct parcel *first = out->first;
    out->first = first->next;
    if (out->first == NULL)
        out->last = &out->first;
    if (out->unsent == first)
        out->unsent = first->next;
    else
        out->flying -= first->bytes;
    out->bytes -= first->bytes;
    parcel_release(first, out->free);
}

void parcels_out_clear(struct parcels_out *out)
{
    while (out->first != NULL)
        drop_first(out);
}

void parcels_out_add(struct parcels_out *out, struct parcel *parcel)
{
    parcel->serial = ++out->added;
    parcel->next = NULL;
    parcel->holds++;
    out->bytes += parcel->bytes;
    if (out->unsent == NULL)
        out->unsent = parcel;
    *out->last = parcel;
    out->last = &parcel->next;
}

bool parcels_out_may_go(const struct parcels_out *out, int way)
{
    if (out->unsent == out->first)
        return true;
    return way == out->way &&
           (way == PARCEL_OWN_LINK || out->flying + out->unsent->bytes <= PARCEL_FLYING_MAX);
}

size_t parcels_out_held(const struct parcels_out *out)
{
    return out->bytes - out->flying;
}

/* `bytes`: its own, and of what was sent before it. */
static int64_t due(const struct parcels_out *out, size_t bytes, int64_t now)
{
    int64_t ticks = out->patience + (int64_t)(bytes * out->copies / PARCEL_BYTES_A_TICK);
    return now + (ticks < out->limit ? ticks : out->limit);
}

void parcels_out_goes(struct parcels_out *out, int way, int64_t now)
{
    struct parcel *parcel = out->unsent;
    out->way = way;
    out->unsent = parcel->next;
    out->flying += parcel->bytes;
    parcel->went = now;
    parcel->due = due(out, out->flying, now);
    if (out->reached < parcel->serial)
        out->reached = parcel->serial;
}

int parcels_out_confirm(struct parcels_out *out, uint64_t serial)
{
    if (serial > out->reached)
        return -1;
    while (out->first != NULL && out->first->serial <= serial)
        drop_first(out);
    return 0;
}

bool parcels_out_is_late(const struct parcels_out *out, int64_t now)
{
    const struct parcel *first = out->first;
    if (out->way == PARCEL_OWN_LINK)
        return parcels_out_held(out) > PARCEL_OWN_HELD_MAX;
    int64_t share = parcels_out_held(out) > PARCEL_HELD_MAX ? 4 : 1;
    return first != out->unsent && now >= first->went + (first->due - first->went) / share;
}

void parcels_out_wait(struct parcels_out *out, int64_t now)
{
    size_t bytes = 0;
    for (struct parcel *parcel = out->first; parcel != out->unsent; parcel = parcel->next) {
        bytes += parcel->bytes;
        parcel->went = now;
        parcel->due = due(out, bytes, now);
    }
}

int parcels_out_return(struct parcels_out *out)
{
    int count = 0;
    if (out->way == PARCEL_OWN_LINK)
        return 0;
    for (struct parcel *parcel = out->first; parcel != out->unsent; parcel = parcel->next)
        count++;
    for (struct parcel *parcel = out->first; parcel != NULL; parcel = parcel->next)
        parcel->own_link = true;
    out->unsent = out->first;
    out->flying = 0;
    out->way = PARCEL_OWN_LINK;
    return count;
}

enum parcel_turn parcel_turn(uint64_t *taken, uint64_t serial)
{
    if (serial <= *taken)
        return PARCEL_KNOWN;
    if (serial > *taken + 1)
        return PARCEL_EARLY;
    *taken = serial;
    return PARCEL_NEXT;
}
