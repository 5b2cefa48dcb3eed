/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The lowest `size` bytes of a number, the highest of them first. */
static void put(uint8_t *out, uint64_t value, size_t size)
{
    value = htobe64(value << 8 * (sizeof(value) - size));
    memcpy(out, &value, size);
}

static uint64_t get(const uint8_t *in, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, in, size);
    return be64toh(value) >> 8 * (sizeof(value) - size);
}

/* NULL: the type is unknown. */
static const char *name_of(uint8_t type)
{
    switch (type) {
#define FRAME_NAME(name, number) \
    case name: return #name + sizeof("FRAME_") - 1;
        FRAME_LIST(FRAME_NAME)
#undef FRAME_NAME
    default: return NULL;
    }
}

const char *frame_name(uint8_t type)
{
    const char *name = name_of(type);
    return name != NULL ? name : "unknown";
}

void frame_header_put(const struct frame_header *header, uint8_t out[FRAME_HEADER_SIZE])
{
    out[0] = header->version;
    out[1] = header->type;
    put(out + 2, header->number, 2);
    put(out + 4, header->length, 4);
    put(out + 8, header->node, 4);
    put(out + 12, header->epoch, 4);
}

int frame_header_get(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *header,
                     struct error *err)
{
    *header = (struct frame_header){.version = in[0],
                                    .type = in[1],
                                    .number = (uint16_t)get(in + 2, 2),
                                    .length = (uint32_t)get(in + 4, 4),
                                    .node = (uint32_t)get(in + 8, 4),
                                    .epoch = (uint32_t)get(in + 12, 4)};
    if (header->version != FRAME_VERSION)
        return error_set(err,
                         "the other side speaks protocol %d and this program %d; install the "
                         "same version of hvdrun on both",
                         header->version, FRAME_VERSION);
    if (name_of(header->type) == NULL)
        return error_set(err, "unknown frame type %d", header->type);
    if (header->length > FRAME_BODY_MAX)
        return error_set(err, "a %s frame of %u bytes is over the limit of %u",
                         frame_name(header->type), header->length, FRAME_BODY_MAX);
    return 0;
}

void frame_data_put(const struct frame_data *data, uint8_t out[FRAME_DATA_PREFIX])
{
    put(out, data->seat, 4);
    put(out + 4, (uint64_t)data->stream << 24, 4); /* and three zeros */
    put(out + 8, data->offset, 8);
    put(out + 16, data->when_ns, 8);
}

int frame_data_get(const uint8_t *body, uint32_t length, struct frame_data *data, struct error *err)
{
    if (length < FRAME_DATA_PREFIX)
        return error_set(err, "a data frame of %u bytes is too short", length);
    if (body[4] > 2)
        return error_set(err, "a data frame names stream %d", body[4]);
    *data = (struct frame_data){.seat = (uint32_t)get(body, 4),
                                .stream = body[4],
                                .offset = get(body + 8, 8),
                                .when_ns = get(body + 16, 8)};
    return 0;
}

/* The reader. */

#define IN_LIMIT ((size_t)FRAME_BODY_MAX + FRAME_HEADER_SIZE + FRAME_READ_MAX)
#define LARGE (16u << 10)                 /* bytes of a frame that are worth a read of their own */
#define WHOLE_BODY_MAX ((size_t)64 << 20) /* of a body that comes in parts */

void frame_reader_init(struct frame_reader *reader)
{
    *reader = (struct frame_reader){.in = BUF_INIT(IN_LIMIT),
                                    .parts = BUF_INIT(WHOLE_BODY_MAX),
                                    .pieces = BUF_INIT(WHOLE_BODY_MAX)};
}

void frame_reader_clear(struct frame_reader *reader)
{
    buf_destroy(&reader->in);
    buf_destroy(&reader->parts);
    buf_destroy(&reader->pieces);
}

/* How much is read at once. Of a large frame the rest and the header behind it, so that there is
 * next to nothing to move to the front for the read after that. */
static size_t read_size(const struct frame_reader *reader)
{
    struct frame_header header;
    if (reader->in.length < FRAME_HEADER_SIZE ||
        frame_header_get((const uint8_t *)buf_text(&reader->in), &header, NULL) < 0)
        return FRAME_READ_MAX;
    size_t rest = FRAME_HEADER_SIZE + header.length - reader->in.length;
    bool alone = rest >= LARGE && rest <= FRAME_READ_MAX - FRAME_HEADER_SIZE;
    return alone ? rest + FRAME_HEADER_SIZE : FRAME_READ_MAX;
}

