/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a process set. A member sends *reports* to the root (set rank 0): what has been
 * submitted there since its last report. The root sends *decisions* to all members: what happens
 * next, in the same order for everybody. Each decision is a list of items.
 *
 * Tensors that are in the cache travel as one bit each, all others as whole requests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/codec.h"
#include "core/request.h"
#include "core/tuner.h"

#define NO_ID ((size_t)-1)

/* Bounds of what a message may say. */
struct message_limits {
    size_t ids;   /* capacity of the cache */
    size_t ranks; /* of the job */
};

enum report_flag {
    REPORT_SHUTS_DOWN = 1, /* the member ends the library */
    REPORT_REMOVES = 2,    /* the member removes the process set */
    REPORT_LEFT = 4,       /* its last report: it has seen the end */
};

struct report {
    unsigned flags;
    uint64_t seen;            /* decisions that the member has processed */
    struct bits ids;          /* tensors of the cache that it has submitted */
    struct request *requests; /* all others */
    size_t count;
};

/* Begins a report; append its requests with request_write(). */
void report_begin(struct buf *out, unsigned flags, uint64_t seen, const struct bits *ids,
                  size_t count);
/* -1: it is not a report; then it is empty. */
int report_read(const void *bytes, size_t length, const struct message_limits *limits,
                struct report *out);
void report_destroy(struct report *report);

/* X(name): the items of a decision. */
#define ITEM_LIST(X)                                                                 \
    X(ITEM_RUN)    /* one operation: tensors of `ids`, ascending, then of `parts` */ \
    X(ITEM_ERROR)  /* the request of `key` fails with `status` and `text` */         \
    X(ITEM_FORGET) /* `ids` leave the cache */                                       \
    X(ITEM_GROUP)  /* a group of the plan: `ids` */                                  \
    X(ITEM_NO_PLAN)                                                                  \
    X(ITEM_JOINED) /* all ranks have joined, `rank` last */                          \
    X(ITEM_TUNE)   /* the threshold and the cycle time change, as `tuning` says */   \
    X(ITEM_PING)   /* each member should answer with a report */                     \
    X(ITEM_END)    /* the set ends with `status` and `text` */

#define ITEM_ENUM(name) name,
enum item_kind { ITEM_LIST(ITEM_ENUM) ITEMS };
#undef ITEM_ENUM

/* A tensor that is not in the cache, and its number there from now on, or NO_ID. */
struct item_part {
    struct request request;
    size_t id;
};

struct item {
    enum item_kind kind;
    struct bits ids;
    struct item_part *parts;
    size_t count;
    char *key, *text;
    enum hvd_status status;
    int32_t rank;
    struct tuning tuning;
};

/* Appends an item. A part's request is borrowed. */
void item_write(const struct item *item, struct buf *out);
/* False: there is not another one, or the reader is bad. The caller destroys the item. */
bool item_read(struct reader *in, const struct message_limits *limits, struct item *out);
void item_destroy(struct item *item);
