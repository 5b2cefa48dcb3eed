/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames, the units of the protocol between driver and agents (D3).
 *
 * Header, 16 bytes, network byte order:
 *   0 version (1)  1 type (1)  2 number (2)  4 body length (4)  8 node (4)  12 epoch (4)
 *
 * Number: each direction of a link counts its frames from 0, modulo 2^16. The receiver refuses a
 * frame with another number than the next, so it notices lost, repeated and reordered frames.
 *
 * Body: it has at most FRAME_BODY_MAX bytes. The beginning of a larger body goes into PART frames,
 * directly before the frame that they belong to. A body that may wait comes in PIECE frames. Other
 * frames go between these. Its last bytes are in PIECES_END, behind a byte with the frame's type.
 * Control bodies are messages of control.proto.
 * OUTPUT and STDIN bodies are raw:
 *   0 seat (4)  4 stream (1)  5 zero (3)  8 offset of the first byte in the stream (8)
 *   16 sender's monotonic time, ns (8)  24 bytes...
 * Stream 0 is stdin, 1 is stdout, 2 is stderr. A STDIN or OUTPUT frame without bytes is the end of
 * the stream. OUTPUT_SHOW has the same body without bytes, and means: show the unfinished line.
 *
 * Every frame about workers carries its epoch. The receiver drops a frame of an earlier epoch.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define FRAME_VERSION 3
#define FRAME_HEADER_SIZE 16
#define FRAME_BODY_MAX (1u << 20)
#define FRAME_NODE_NONE UINT32_MAX
/* Limit of the bytes in one MPI_* message, which comes in parts. The receiver refuses more. */
#define FRAME_MPI_DATA_MAX ((size_t)60 << 20)

/* clang-format off */
#define FRAME_LIST(X)                                                                              \
    X(FRAME_HELLO, 1) X(FRAME_WELCOME, 2) X(FRAME_PREPARE, 3) X(FRAME_READY, 4) X(FRAME_START, 5)  \
    X(FRAME_STARTED, 6) X(FRAME_EXITED, 7) X(FRAME_FINISHED, 8) X(FRAME_OUTPUT, 9)                 \
    X(FRAME_OUTPUT_CREDIT, 10) X(FRAME_STDIN, 11) X(FRAME_STDIN_CREDIT, 12) X(FRAME_SIGNAL, 13)    \
    X(FRAME_END, 14) X(FRAME_KILLING, 15) X(FRAME_ENDED, 16) X(FRAME_QUIT, 17)                     \
    X(FRAME_HEARTBEAT, 18) X(FRAME_HEARTBEAT_REPLY, 19) X(FRAME_SUSPEND, 20)                       \
    X(FRAME_SUSPENDED, 21) X(FRAME_RESUME, 22) X(FRAME_LOG, 23) X(FRAME_KV_REQUEST, 24)            \
    X(FRAME_KV_REPLY, 25) X(FRAME_KV_DROPPED, 26) X(FRAME_ABORT, 28)       \
    X(FRAME_WINDOW_SIZE, 31) X(FRAME_TERMINATE, 32) X(FRAME_PART, 33)                              \
    X(FRAME_MPI_COLLECT, 34) X(FRAME_MPI_COLLECTED, 35)                                            \
    X(FRAME_MPI_MODEX, 36) X(FRAME_MPI_MODEX_DATA, 37) X(FRAME_MPI_STORE, 38)                      \
    X(FRAME_MPI_STORE_REPLY, 39) X(FRAME_MPI_EVENT, 40) X(FRAME_MPI_SIGNAL, 41)                     \
    X(FRAME_END_WORKER, 42) X(FRAME_CANCEL, 43) X(FRAME_EPOCH, 44) X(FRAME_NOTIFY, 45)             \
    X(FRAME_NOTIFIED, 46) X(FRAME_DEADLINE, 47) X(FRAME_SIGNALLED, 48)                             \
    X(FRAME_OUTPUT_SHOW, 53) X(FRAME_FAREWELL, 54) X(FRAME_LINE_OPENED, 55)                        \
    X(FRAME_RANKS_ENDED, 56) X(FRAME_STALL, 57) X(FRAME_PROGRESS, 62)                              \
    X(FRAME_ASK, 77) X(FRAME_ANSWER, 78) X(FRAME_SPAWN, 79) X(FRAME_SPAWNED, 80)                   \
    X(FRAME_UNKILLED, 81) X(FRAME_STAGE, 82) X(FRAME_STAGED, 83) X(FRAME_PIECE, 91)                \
    X(FRAME_PIECES_END, 92) X(FRAME_TREE_OPEN, 96) X(FRAME_TREE_OPENED, 97)                        \
    X(FRAME_TREE_JOIN, 98) X(FRAME_TREE_JOINED, 99) X(FRAME_TREE_LEFT, 100)                        \
    X(FRAME_TREE_DOWN, 101) X(FRAME_TREE_TAKEN, 102)