void *frame_reader_reserve(struct frame_reader *reader, size_t *size)
{
    *size = read_size(reader);
    return buf_reserve(&reader->in, *size);
}

void frame_reader_commit(struct frame_reader *reader, size_t length)
{
    buf_commit(&reader->in, length);
}

/* -1: not the frame that comes next. */
static int header_take(const struct frame_reader *reader, struct frame_header *header,
                       struct error *err)
{
    if (frame_header_get((const uint8_t *)buf_text(&reader->in), header, err) < 0)
        return -1;
    if (header->number == reader->taken)
        return 0;
    return error_set(
        err, "the connection lost, repeated or reordered messages (%s has number %u instead of %u)",
        frame_name(header->type), header->number, reader->taken);
}

/* Forgets the frame that was handed out last. */
static void drop_last(struct frame_reader *reader)
{
    buf_consume(&reader->in, reader->used);
    reader->used = 0;
    if (reader->whole != NULL)
        buf_destroy(reader->whole);
    reader->whole = NULL;
}

static bool is_fragment(uint8_t type)
{
    return type == FRAME_PART || type == FRAME_PIECE || type == FRAME_PIECES_END;
}

/* A frame that ends pieces becomes the one that it names. */
static int take_name(struct frame_header *header, const uint8_t **body, struct error *err)
{
    if (header->length == 0 || name_of((*body)[0]) == NULL || is_fragment((*body)[0]))
        return error_set(err, "the other side sent pieces of an unknown message");
    header->type = (*body)[0];
    header->length--;
    (*body)++;
    return 0;
}

/* Adds the frame to the body that it is a fragment of. 1: the body is whole, and handed out. */
static int gather(struct frame_reader *reader, struct frame_header *header, const uint8_t **body,
                  struct error *err)
{
    bool piece = header->type == FRAME_PIECE || header->type == FRAME_PIECES_END;
    bool more = header->type == FRAME_PART || header->type == FRAME_PIECE;
    struct buf *all = piece ? &reader->pieces : &reader->parts;
    if (piece && reader->parts.length > 0)
        return error_set(err, "the other side sent a piece inside a message");
    if (header->type == FRAME_PIECES_END && take_name(header, body, err) < 0)
        return -1;
    if (buf_append(all, *body, header->length) < 0)
        return error_set(err, "the other side sent a message that is too large");
    if (more)
        return 0;
    header->length = (uint32_t)all->length;
    *body = (const uint8_t *)buf_text(all);
    reader->whole = all;
    return 1;
}

int frame_reader_next(struct frame_reader *reader, struct frame_header *header,
                      const uint8_t **body, struct error *err)
{
    drop_last(reader);
    while (reader->in.length >= FRAME_HEADER_SIZE) {
        if (header_take(reader, header, err) < 0)
            return -1;
        if (reader->in.length < FRAME_HEADER_SIZE + header->length)
            return 0;
        reader->taken++;
        reader->used = FRAME_HEADER_SIZE + header->length;
        *body = (const uint8_t *)buf_text(&reader->in) + FRAME_HEADER_SIZE;
        int whole = is_fragment(header->type) || reader->parts.length > 0
                        ? gather(reader, header, body, err)
                        : 1;
        if (whole != 0)
            return whole;
        drop_last(reader);
    }
    return 0;
}

bool frame_reader_is_clean(const struct frame_reader *reader)
{
    return reader->in.length == 0 && reader->parts.length == 0 && reader->pieces.length == 0;
}

#undef protobuf_c_message_unpack

/* One or two bytes can become the struct of an empty message, and a list may have any number of
 * these. The limit of memory for a body is GROWTH_FREE plus GROWTH_MAX times its length. */
#define GROWTH_MAX 4
#define GROWTH_FREE ((size_t)32 << 20)
#define BLOCK_COST 16 /* about what an allocator adds to each block */

static void *take(void *context, size_t size)
{
    size_t *room = context;
    if (size > *room || *room - size < BLOCK_COST)
        return NULL;
    *room -= size + BLOCK_COST;
    return mem_alloc(size);
}

static void give(void *context, void *block)
{
    (void)context;
    free(block);
}

/* Every caller gives NULL for `allocator`, here and to hvdrun__..._free_unpacked. There it means
 * free(). */
ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length, const uint8_t *bytes)
{
    size_t room = GROWTH_FREE + GROWTH_MAX * length;
    ProtobufCAllocator ours = {.alloc = take, .free = give, .allocator_data = &room};
    return protobuf_c_message_unpack(descriptor, allocator == NULL ? &ours : allocator, length,
                                     bytes);
}

