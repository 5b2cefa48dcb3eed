/* SPDX-License-Identifier: Apache-2.0 */
#include "features/tree/parcels.h"

void parcels_out_init(struct parcels_out *out, int64_t patience, size_t copies,
                      parcel_free *release)
{
    *out = (struct parcels_out){
        .last = &out->first, .patience = patience, .copies = copies, .free = release};
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

/* `bytes`: its own, and of what is kept before it. */
static int64_t due(const struct parcels_out *out, size_t bytes, int64_t now)
{
    return now + out->patience + (int64_t)(bytes * out->copies / PARCEL_BYTES_A_TICK);
}

void parcels_out_wait(struct parcels_out *out, int64_t now)
{
    size_t bytes = 0;
    for (struct parcel *parcel = out->first; parcel != NULL; parcel = parcel->next) {
        bytes += parcel->bytes;
        parcel->due = due(out, bytes, now);
    }
}

void parcels_out_add(struct parcels_out *out, struct parcel *parcel, int64_t now)
{
    out->bytes += parcel->bytes;
    parcel->serial = ++out->sent;
    parcel->due = due(out, out->bytes, now);
    parcel->direct = false;
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
    return out->first != NULL && !out->first->direct && now >= out->first->due;
}

bool parcels_out_is_full(const struct parcels_out *out, size_t bytes)
{
    return out->first != NULL && (out->sent + 1 - out->first->serial > PARCEL_WINDOW ||
                                  out->bytes + bytes > PARCEL_AHEAD_BYTES);
}

struct parcel *parcels_out_again(struct parcels_out *out)
{
    struct parcel *parcel = out->first;
    while (parcel != NULL && parcel->direct)
        parcel = parcel->next;
    if (parcel != NULL)
        parcel->direct = true;
    return parcel;
}

void parcels_out_went_direct(struct parcels_out *out, uint64_t serial)
{
    for (struct parcel *parcel = out->first; parcel != NULL; parcel = parcel->next)
        parcel->direct |= parcel->serial == serial;
}

enum parcel_turn parcels_in_take(struct parcels_in *in, uint64_t serial)
{
    if (serial <= in->taken)
        return PARCEL_KNOWN;
    uint64_t distance = serial - in->taken - 1;
    if (distance > PARCEL_WINDOW)
        return PARCEL_KNOWN;
    if (distance > 0) {
        uint64_t bit = (uint64_t)1 << (distance - 1);
        bool fresh = (in->ahead & bit) == 0;
        in->ahead |= bit;
        return fresh ? PARCEL_AHEAD : PARCEL_KNOWN;
    }
    bool more = true;
    while (more) {
        more = (in->ahead & 1) != 0;
        in->ahead >>= 1;
        in->taken++;
    }
    return PARCEL_NEXT;
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
