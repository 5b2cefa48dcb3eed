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

_Static_assert(HEADER + 4 + 12 + 2 + LINE_OPERATION_MAX + 2 + LINE_NAME_MAX +
                       2 * (3 + 8 * LINE_RANGES_MAX) <=
                   LINE_PACKET_MAX,
               "WAITS fits");
_Static_assert(HEADER + 6 + 6 * LINE_ENDED_MAX <= LINE_PACKET_MAX, "ENDED fits");

/* Writes a packet, or reads one: both have the same fields. All that is written fits, so only a
 * reader checks. After the first fault it reads zeros, or what nobody will see. */
struct codec {
    uint8_t *out;      /* where the next byte goes; NULL: it reads */
    const uint8_t *in; /* the next byte */
    size_t left;
    const char *fault; /* NULL: none */
};

static bool check(struct codec *codec, bool right, const char *fault)
{
    if (!right && codec->out == NULL && codec->fault == NULL)
        codec->fault = fault;
    return right;
}

static bool has_left(struct codec *codec, size_t bytes)
{
    if (check(codec, bytes <= codec->left, "it is too short"))
        return true;
    codec->left = 0;
    return false;
}

/* Returns the value, which a reader finds. */
static uint64_t pass(struct codec *codec, uint64_t value, size_t bytes)
{
    if (codec->out != NULL) {
        for (size_t i = bytes; i > 0; i--)
            *codec->out++ = (uint8_t)(value >> (8 * (i - 1)));
        return value;
    }
    if (!has_left(codec, bytes))
        return 0;
    value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | codec->in[i];
    codec->in += bytes;
    codec->left -= bytes;
    return value;
}

static void pass_word(struct codec *codec, uint32_t *word)
{
    *word = (uint32_t)pass(codec, *word, 4);
}

static void pass_byte(struct codec *codec, uint8_t *byte)
{
    *byte = (uint8_t)pass(codec, *byte, 1);
}

static void pass_count(struct codec *codec, uint16_t *count, uint16_t max)
{
    *count = (uint16_t)pass(codec, *count, 2);
    if (!check(codec, *count <= max, "a list of ranks is too long"))
        *count = 0;
}

/* What other programs show must not control a terminal. UTF-8 passes. */
static void pass_text(struct codec *codec, char *text, size_t max)
{
    size_t length = pass(codec, codec->out != NULL ? strnlen(text, max) : 0, 2);
    if (codec->out != NULL) {
        memcpy(codec->out, text, length);
        codec->out += length;
        return;
    }
    text[0] = '\0';
    if (!check(codec, length <= max, "a name is too long") || !has_left(codec, length))
        return;
    for (size_t i = 0; i < length; i++)
        check(codec, codec->in[i] >= 0x20 && codec->in[i] != 0x7f,
              "a name has a control character");
    memcpy(text, codec->in, length);
    text[length] = '\0';
    codec->in += length;
    codec->left -= length;
}

static void pass_ranks(struct codec *codec, struct line_ranks *ranks)
{
    pass_count(codec, &ranks->count, LINE_RANGES_MAX);
    ranks->more = pass(codec, codec->out != NULL && ranks->more, 1) != 0;
    for (size_t i = 0; i < ranks->count; i++) {
        struct line_range *range = &ranks->ranges[i];
        pass_word(codec, &range->first);
        pass_word(codec, &range->last);
        check(codec, range->last >= range->first && (i == 0 || range->first > range[-1].last),
              "a list of ranks is not in ascending order");
    }
}

static void pass_ended(struct codec *codec, struct line_packet *packet)
{
    pass_word(codec, &packet->epoch);
    pass_count(codec, &packet->ended_count, LINE_ENDED_MAX);
    for (size_t i = 0; i < packet->ended_count; i++) {
        pass_word(codec, &packet->ended[i].rank);
        pass_byte(codec, &packet->ended[i].how);
        pass_byte(codec, &packet->ended[i].code);
    }
}

static void pass_stalled(struct codec *codec, struct line_packet *packet)
{
    pass_word(codec, &packet->set);
    pass_word(codec, &packet->seconds);
    pass_word(codec, &packet->others);
    pass_text(codec, packet->operation, LINE_OPERATION_MAX);
    pass_text(codec, packet->name, LINE_NAME_MAX);
    pass_ranks(codec, &packet->waiting);
    pass_ranks(codec, &packet->missing);
}

static void pass_body(struct codec *codec, struct line_packet *packet)
{
    switch (packet->type) {
    case LINE_EPOCH: pass_word(codec, &packet->epoch); break;
    case LINE_ENDED: pass_ended(codec, packet); break;
    case LINE_HOSTS:
    case LINE_ASK: break;
    case LINE_ASK_WAITS: pass_word(codec, &packet->round); break;
    case LINE_WAITS: pass_word(codec, &packet->round); /* fallthrough */
    case LINE_STALLED: pass_stalled(codec, packet); break;
    case LINE_GOES_ON: pass_word(codec, &packet->set); break;
    case LINE_PROGRESS: packet->operations = pass(codec, packet->operations, 8); break;
    case LINE_UNKNOWN: break;
    }
}

size_t line_packet_put(const struct line_packet *packet, uint8_t out[LINE_PACKET_MAX])
{
    struct line_packet copy = *packet;
    struct codec codec = {.out = out};
    pass(&codec, LINE_VERSION, 1);
    pass(&codec, packet->type, 1);
    pass(&codec, 0, 2);
    pass_body(&codec, &copy);
    return (size_t)(codec.out - out);
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
    struct codec codec = {.in = bytes, .left = length};
    check(&codec, length <= LINE_PACKET_MAX, "it is too long");
    check(&codec, pass(&codec, 0, 1) >= LINE_VERSION, "it has no version");
    packet->type = known_type(pass(&codec, 0, 1));
    pass(&codec, 0, 2);
    pass_body(&codec, packet);
    return codec.fault == NULL ? 0 : error_set(err, "%s", codec.fault);
}
