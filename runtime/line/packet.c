/* SPDX-License-Identifier: Apache-2.0 */
#include "line/packet.h"

#include <string.h>

#define HEADER 4

void line_ranks_add(struct line_ranks *ranks, uint32_t rank)
{
    struct line_range *last = ranks->count > 0 ? &ranks->ranges[ranks->count - 1] : NULL;
    if (last != NULL && last->last + 1 == rank && !ranks->more)
        last->last = rank;
    else if (ranks->count < LINE_RANGES_MAX)
        ranks->ranges[ranks->count++] = (struct line_range){rank, rank};
    else
        ranks->more = true;
}

/* Writing. All bodies together fit into LINE_PACKET_MAX, so nothing here checks for room. */

struct writer {
    uint8_t *bytes;
    size_t length;
};

_Static_assert(HEADER + 4 + 12 + 2 + LINE_OPERATION_MAX + 2 + LINE_NAME_MAX +
                       2 * (3 + 8 * LINE_RANGES_MAX) <=
                   LINE_PACKET_MAX,
               "WAITS fits");
_Static_assert(HEADER + 6 + 6 * LINE_ENDED_MAX <= LINE_PACKET_MAX, "ENDED fits");

static void put(struct writer *writer, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        writer->bytes[writer->length++] = (uint8_t)(value >> (8 * i));
}

static void put_text(struct writer *writer, const char *text, size_t max)
{
    size_t length = strnlen(text, max);
    put(writer, length, 2);
    memcpy(writer->bytes + writer->length, text, length);
    writer->length += length;
}

static void put_ranks(struct writer *writer, const struct line_ranks *ranks)
{
    put(writer, ranks->count, 2);
    put(writer, ranks->more, 1);
    for (size_t i = 0; i < ranks->count; i++) {
        put(writer, ranks->ranges[i].first, 4);
        put(writer, ranks->ranges[i].last, 4);
    }
}

static void put_ended(struct writer *writer, const struct line_packet *packet)
{
    put(writer, packet->epoch, 4);
    put(writer, packet->ended_count, 2);
    for (size_t i = 0; i < packet->ended_count; i++) {
        put(writer, packet->ended[i].rank, 4);
        put(writer, packet->ended[i].how, 1);
        put(writer, packet->ended[i].code, 1);
    }
}

static void put_stalled(struct writer *writer, const struct line_packet *packet)
{
    put(writer, packet->set, 4);
    put(writer, packet->seconds, 4);
    put(writer, packet->others, 4);
    put_text(writer, packet->operation, LINE_OPERATION_MAX);
    put_text(writer, packet->name, LINE_NAME_MAX);
    put_ranks(writer, &packet->waiting);
    put_ranks(writer, &packet->missing);
}

size_t line_packet_put(const struct line_packet *packet, uint8_t out[LINE_PACKET_MAX])
{
    struct writer writer = {out, 0};
    put(&writer, LINE_VERSION, 1);
    put(&writer, packet->type, 1);
    put(&writer, 0, 2);
    switch (packet->type) {
    case LINE_EPOCH: put(&writer, packet->epoch, 4); break;
    case LINE_ENDED: put_ended(&writer, packet); break;
    case LINE_HOSTS:
    case LINE_ASK: break;
    case LINE_ASK_WAITS: put(&writer, packet->round, 4); break;
    case LINE_STALLED: put_stalled(&writer, packet); break;
    case LINE_WAITS:
        put(&writer, packet->round, 4);
        put_stalled(&writer, packet);
        break;
    case LINE_GOES_ON: put(&writer, packet->set, 4); break;
    case LINE_PROGRESS: put(&writer, packet->operations, 8); break;
    case LINE_UNKNOWN: break;
    }
    return writer.length;
}

/* Reading */

struct reader {
    const uint8_t *bytes;
    size_t left;
    bool short_of; /* more was wanted than there was */
};

