/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include "wire/topic.h"

#define CHANGES_MAX 4
#define PACKED_MAX ((size_t)64 << 10)

static void *keep(struct frames *frames, void *memory)
{
    frames->kept = mem_resize_array(frames->kept, frames->kept_count + 1, sizeof(*frames->kept));
    frames->kept[frames->kept_count++] = memory;
    return memory;
}

void frames_clear(struct frames *frames)
{
    for (size_t i = 0; i < frames->kept_count; i++)
        free(frames->kept[i]);
    free(frames->kept);
    frames->kept = NULL;
    frames->kept_count = 0;
}

/* Addresses are ones at which nobody listens. */
static char *tame_text(struct frames *frames)
{
    static const char *const texts[] = {"",
                                        "0",
                                        "1",
                                        "a",
                                        "b",
                                        "node1",
                                        "NAME=text",
                                        "HOME=/tmp",
                                        "PATH=/x",
                                        "=",
                                        "pmi1",
                                        "none",
                                        "auto",
                                        "pmix",
                                        "/bin/true",
                                        "/nonexistent",
                                        "0-3,8",
                                        "1:0",
                                        "lo",
                                        "127.99.99.99",
                                        "::ffff:1",
                                        "lo,!eth0",
                                        "global",
                                        "rank_0",
                                        "\x1b[31mred",
                                        "two\nlines",
                                        "%s%n",
                                        "kvs_1"};
    uint8_t choice = fuzz_u8(frames->bytes);
    if (choice < 8) {
        char *text = keep(frames, mem_alloc(5000));
        memset(text, 'x', 4999);
        return text;
    }
    return keep(frames, mem_strdup(texts[choice % (sizeof(texts) / sizeof(texts[0]))]));
}

static char *any_text(struct frames *frames)
{
    uint8_t choice = fuzz_u8(frames->bytes);
    if (frames->tame || choice >= 64)
        return tame_text(frames);
    size_t length = choice < frames->bytes->left ? choice : frames->bytes->left;
    char *text = keep(frames, fuzz_text(frames->bytes->at, length));
    frames->bytes->at += length;
    frames->bytes->left -= length;
    return text;
}

static size_t value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return sizeof(uint32_t); /* all others that control.proto has */
    }
}

static ProtobufCMessage *new_message(struct frames *frames,
                                     const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = keep(frames, mem_alloc(descriptor->sizeof_message));
    protobuf_c_message_init(descriptor, message);
    return message;
}

static void change_value(struct frames *frames, const ProtobufCFieldDescriptor *field, void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64: *(uint64_t *)value = fuzz_u64(frames->bytes); break;
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)value = fuzz_u8(frames->bytes) & 1; break;
    case PROTOBUF_C_TYPE_STRING: *(char **)value = any_text(frames); break;
    case PROTOBUF_C_TYPE_BYTES: {
        char *text = any_text(frames);
        *(ProtobufCBinaryData *)value = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        ProtobufCMessage *message = new_message(frames, field->descriptor);
        frames_change(frames, message);
        *(ProtobufCMessage **)value = message;
        break;
    }
    default: *(uint32_t *)value = fuzz_u32(frames->bytes); break;
    }
}

/* The old elements stay as far as the new count reaches; one may change. */
static void change_list(struct frames *frames, const ProtobufCFieldDescriptor *field,
                        ProtobufCMessage *message)
{
    static const size_t counts[] = {0, 1, 1, 2, 2, 3, 4, 5, 8, 40};
    size_t *count = (size_t *)((char *)message + field->quantifier_offset);
    char **items = (char **)((char *)message + field->offset);
    size_t size = value_size(field->type);
    uint8_t choice = fuzz_u8(frames->bytes);
    if (choice < 128 && *count > 0) {
        void *one = *items + choice % *count * size;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            frames_change(frames, *(ProtobufCMessage **)one);
        else
            change_value(frames, field, one);
        return;
    }
    size_t wanted = counts[choice % (sizeof(counts) / sizeof(counts[0]))];
    char *list = keep(frames, mem_array(wanted + 1, size));
    size_t old = *count < wanted ? *count : wanted;
    if (old > 0)
        memcpy(list, *items, old * size);
    for (size_t i = old; i < wanted; i++)
        change_value(frames, field, list + i * size);
    *items = list;
    *count = wanted;
}

void frames_change(struct frames *frames, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (int i = fuzz_u8(frames->bytes) % CHANGES_MAX; i > 0 && descriptor->n_fields > 0; i--) {
        const ProtobufCFieldDescriptor *field =
            &descriptor->fields[fuzz_u8(frames->bytes) % descriptor->n_fields];
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            change_list(frames, field, message);
        else
            change_value(frames, field, (char *)message + field->offset);
    }
}

void frames_put(struct frames *frames, enum frame_type type, uint32_t epoch, const void *body,
                size_t length)
{
    struct frame_header header = {.version = FRAME_VERSION,
                                  .type = (uint8_t)type,
                                  .length = (uint32_t)length,
                                  .node = frames->node,
                                  .epoch = epoch};
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_put(&header, bytes);
    if (frames->out->length + sizeof(bytes) + length > FRAMES_MAX)
        return;
    buf_append(frames->out, bytes, sizeof(bytes));
    buf_append(frames->out, body, length);
}

