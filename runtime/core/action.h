/* SPDX-License-Identifier: Apache-2.0 */
/* What the core wants done, in this order: a queue of actions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/request.h"
#include "core/tuner.h"

/* X(name): what an action is. */
#define ACTION_LIST(X)                                                                          \
    X(ACTION_SEND)    /* `bytes` to set rank `to`; TO_ALL: to all but this rank */              \
    X(ACTION_RUN)     /* the operation of `parts` */                                            \
    X(ACTION_DONE)    /* the submission `token` is complete with `status`, `text` and `rank` */ \
    X(ACTION_TUNED)   /* the threshold and the cycle time have changed: `tuning` */             \
    X(ACTION_STALL)   /* `text` is a warning */                                                 \
    X(ACTION_GOES_ON) /* nothing of which there was a warning waits any more */                 \
    X(ACTION_ENDED)   /* the set has ended: nothing follows, except SEND and CLOSE */           \
    X(ACTION_CLOSE)   /* all members know that the set has ended */

#define ACTION_ENUM(name) name,
enum action_kind { ACTION_LIST(ACTION_ENUM) };
#undef ACTION_ENUM

enum { TO_ALL = -1 };

/* One tensor of an operation. */
struct part {
    struct request request; /* owned */
    void *token;            /* of the submission; NULL: this rank has joined, and gives zeros */
};

/* A tensor that not all ranks have submitted for too long. Ranks are global numbers, ascending. */
struct stall {
    char *name;
    enum kind kind;
    int *waiting, *missing; /* those that have submitted it or have joined, and the others */
    size_t waiting_count, missing_count;
    int64_t age_ns;
};

#define CORE_WAITS_MAX 4 /* groups of ranks of which core_waits() tells */

void stall_destroy(struct stall *stall); /* frees what it owns */

struct action {
    enum action_kind kind;
    int to;
    char *bytes;
    size_t length;
    struct part *parts;
    size_t count;
    void *token;
    enum hvd_status status;
    char *text;
    int rank;
    struct stall stall;
    struct tuning tuning;
};

struct actions {
    struct action *items;
    size_t first, count, room;
};

void actions_destroy(struct actions *actions);
void actions_add_take(struct actions *actions, const struct action *action);
/* False: there is not one. The caller destroys the action. */
bool actions_take(struct actions *actions, struct action *out);
void action_destroy(struct action *action);
