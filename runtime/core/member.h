/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a core that every rank has: its own submissions, its view of the cache and of the
 * plan. It writes reports for the root. core.c has what the root's decisions do.
 *
 * A submission is reported at the latest when the cycle time has passed since the oldest one that
 * has not been reported. It is reported earlier in three cases: a thread waits for it
 * (member_hurry), the submissions fill a fused operation, or they complete a group of the plan.
 */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "core/action.h"
#include "core/cache.h"
#include "core/config.h"
#include "core/message.h"

struct pending {
    struct request request;
    void *token;
    size_t id; /* NO_ID: reported as a whole request */
    bool reported;
    struct pending *next; /* in a list of the member, or of those for later use */
};

/*
 * The submissions of a member that are not complete. Those of tensors that the member's cache has
 * are found by their number there, all others by their key. So a training step, whose tensors are
 * all known, does not put a name into a table or take one out.
 */
struct pendings {
    struct map by_key;      /* without a number -> struct pending */
    struct pending **by_id; /* with one */
    size_t capacity, count;
    struct pending *spare; /* for later use: a list */
};

/* NULL: there is none. `id` is the number of the key in the cache, or NO_ID. A submission may have
 * been made before its key had the number, so both count. */
struct pending *pendings_find(const struct pendings *pendings, size_t id, const char *key);

/* It is the caller's now, until pendings_recycle(). */
void pendings_remove(struct pendings *pendings, struct pending *pending);

/* Its request was taken, or destroyed. */
void pendings_recycle(struct pendings *pendings, struct pending *pending);

/* Removes all of them: a list. */
struct pending *pendings_take_all(struct pendings *pendings);

struct member {
    struct core_config *config; /* its threshold and its cycle time follow the root's decisions */
    struct pendings pendings;
    struct cache cache;
    struct step_plan plan;
    struct bits outgoing;               /* numbers of submissions that the next report has */
    struct bits held;                   /* those that wait for their group */
    struct pending *fresh, **fresh_end; /* submissions without a number, for the next report */
    size_t fresh_count, bytes;
    int64_t since_ns, held_since_ns, heard_ns;
    bool urgent;
    uint64_t seen;
    unsigned flags;         /* enum report_flag, for the next report */
    bool joined;            /* a join is pending */
    enum hvd_status status; /* not HVD_OK: the set has ended */
    char *text;
};

void member_init(struct member *member, struct core_config *config, int64_t now_ns);
void member_destroy(struct member *member);

/* Takes the request, also on failure: HVD_ERR_DUPLICATE_NAME, HVD_ERR_ARGUMENT after a join, or
 * the reason why the set has ended. `token` must not be NULL. */
enum hvd_status member_submit(struct member *member, struct request *request, void *token,
                              int64_t now_ns, struct error *err);

enum hvd_status member_check(const struct member *member, const struct request *request,
                             struct error *err);

/* A thread waits for the submission with this token, so others will not follow soon. */
void member_hurry(struct member *member, const void *token);

/* Asks for the end of the set, with a flag of enum report_flag. */
void member_leave(struct member *member, unsigned flag);

/* Whether member_report() has something to say now, and when it will have at the latest (INT64_MAX:
 * not foreseen). */
bool member_is_due(const struct member *member, int64_t now_ns);
int64_t member_deadline(const struct member *member);
void member_report(struct member *member, int64_t now_ns, struct buf *out);

bool member_waits(const struct member *member); /* for a decision of the root */

/* For core.c. The submission with this key, or NULL. */
struct pending *member_find(const struct member *member, const char *key);

/* A number leaves the cache; what is held back does not wait any longer. */
void member_forget(struct member *member, size_t id, int64_t now_ns);
void member_release_held(struct member *member);
