/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes frames of the bytes of a stream. A frame that is lost, repeated or out of order is refused.
 * A body that came in PART frames is handed out whole. Pure: the owner reads the bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/frame.h"

#define FRAME_READ_MAX ((size_t)256 << 10) /* what is read at once */

struct frame_reader {
    struct buf in;
    struct buf parts; /* the beginning of a body that came in PART frames */
    uint16_t taken;   /* number of the next frame */
    size_t used;      /* of `in`: the frame that was handed out last */
    bool whole;       /* that was the body in `parts` */
};

void frame_reader_init(struct frame_reader *reader);
void frame_reader_clear(struct frame_reader *reader);

/* Where to read the next bytes to, and how many; then commit how many came. */
void *frame_reader_reserve(struct frame_reader *reader, size_t *size);
void frame_reader_commit(struct frame_reader *reader, size_t length);

/* 1: a frame; `*body` is borrowed until the next call. 0: more bytes are needed. -1: what came is
 * not the next frame, or is too large; nothing more can be taken. */
int frame_reader_next(struct frame_reader *reader, struct frame_header *header,
                      const uint8_t **body, struct error *err);

bool frame_reader_is_clean(const struct frame_reader *reader); /* not inside a message */
