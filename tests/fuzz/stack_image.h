/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image of what a reader of Python stacks has read of a process. The file is small, since it
 * has only these bytes: "HVDRUNIM", the address of _PyRuntime (u64), the minor version (u64), and
 * pieces: address (u64), length (u64), bytes. All numbers are little-endian.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "stacks/memory.h"

#define IMAGE_MAGIC "HVDRUNIM"

struct image_piece {
    uint64_t address;
    size_t length;
    const unsigned char *bytes; /* in the image's own copy */
};

struct image {
    unsigned char *copy;
    struct image_piece *pieces;
    size_t count;
    uint64_t runtime;
    int minor;
};

static inline int image_read(void *context, uint64_t address, void *out, size_t length)
{
    const struct image *image = context;
    for (size_t i = 0; i < image->count; i++) {
        const struct image_piece *piece = &image->pieces[i];
        uint64_t inside = address - piece->address;
        if (address >= piece->address && inside <= piece->length &&
            length <= piece->length - inside) {
            memcpy(out, piece->bytes + inside, length);
            return 0;
        }
    }
    return -1;
}

/* -1: not an image. A piece that is cut ends at the end of the data. */
static inline int image_parse(const unsigned char *data, size_t size, struct image *out)
{
    *out = (struct image){.copy = NULL};
    if (size < 24 || memcmp(data, IMAGE_MAGIC, 8) != 0)
        return -1;
    out->copy = mem_dup(data, size);
    out->runtime = memory_u64_at(out->copy + 8);
    out->minor = (int)(memory_u64_at(out->copy + 16) & 255);
    for (size_t at = 24; at + 16 < size;) {
        uint64_t length = memory_u64_at(out->copy + at + 8);
        size_t left = size - at - 16;
        struct image_piece piece = {.address = memory_u64_at(out->copy + at),
                                    .length = length < left ? (size_t)length : left,
                                    .bytes = out->copy + at + 16};
        out->pieces = mem_resize_array(out->pieces, out->count + 1, sizeof(piece));
        out->pieces[out->count++] = piece;
        at += 16 + piece.length;
    }
    return 0;
}

static inline void image_destroy(struct image *image)
{
    free(image->copy);
    free(image->pieces);
    *image = (struct image){.copy = NULL};
}

/* Reads the same from another memory, and keeps it in `file`. */
struct image_recorder {
    struct memory *source;
    struct buf file;
};

static inline void image_begin(struct image_recorder *recorder, uint64_t runtime, int minor)
{
    uint64_t head[2] = {runtime, (uint64_t)minor};
    buf_append(&recorder->file, IMAGE_MAGIC, 8);
    buf_append(&recorder->file, head, sizeof(head));
}

static inline int image_record(void *context, uint64_t address, void *out, size_t length)
{
    struct image_recorder *recorder = context;
    struct image known;
    if (memory_read(recorder->source, address, out, length) < 0)
        return -1;
    image_parse((const unsigned char *)buf_text(&recorder->file), recorder->file.length, &known);
    unsigned char *again = mem_alloc(length + 1);
    if (image_read(&known, address, again, length) < 0) {
        uint64_t head[2] = {address, length};
        buf_append(&recorder->file, head, sizeof(head));
        buf_append(&recorder->file, out, length);
    }
    free(again);
    image_destroy(&known);
    return 0;
}
