/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/parcels.h"

void parcels_out_init(struct parcels_out *out, int64_t patience, parcel_free *release)
{
    *out = (struct parcels_out){.last = &out->first, .patience = patience, .free = release};
}

static void drop_first(struct parcels_out *out)
{
    struct parcel *first = out->first;
    out->first = first->next;
    if (out->first == NULL)
        out->last = &out->first;
    out->bytes -= first->bytes;
    out->free(first);
}

void parcels_out_clear(struct parcels_out *out)
{
    while (out->first != NULL)
        drop_first(out);
}

static int64_t due(const struct parcels_out *out, int64_t now)
{
    return now + out->patience + (int64_t)(out->bytes / PARCEL_BYTES_A_TICK);
}

void parcels_out_add(struct parcels_out *out, struct parcel *parcel, int64_t now)
{
    out->bytes += parcel->bytes;
    parcel->serial = ++out->sent;
    parcel->due = due(out, now);
    parcel->next = NULL;
    *out->last = parcel;
    out->last = &parcel->next;
}

int parcels_out_confirm(struct parcels_out *out, uint64_t serial)
{
    if (serial > out->sent)
        return -1;
    while (out->first != NULL && out->first->serial <= serial)
        drop_first(out);
    return 0;
}

bool parcels_out_is_late(const struct parcels_out *out, int64_t now)
{
    return out->first != NULL && out->first->serial > out->direct && now >= out->first->due;
}

struct parcel *parcels_out_again(struct parcels_out *out, int64_t now)
{
    struct parcel *first = NULL;
    for (struct parcel *parcel = out->first; parcel != NULL; parcel = parcel->next) {
        parcel->due = due(out, now);
        if (first == NULL && parcel->serial > out->direct)
            first = parcel;
    }
    return first;
}

void parcels_out_went_direct(struct parcels_out *out, uint64_t serial)
{
    if (serial > out->direct)
        out->direct = serial;
}

void parcels_in_init(struct parcels_in *in, parcel_free *release)
{
    *in = (struct parcels_in){.free = release};
}

void parcels_in_clear(struct parcels_in *in)
{
    while (in->held != NULL) {
        struct parcel *first = in->held;
        in->held = first->next;
        in->free(first);
    }
    in->held_bytes = 0;
}

enum parcel_when parcels_in_see(struct parcels_in *in, uint64_t serial)
{
    if (serial <= in->taken)
        return PARCEL_OLD;
    if (serial > in->taken + 1)
        return PARCEL_EARLY;
    in->taken = serial;
    return PARCEL_NEXT;
}

void parcels_in_hold(struct parcels_in *in, struct parcel *parcel)
{
    struct parcel **at = &in->held;
    while (*at != NULL && (*at)->serial < parcel->serial)
        at = &(*at)->next;
    bool known = *at != NULL && (*at)->serial == parcel->serial;
    if (known || parcel->bytes > PARCEL_HELD_MAX - in->held_bytes) {
        in->free(parcel);
        return;
    }
    parcel->next = *at;
    *at = parcel;
    in->held_bytes += parcel->bytes;
}

/* One that came again meanwhile, and was taken, is of no use any more. */
struct parcel *parcels_in_next(struct parcels_in *in)
{
    while (in->held != NULL && in->held->serial <= in->taken + 1) {
        struct parcel *first = in->held;
        in->held = first->next;
        in->held_bytes -= first->bytes;
        if (first->serial == in->taken + 1) {
            in->taken++;
            return first;
        }
        in->free(first);
    }
    return NULL;
}

bool parcels_in_owes(const struct parcels_in *in)
{
    return in->told < in->taken;
}

uint64_t parcels_in_tell(struct parcels_in *in)
{
    in->told = in->taken;
    return in->taken;
}
