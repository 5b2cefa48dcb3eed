/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame_reader.h"

#define IN_LIMIT ((size_t)FRAME_BODY_MAX + FRAME_HEADER_SIZE + FRAME_READ_MAX)
#define LARGE (16u << 10)                 /* bytes of a frame that are worth a read of their own */
#define WHOLE_BODY_MAX ((size_t)64 << 20) /* of a body that comes in parts */

void frame_reader_init(struct frame_reader *reader)
{
    *reader = (struct frame_reader){.in = BUF_INIT(IN_LIMIT), .parts = BUF_INIT(WHOLE_BODY_MAX)};
}

void frame_reader_clear(struct frame_reader *reader)
{
    buf_destroy(&reader->in);
    buf_destroy(&reader->parts);
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
    if (reader->whole)
        buf_destroy(&reader->parts);
    reader->whole = false;
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
        if (header->type != FRAME_PART && reader->parts.length == 0)
            return 1;
        if (buf_append(&reader->parts, *body, header->length) < 0)
            return error_set(err, "the other side sent a message that is too large");
        if (header->type != FRAME_PART) {
            header->length = (uint32_t)reader->parts.length;
            *body = (const uint8_t *)buf_text(&reader->parts);
            reader->whole = true;
            return 1;
        }
        drop_last(reader);
    }
    return 0;
}

bool frame_reader_is_clean(const struct frame_reader *reader)
{
    return reader->in.length == 0 && reader->parts.length == 0;
}