ProtobufCBinaryData message_pack(const ProtobufCMessage *message)
{
    size_t length = message == NULL ? 0 : protobuf_c_message_get_packed_size(message);
    ProtobufCBinaryData packed = {length, mem_alloc(length + 1)};
    if (message != NULL)
        protobuf_c_message_pack(message, packed.data);
    return packed;
}

#define FIELD_HEAD_MAX 20 /* two varints */

/* The key and the length of a bytes field, as protobuf encodes them. The value follows. */
static size_t field_head(uint8_t out[FIELD_HEAD_MAX], unsigned field, size_t length)
{
    size_t at = 0;
    uint64_t numbers[] = {(uint64_t)field << 3 | 2 /* length-delimited */, length};
    for (size_t i = 0; i < 2; i++) {
        for (; numbers[i] >= 0x80; numbers[i] >>= 7)
            out[at++] = (uint8_t)(numbers[i] | 0x80);
        out[at++] = (uint8_t)numbers[i];
    }
    return at;
}

struct buf message_head(const ProtobufCMessage *message, unsigned field, size_t length)
{
    size_t packed = protobuf_c_message_get_packed_size(message);
    struct buf head = BUF_INIT(packed + FIELD_HEAD_MAX);
    uint8_t *place = buf_reserve(&head, packed + FIELD_HEAD_MAX);
    protobuf_c_message_pack(message, place);
    buf_commit(&head, packed);
    if (field != 0)
        buf_commit(&head, field_head(place + packed, field, length));
    return head;
}

ProtobufCMessage *message_read(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                               size_t length)
{
    return message_unpack(kind, NULL, length, bytes);
}

#define HEAD_NUMBER_MAX 5 /* bytes of a key or a length; protobuf-c refuses a longer one */
#define NUMBER_MAX 10

/* How many bytes the number has; 0: it is not one of at most `most` bytes. */
static size_t varint_get(const uint8_t *bytes, size_t length, size_t most, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < length && i < most; i++) {
        *out |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if ((bytes[i] & 0x80) == 0)
            return i + 1;
    }
    return 0;
}

/* How many bytes the field has, which begins here, and `head`, those before its value. 0: it cannot
 * be read, or is of a kind that is not in use. */
static size_t field_length(const uint8_t *bytes, size_t length, uint64_t *key, size_t *head)
{
    uint64_t value;
    size_t first = varint_get(bytes, length, HEAD_NUMBER_MAX, key);
    if (first == 0)
        return 0;
    size_t most = (*key & 7) == 0 ? NUMBER_MAX : HEAD_NUMBER_MAX;
    size_t second = varint_get(bytes + first, length - first, most, &value);
    *head = first + second;
    switch (*key & 7) {
    case 0: return second == 0 ? 0 : *head;
    case 2: return second == 0 || value > length - *head ? 0 : *head + (size_t)value;
    default: return 0;
    }
}

/* The value becomes that of the field. It may have been there twice. */
static ProtobufCBinaryData *lend(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                 const uint8_t *value, size_t length)
{
    ProtobufCBinaryData *place = (ProtobufCBinaryData *)(void *)((char *)message + field->offset);
    free(place->data);
    *place = (ProtobufCBinaryData){length, (uint8_t *)value};
    return place;
}

ProtobufCMessage *message_borrow(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                                 size_t length, unsigned field, ProtobufCBinaryData **borrowed)
{
    const ProtobufCFieldDescriptor *large = protobuf_c_message_descriptor_get_field(kind, field);
    size_t at = 0;
    *borrowed = NULL;
    while (large != NULL && at < length) {
        uint64_t key;
        size_t head, whole = field_length(bytes + at, length - at, &key, &head);
        if (whole == 0)
            break; /* whoever reads all says what is wrong */
        if (key == ((uint64_t)field << 3 | 2) && at + whole == length) {
            ProtobufCMessage *message = message_read(kind, bytes, at);
            if (message != NULL)
                *borrowed = lend(message, large, bytes + at + head, whole - head);
            return message;
        }
        at += whole;
    }
    return message_read(kind, bytes, length);
}

void message_free(ProtobufCMessage *message)
{
    if (message != NULL)
        protobuf_c_message_free_unpacked(message, NULL);
}