void frames_put_message(struct frames *frames, enum frame_type type, uint32_t epoch,
                        const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    if (length > PACKED_MAX)
        return;
    uint8_t *packed AUTO_FREE = mem_alloc(length + 1);
    protobuf_c_message_pack(message, packed);
    frames_put(frames, type, epoch, packed, length);
}

uint16_t frames_number(struct buf *bytes, uint16_t first)
{
    uint8_t *at = (uint8_t *)buf_text(bytes), *end = at + bytes->length;
    struct frame_header header;
    while (end - at >= FRAME_HEADER_SIZE && frame_header_get(at, &header, NULL) == 0) {
        header.number = first++;
        frame_header_put(&header, at);
        if ((size_t)(end - at) - FRAME_HEADER_SIZE < header.length)
            break;
        at += FRAME_HEADER_SIZE + header.length;
    }
    return first;
}

static void put_data(struct frames *frames, enum frame_type type, uint32_t epoch)
{
    uint8_t body[FRAME_DATA_PREFIX + 64] = {0};
    struct frame_data data = {.seat = frames->rank, .stream = 1};
    uint8_t choice = fuzz_u8(frames->bytes);
    if (choice % 4 == 0)
        data.seat = fuzz_u32(frames->bytes);
    data.stream = choice % 8 == 1 ? fuzz_u8(frames->bytes) : (uint8_t)(1 + choice % 2);
    data.when_ns = fuzz_u64(frames->bytes);
    frame_data_put(&data, body);
    size_t length = fuzz_u8(frames->bytes) % 64;
    if (length > frames->bytes->left)
        length = frames->bytes->left;
    if (length > 0)
        memcpy(body + FRAME_DATA_PREFIX, frames->bytes->at, length);
    frames->bytes->at += length;
    frames->bytes->left -= length;
    size_t cut = choice >= 250 ? choice % FRAME_DATA_PREFIX : FRAME_DATA_PREFIX + length;
    frames_put(frames, type, epoch, body, cut);
}

/* Fields that name a worker name one that is there; lists of them hold this one. */
static void make_sense(struct frames *frames, ProtobufCMessage *message)
{
    static const char *const names[] = {"rank", "seat", "ranks", "pids", "when_ns"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(message->descriptor, names[i]);
        if (field == NULL || field->type == PROTOBUF_C_TYPE_MESSAGE)
            continue;
        void *value = (char *)message + field->offset;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            uint32_t *list = keep(frames, mem_array(2, sizeof(uint64_t)));
            list[0] = frames->rank;
            *(void **)value = list;
            *(size_t *)((char *)message + field->quantifier_offset) = 1;
        } else if (value_size(field->type) == sizeof(uint32_t)) {
            *(uint32_t *)value = frames->rank;
        }
    }
}

/* The numbers are small ones: some questions are under way. */
static void put_answer(struct frames *frames, uint32_t epoch, const ProtobufCMessage *answer)
{
    Hvdrun__Answer message = HVDRUN__ANSWER__INIT;
    uint8_t choice = fuzz_u8(frames->bytes);
    message.question = choice % 8;
    message.more = choice >= 192;
    message.answer = message_pack(answer);
    frames_put_message(frames, FRAME_ANSWER, epoch, &message.base);
    free(message.answer.data);
}

static void put_ask(struct frames *frames, uint32_t epoch, const ProtobufCMessage *request)
{
    static const struct topic *const topics[] = {&topic_states, &topic_usage, &topic_pulse,
                                                 &topic_evidence};
    Hvdrun__Ask message = HVDRUN__ASK__INIT;
    message.question = fuzz_u8(frames->bytes);
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        if (topics[i]->request == request->descriptor)
            message.topic = topics[i]->number;
    }
    message.request = message_pack(request);
    frames_put_message(frames, FRAME_ASK, epoch, &message.base);
    free(message.request.data);
}

void frames_put_any(struct frames *frames, const struct frames_kind *kind)
{
    uint8_t choice = fuzz_u8(frames->bytes);
    uint32_t epoch = choice < 200 ? 1 : choice < 220 ? 2 : fuzz_u32(frames->bytes);
    if (kind->type == FRAME_OUTPUT || kind->type == FRAME_OUTPUT_SHOW ||
        kind->type == FRAME_STDIN) {
        put_data(frames, kind->type, epoch);
    } else if (kind->message == NULL || choice % 16 == 5) {
        size_t length = fuzz_u8(frames->bytes) % 32;
        if (length > frames->bytes->left || frames->tame)
            length = 0;
        frames_put(frames, kind->type, epoch, length > 0 ? frames->bytes->at : NULL, length);
        frames->bytes->at += length;
        frames->bytes->left -= length;
    } else {
        ProtobufCMessage *message = new_message(frames, kind->message);
        make_sense(frames, message);
        frames_change(frames, message);
        if (kind->type == FRAME_ANSWER)
            put_answer(frames, epoch, message);
        else if (kind->type == FRAME_ASK)
            put_ask(frames, epoch, message);
        else
            frames_put_message(frames, kind->type, epoch, message);
    }
}
