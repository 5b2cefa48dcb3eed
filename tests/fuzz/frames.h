/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes frames from fuzz bytes, for the two targets that send nonsense to a whole end of the
 * protocol. A message makes sense at first. The bytes then choose fields of it, and values for
 * these, mostly at a limit (counts, ranks, node numbers, epochs).
 */
#pragma once

#include "base/buf.h"
#include "fuzz.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

#define FRAMES_MAX ((size_t)100 << 10) /* what a socket takes without a reader */

struct frames {
    struct fuzz_bytes *bytes;
    struct buf *out;
    void **kept; /* what messages point to, until frames_clear() */
    size_t kept_count;
    uint32_t node; /* in the headers */
    uint32_t rank; /* of a frame about a worker that makes sense */
    /* Texts come from a list without anything that could be run or connected to, not from the
     * bytes. */
    bool tame;
};

void frames_clear(struct frames *frames);

/* Overwrites some fields. */
void frames_change(struct frames *frames, ProtobufCMessage *message);

void frames_put(struct frames *frames, enum frame_type type, uint32_t epoch, const void *body,
                size_t length);
void frames_put_message(struct frames *frames, enum frame_type type, uint32_t epoch,
                        const ProtobufCMessage *message);

/* Gives the frames in `bytes`, as far as they are some, the numbers from `first` on; returns the
 * next one. */
uint16_t frames_number(struct buf *bytes, uint16_t first);

/* One of these types, with the message that belongs to it (NULL: none; OUTPUT and STDIN have raw
 * bytes): made up, changed and appended. Of ASK and ANSWER, the message is that of the topic. */
struct frames_kind {
    enum frame_type type;
    const ProtobufCMessageDescriptor *message;
};
void frames_put_any(struct frames *frames, const struct frames_kind *kind);
