/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a core that only the root of a process set (set rank 0) has. It counts which ranks
 * have submitted what, and decides what happens next. All members apply its decisions in one order,
 * so all run the same operations in the same order. Knobs that shape decisions matter only here.
 *
 * A tensor is ready when each rank of the set has submitted it or has joined. Ready tensors run at
 * once, in the order of their priorities, and then in the order in which they became ready. Those
 * that are ready together are fused (fusion_groups).
 */
#pragma once

#include "base/error.h"
#include "core/action.h"
#include "core/cache.h"
#include "core/config.h"
#include "core/entries.h"

/* What the root knows about a member. */
struct seat {
    uint64_t seen; /* decisions that it has processed */
    bool silent;   /* it has not answered the last ping */
    bool left;
};

struct coordinator {
    const struct core_config *config;
    struct entries entries;
    struct numbers numbers;
    struct seat *seats;
    struct bits joined;
    int32_t last_joined;
    struct entry **ready; /* entries that all ranks have submitted */
    size_t ready_count, ready_room;
    uint64_t ready_number; /* how many tensors have become ready so far */
    bool has_priorities;   /* some that are ready may have another priority than 0 */
    struct step_plan plan;
    struct learner learner;
    struct tuner tuner;
    bool drop_plan, ping;
    bool has_stalled; /* there was a warning, and ACTION_GOES_ON has not followed */
    uint64_t decisions;
    int64_t ping_ns;     /* when the members were last asked whether they live */
    enum hvd_status end; /* not HVD_OK: the set ends */
    char *end_text;
    bool end_sent;
};

void coordinator_init(struct coordinator *coordinator, const struct core_config *config,
                      int64_t now_ns);
void coordinator_destroy(struct coordinator *coordinator);

/* A report of set rank `from`. -1: that rank breaks the rules; the error says how. */
int coordinator_report(struct coordinator *coordinator, int from, const void *bytes, size_t length,
                       int64_t now_ns, struct error *err);

/* Appends the next decision. False: there is nothing to decide. A requested end comes if `may_end`.
 */
bool coordinator_decide(struct coordinator *coordinator, int64_t now_ns, bool may_end,
                        struct buf *out);

/* Requests the end of the set. The first reason counts. */
void coordinator_end(struct coordinator *coordinator, enum hvd_status status, const char *text);

/* Whether an end was requested and has not been decided. */
bool coordinator_ends(const struct coordinator *coordinator);

/* Whether all members know that the set has ended. */
bool coordinator_all_left(const struct coordinator *coordinator);

/* Warns of tensors that have waited for too long, and asks whether silent members live. -1: a
 * member is lost, and the error says which. */
int coordinator_watch(struct coordinator *coordinator, int64_t now_ns, struct actions *actions,
                      struct error *err);
/* Says that what was stalled goes on, if that is so since the last decisions. */
void coordinator_see_progress(struct coordinator *coordinator, struct actions *actions);

/* As core_waits(). */
int coordinator_waits(const struct coordinator *coordinator, int64_t now_ns,
                      struct stall stalls[CORE_WAITS_MAX]);

/* When coordinator_watch() will have something to do; INT64_MAX: not foreseen. */
int64_t coordinator_deadline(const struct coordinator *coordinator);

/* This rank was busy until now, and could not hear the others. */
void coordinator_resumed(struct coordinator *coordinator, int64_t now_ns);
