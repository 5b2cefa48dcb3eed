/* SPDX-License-Identifier: Apache-2.0 */
#include "core/codec.h"

#include <string.h>

#include "base/mem.h"

enum { WORD = 64 };

void put_number(struct buf *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    buf_append(out, bytes, count);
}

/* Small magnitudes become small numbers. */
void put_signed(struct buf *out, int64_t value)
{
    put_number(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

void put_real(struct buf *out, double value)
{
    uint64_t bits;
    unsigned char bytes[8];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    buf_append(out, bytes, sizeof bytes);
}

void put_text(struct buf *out, const char *text)
{
    size_t length = strlen(text);
    put_number(out, length);
    buf_append(out, text, length);
}

void put_bits(struct buf *out, const struct bits *bits)
{
    size_t count = bits->count;
    while (count > 0 && bits->words[count - 1] == 0)
        count--;
    put_number(out, count);
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[8];
        for (size_t b = 0; b < sizeof bytes; b++)
            bytes[b] = (unsigned char)(bits->words[i] >> 8 * b);
        buf_append(out, bytes, sizeof bytes);
    }
}

static const unsigned char *take(struct reader *in, size_t length)
{
    const unsigned char *at = in->at;
    if (in->bad || length > in->left) {
        in->bad = true;
        return NULL;
    }
    in->at += length;
    in->left -= length;
    return at;
}

uint64_t get_number(struct reader *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < WORD; shift += 7) {
        const unsigned char *byte = take(in, 1);
        if (byte == NULL)
            return 0;
        value |= (uint64_t)(*byte & 0x7f) << shift;
        if ((*byte & 0x80) == 0)
            return value;
    }
    in->bad = true;
    return 0;
}

uint64_t get_number_below(struct reader *in, uint64_t end)
{
    uint64_t value = get_number(in);
    if (value < end)
        return value;
    in->bad = true;
    return 0;
}

int64_t get_signed(struct reader *in)
{
    uint64_t value = get_number(in);
    return (int64_t)(value >> 1 ^ (~(value & 1) + 1));
}

static uint64_t get_word(struct reader *in)
{
    const unsigned char *bytes = take(in, 8);
    uint64_t value = 0;
    for (size_t i = 0; bytes != NULL && i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

double get_real(struct reader *in)
{
    uint64_t bits = get_word(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

char *get_text(struct reader *in, size_t max)
{
    uint64_t length = get_number_below(in, (uint64_t)max + 1);
    const unsigned char *bytes = take(in, (size_t)length);
    if (bytes == NULL)
        return NULL;
    if (memchr(bytes, '\0', (size_t)length) != NULL) {
        in->bad = true;
        return NULL;
    }
    return mem_strndup((const char *)bytes, (size_t)length);
}

void get_bits(struct reader *in, size_t end, struct bits *out)
{
    uint64_t count = get_number_below(in, (end + WORD - 1) / WORD + 1);
    bits_clear(out);
    for (size_t i = 0; i < count && !in->bad; i++) {
        uint64_t word = get_word(in);
        if (word == 0)
            continue;
        bits_set(out, i * WORD); /* makes room */
        out->words[i] = word;
    }
    in->bad = in->bad || bits_next(out, end) != SIZE_MAX;
    if (in->bad)
        bits_clear(out);
}