static uint64_t get(struct reader *reader, size_t bytes)
{
    uint64_t value = 0;
    if (reader->left < bytes) {
        reader->short_of = true;
        reader->left = 0;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | reader->bytes[i];
    reader->bytes += bytes;
    reader->left -= bytes;
    return value;
}

/* What other programs show must not control a terminal. UTF-8 passes. */
static int get_text(struct reader *reader, char *out, size_t max, struct error *err)
{
    size_t length = get(reader, 2);
    if (length > max)
        return error_set(err, "a name has %zu bytes, and may have %zu", length, max);
    if (length > reader->left) {
        reader->short_of = true;
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        if (reader->bytes[i] < 0x20 || reader->bytes[i] == 0x7f)
            return error_set(err, "a name has a control character");
    }
    memcpy(out, reader->bytes, length);
    out[length] = '\0';
    reader->bytes += length;
    reader->left -= length;
    return 0;
}

static int get_ranks(struct reader *reader, struct line_ranks *ranks, struct error *err)
{
    uint64_t count = get(reader, 2);
    if (count > LINE_RANGES_MAX)
        return error_set(err, "a list of ranks is too long");
    ranks->count = (uint16_t)count;
    ranks->more = get(reader, 1) != 0;
    for (size_t i = 0; i < count; i++) {
        struct line_range *range = &ranks->ranges[i];
        range->first = (uint32_t)get(reader, 4);
        range->last = (uint32_t)get(reader, 4);
        if (reader->short_of)
            return 0;
        if (range->last < range->first || (i > 0 && range->first <= range[-1].last))
            return error_set(err, "a list of ranks is not in ascending order");
    }
    return 0;
}

static int get_ended(struct reader *reader, struct line_packet *packet, struct error *err)
{
    packet->epoch = (uint32_t)get(reader, 4);
    uint64_t count = get(reader, 2);
    if (count > LINE_ENDED_MAX)
        return error_set(err, "a list of ranks is too long");
    packet->ended_count = (uint16_t)count;
    for (size_t i = 0; i < count; i++) {
        packet->ended[i].rank = (uint32_t)get(reader, 4);
        packet->ended[i].how = (uint8_t)get(reader, 1);
        packet->ended[i].code = (uint8_t)get(reader, 1);
    }
    return 0;
}

static int get_stalled(struct reader *reader, struct line_packet *packet, struct error *err)
{
    packet->set = (uint32_t)get(reader, 4);
    packet->seconds = (uint32_t)get(reader, 4);
    packet->others = (uint32_t)get(reader, 4);
    if (get_text(reader, packet->operation, LINE_OPERATION_MAX, err) < 0 ||
        get_text(reader, packet->name, LINE_NAME_MAX, err) < 0)
        return -1;
    if (get_ranks(reader, &packet->waiting, err) < 0)
        return -1;
    return get_ranks(reader, &packet->missing, err);
}

static int get_body(struct reader *reader, struct line_packet *packet, struct error *err)
{
    switch (packet->type) {
    case LINE_EPOCH: packet->epoch = (uint32_t)get(reader, 4); return 0;
    case LINE_ENDED: return get_ended(reader, packet, err);
    case LINE_HOSTS:
    case LINE_ASK: return 0;
    case LINE_ASK_WAITS: packet->round = (uint32_t)get(reader, 4); return 0;
    case LINE_STALLED: return get_stalled(reader, packet, err);
    case LINE_WAITS:
        packet->round = (uint32_t)get(reader, 4);
        return get_stalled(reader, packet, err);
    case LINE_GOES_ON: packet->set = (uint32_t)get(reader, 4); return 0;
    case LINE_PROGRESS: packet->operations = get(reader, 8); return 0;
    case LINE_UNKNOWN: break;
    }
    return 0;
}

static enum line_type known_type(uint64_t number)
{
    switch (number) {
#define LINE_TYPE_KNOWN(name, value) \
    case value: return name;
        LINE_TYPE_LIST(LINE_TYPE_KNOWN)
#undef LINE_TYPE_KNOWN
    default: return LINE_UNKNOWN;
    }
}

int line_packet_get(const uint8_t *bytes, size_t length, struct line_packet *packet,
                    struct error *err)
{
    struct reader reader = {bytes, length, false};
    uint64_t version = get(&reader, 1);
    packet->type = known_type(get(&reader, 1));
    get(&reader, 2);
    if (length > LINE_PACKET_MAX)
        return error_set(err, "it has more than %d bytes", LINE_PACKET_MAX);
    if (version < LINE_VERSION)
        return error_set(err, "it has no version");
    if (get_body(&reader, packet, err) < 0)
        return -1;
    return reader.short_of ? error_set(err, "it is too short") : 0;
}
