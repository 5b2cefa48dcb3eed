/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks of a set tell each other besides tensors: short messages, over the alltoallv() of
 * any engine. All go through set rank 0, so their number grows with the ranks and not with the
 * pairs of ranks. All ranks make the same call, with the same size. Status: as of the operations in
 * engine/engine.h.
 */
#pragma once

#include "engine/engine.h"

struct message_set {
    const struct engine *engine;
    struct engine_comm *comm;
    int rank, size;
    int64_t timeout_ms; /* as of alltoallv() */
};

/* All ranks learn whether the `bytes` bytes are the same on all of them. */
enum hvd_status messages_compare(const struct message_set *set, const void *own, size_t bytes,
                                 bool *same, struct error *err);

/* All ranks get the `data` of set rank 0. */
enum hvd_status messages_from_root(const struct message_set *set, void *data, size_t bytes,
                                   struct error *err);

/* All ranks learn whether one has a problem. `*failed` is the first that has, and `err` gets its
 * text; -1: none has. */
enum hvd_status messages_agree(const struct message_set *set, const char *problem, int *failed,
                               struct error *err);
