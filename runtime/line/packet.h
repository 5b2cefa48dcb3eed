/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of the line between an agent and the workers of its node (docs/internals/libhvd.md).
 * Pure.
 *
 * The line is a Unix socket of type SOCK_SEQPACKET, so each packet arrives whole. Numbers are in
 * network byte order. A packet has at most LINE_PACKET_MAX bytes:
 *   0 version (1)  1 type (1)  2 zero (2)  4 body
 *
 * Later versions only append fields to a body and add types. So a receiver ignores a type that it
 * does not know and bytes after the body that it knows. Both sides treat packets as untrusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LINE_VERSION 1
#define LINE_PACKET_MAX 4096
#define LINE_ENDED_MAX 128    /* ranks in one ENDED */
#define LINE_RANGES_MAX 64    /* ranges of ranks in one list of STALLED */
#define LINE_NAME_MAX 1023    /* bytes of a tensor's name */
#define LINE_OPERATION_MAX 31 /* bytes of an operation's name */

/* X(name, number). From the agent: EPOCH, ENDED, HOSTS, ASK and ASK_WAITS. From the worker: the
 * others. */
#define LINE_TYPE_LIST(X) \
    X(LINE_EPOCH, 1)      \
    X(LINE_ENDED, 2)      \
    X(LINE_HOSTS, 3)      \
    X(LINE_ASK, 4)        \
    X(LINE_ASK_WAITS, 5)  \
    X(LINE_STALLED, 16)   \
    X(LINE_GOES_ON, 17)   \
    X(LINE_PROGRESS, 18)  \
    X(LINE_WAITS, 19)

enum line_type {
#define LINE_TYPE_ENUM(name, number) name = (number),
    LINE_TYPE_LIST(LINE_TYPE_ENUM)
#undef LINE_TYPE_ENUM
        LINE_UNKNOWN = 0 /* only line_packet_get() gives it */
};

/* How a rank has ended. */
enum line_how {
    LINE_EXITED, /* `code` is the exit status */
    LINE_KILLED, /* `code` is the number of the signal */
    LINE_LOST    /* its host was lost */
};

struct line_ended {
    uint32_t rank;
    uint8_t how; /* enum line_how; a later version may have more */
    uint8_t code;
};

struct line_range {
    uint32_t first, last;
};

/* Ranks, ascending. */
struct line_ranks {
    uint16_t count;
    bool more; /* further ranks did not fit */
    struct line_range ranges[LINE_RANGES_MAX];
};

/* EPOCH uses `epoch`. ENDED uses `epoch`, `ended_count` and `ended`. PROGRESS uses `operations`.
 * GOES_ON uses `set`, and STALLED uses `set` and all members below it. ASK_WAITS uses `round`, and
 * WAITS uses `round` and what STALLED uses. If nothing waits in the set, it has no ranks. */
struct line_packet {
    enum line_type type;
    uint32_t epoch;
    uint16_t ended_count;
    struct line_ended ended[LINE_ENDED_MAX];
    uint32_t round;                         /* of a question; WAITS repeats it */
    uint64_t operations;                    /* that this worker has completed since hvd_init() */
    uint32_t set;                           /* process set; 0: all ranks */
    uint32_t seconds;                       /* since the first rank submitted the tensor */
    uint32_t others;                        /* further operations of the set that are stalled */
    char operation[LINE_OPERATION_MAX + 1]; /* "allreduce" */
    char name[LINE_NAME_MAX + 1];
    struct line_ranks waiting, missing; /* global ranks: have submitted it, have not */
};

/* Adds a rank, which must be greater than all before it. */
void line_ranks_add(struct line_ranks *ranks, uint32_t rank);

/* Writes the packet to `out` and returns its length, which is never 0. */
size_t line_packet_put(const struct line_packet *packet, uint8_t out[LINE_PACKET_MAX]);

/* Fills in what the type uses. Texts have no NUL or control character inside. Lists are ascending.
 * -1: the bytes are not a packet. The error says why. */
int line_packet_get(const uint8_t *bytes, size_t length, struct line_packet *packet,
                    struct error *err);