/* clang-format on */

enum frame_type {
#define FRAME_ENUM(name, number) name = (number),
    FRAME_LIST(FRAME_ENUM)
#undef FRAME_ENUM
        FRAME_TYPES /* one more than the last */
};

struct frame_header {
    uint8_t version;
    uint8_t type;
    uint16_t number;
    uint32_t length;
    uint32_t node;
    uint32_t epoch;
};

const char *frame_name(uint8_t type); /* "unknown" for an unknown type */

void frame_header_put(const struct frame_header *header, uint8_t out[FRAME_HEADER_SIZE]);

/* -1: the version is different, the type is unknown, or the body is too long. The text says which.
 */
int frame_header_get(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *header,
                     struct error *err);

#define FRAME_DATA_PREFIX 24

struct frame_data {
    uint32_t seat;
    uint8_t stream;
    uint64_t offset;
    uint64_t when_ns;
};

void frame_data_put(const struct frame_data *data, uint8_t out[FRAME_DATA_PREFIX]);
int frame_data_get(const uint8_t *body, uint32_t length, struct frame_data *data,
                   struct error *err);

/*
 * Makes frames of the bytes of a stream. A frame that is lost, repeated or out of order is refused.
 * A body that came in PART or PIECE frames is handed out whole. Pure: the owner reads the bytes.
 */
#define FRAME_READ_MAX ((size_t)256 << 10) /* what is read at once */

struct frame_reader {
    struct buf in;
    struct buf parts;  /* the beginning of a body that came in PART frames */
    struct buf pieces; /* likewise in PIECE frames */
    uint16_t taken;    /* number of the next frame */
    size_t used;       /* of `in`: the frame that was handed out last */
    struct buf *whole; /* the body that was handed out last; NULL: it was in `in` */
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

/*
 * The build includes this before the generated code of the messages, so that messages take their
 * memory from base/mem.h. If a body cannot be unpacked, the body is broken: it is never a lack of
 * memory. A body that needs more than 32 MiB plus four times its length is broken too. No valid
 * message does, and without the limit a peer could turn 64 MiB into several GiB.
 */

#define protobuf_c_message_unpack message_unpack

ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length,
                                 const uint8_t *bytes);

/* For messages of any kind. The message packed; free its data. NULL: an empty message. */
ProtobufCBinaryData message_pack(const ProtobufCMessage *message);
/* The message packed, and what goes before `length` bytes of its field number `field` (0: nothing),
 * which `message` itself leaves empty. The caller destroys it. */
struct buf message_head(const ProtobufCMessage *message, unsigned field, size_t length);
/* The reverse of message_pack(). NULL: the bytes are broken. */
ProtobufCMessage *message_read(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                               size_t length);
/* The same, but does not copy the field `field` of bytes if it is the last one, as message_head()
 * wants it. Its value `**borrowed` is in `bytes`; whoever frees the message takes it out before. If
 * it is not, or `field` is 0, `*borrowed` is NULL. */
ProtobufCMessage *message_borrow(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                                 size_t length, unsigned field, ProtobufCBinaryData **borrowed);
void message_free(ProtobufCMessage *message); /* of these; accepts NULL */
