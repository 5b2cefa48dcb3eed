/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_query.h"

#include <string.h>

static const struct {
    int numbers[TORCH_C + 1]; /* by dialect */
    const char *fields;
} queries[TORCH_QUERIES] = {
#define TORCH_QUERY_ROW(name, c, b, a, text) [TORCH_##name] = {{-1, a, b, c}, text},
    TORCH_QUERY_LIST(TORCH_QUERY_ROW)
#undef TORCH_QUERY_ROW
};

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static enum torch_progress rubbish(struct torch_reader *reader, const char *text)
{
    reader->why = text;
    return TORCH_RUBBISH;
}

/* VALIDATE is five bytes. To A and B, these would be a SET with a key of a gigabyte or more. */
static enum torch_progress find_dialect(struct torch_reader *reader, const uint8_t *bytes,
                                        size_t length)
{
    const uint32_t magic = TORCH_MAGIC;
    uint8_t begin[5] = {0};
    memcpy(begin + 1, &magic, sizeof(magic));
    size_t known = length < sizeof(begin) ? length : sizeof(begin);
    bool same = memcmp(bytes, begin, known) == 0;
    if (same && known < sizeof(begin))
        return TORCH_MORE;
    reader->dialect = same ? TORCH_C : TORCH_A;
    return TORCH_WHOLE;
}

static enum torch_progress find_query(struct torch_reader *reader, uint8_t number,
                                      bool two_connections)
{
    enum torch_dialect dialect = reader->dialect;
    if (dialect == TORCH_A && !two_connections)
        dialect = TORCH_B;
    for (int i = 0; i < TORCH_QUERIES; i++) {
        if (queries[i].numbers[dialect] != number)
            continue;
        reader->query = (enum torch_query)i;
        reader->field = queries[i].fields;
        reader->at = 1;
        return TORCH_WHOLE;
    }
    return rubbish(reader, "it sent a query that torch's store does not have");
}

/* A list begins, with `count` items. */
static enum torch_progress begin_list(struct torch_reader *reader, uint64_t count)
{
    if (count > TORCH_KEYS_MAX)
        return rubbish(reader, "it sent a query with more than 131072 keys");
    reader->items = count;
    reader->item = ++reader->field;
    if (count == 0)
        reader->field += strlen(reader->field);
    return TORCH_WHOLE;
}

/* The next field, which begins behind `reader->at`. WHOLE: it is complete. */
static enum torch_progress take_field(struct torch_reader *reader, const uint8_t *bytes,
                                      size_t length)
{
    size_t fixed = *reader->field == 'u' ? sizeof(uint32_t) : sizeof(uint64_t);
    size_t left = length - reader->at;
    if (left < fixed)
        return TORCH_MORE;
    uint64_t number = fixed == sizeof(uint64_t) ? read_u64(bytes + reader->at) : 0;
    if (*reader->field == 'n') {
        reader->at += fixed;
        return begin_list(reader, number);
    }
    size_t follows = 0;
    if (*reader->field == 'k' || *reader->field == 'v') {
        if (*reader->field == 'k' && number > TORCH_KEY_MAX)
            return rubbish(reader, "it sent a key longer than 8 KiB");
        if (number > TORCH_VALUE_MAX)
            return rubbish(reader, "it sent a value longer than 128 MiB");
        follows = (size_t)number;
    }
    if (left - fixed < follows)
        return TORCH_MORE;
    reader->at += fixed + follows;
    reader->field++;
    return TORCH_WHOLE;
}

enum torch_progress torch_reader_advance(struct torch_reader *reader, const uint8_t *bytes,
                                         size_t length, bool two_connections)
{
    if (length == 0)
        return TORCH_MORE;
    enum torch_progress progress = TORCH_WHOLE;
    bool first = reader->dialect == TORCH_UNKNOWN;
    if (first)
        progress = find_dialect(reader, bytes, length);
    if (progress == TORCH_WHOLE && reader->field == NULL) {
        progress = find_query(reader, bytes[0], two_connections);
        if (progress == TORCH_WHOLE && reader->query == TORCH_VALIDATE && !first)
            return rubbish(reader, "it sent VALIDATE twice");
    }
    while (progress == TORCH_WHOLE) {
        if (*reader->field == '\0' && reader->item != NULL && reader->items > 1) {
            reader->items--;
            reader->field = reader->item;
        }
        if (*reader->field == '\0')
            return TORCH_WHOLE;
        progress = take_field(reader, bytes, length);
    }
    return progress;
}

void torch_reader_next(struct torch_reader *reader)
{
    *reader = (struct torch_reader){.dialect = reader->dialect};
}

struct torch_bytes torch_field_bytes(const uint8_t **at)
{
    struct torch_bytes bytes = {*at + sizeof(uint64_t), (size_t)read_u64(*at)};
    *at = bytes.at + bytes.length;
    return bytes;
}

uint64_t torch_field_count(const uint8_t **at)
{
    uint64_t count = read_u64(*at);
    *at += sizeof(count);
    return count;
}

int64_t torch_field_number(const uint8_t **at)
{
    return (int64_t)torch_field_count(at);
}
