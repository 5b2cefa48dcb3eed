/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core decides for one process set on one rank: when to report submissions, which operations
 * run, in which order, and which errors they have. It is pure: messages and the time go in, actions
 * come out. runtime/loop carries them out, and tests/simcore simulates many ranks in one process.
 *
 * Set rank 0 is the root. Messages of two ranks arrive in their order and are not lost, unless a
 * rank dies; then core_lost() must be called.
 *
 * The caller takes the actions with core_take() after each call, and carries them out in their
 * order. So the root has sent a decision before it runs the operation itself.
 */
#pragma once

#include "base/error.h"
#include "core/action.h"
#include "core/config.h"

struct core;

struct core *core_create(const struct core_config *config, int64_t now_ns);
void core_destroy(struct core *core); /* accepts NULL; drops what is pending */

/* Takes the request. `token` (not NULL) comes back in exactly one action: RUN or DONE. On failure
 * there is no action: HVD_ERR_DUPLICATE_NAME, HVD_ERR_ARGUMENT after a join, or the reason why the
 * set has ended. */
enum hvd_status core_submit(struct core *core, struct request *request, void *token, int64_t now_ns,
                            struct error *err);

/* What core_submit() would return for this request, which stays the caller's. */
enum hvd_status core_check(const struct core *core, const struct request *request,
                           struct error *err);

/* A thread waits for the submission with this token. */
void core_hurry(struct core *core, const void *token);

/* Asks for the end of the set on all ranks, with HVD_ERR_SHUT_DOWN or HVD_ERR_UNKNOWN_SET. */
void core_leave(struct core *core, enum hvd_status why);

/* A message of set rank `from`. -1: that rank breaks the rules; the error says how. */
int core_receive(struct core *core, int from, const void *bytes, size_t length, int64_t now_ns,
                 struct error *err);

/* Call it when the messages that are there have been received: reports, decides, and watches the
 * time. -1: a rank does not answer; the error says which. */
int core_turn(struct core *core, int64_t now_ns, struct error *err);

/* When core_turn() has something to do, if nothing comes; INT64_MIN: now; INT64_MAX: not foreseen.
 */
int64_t core_deadline(const struct core *core);

/* Uses another threshold and another cycle time, on this rank alone. They only matter for when it
 * reports, and, on the root, for what is fused. */
void core_tune(struct core *core, const struct tune_point *point);

/* Call it after an operation during which this rank could not hear the others. */
void core_resumed(struct core *core, int64_t now_ns);

/* On the root: the oldest tensor of each group of ranks that wait for others, for the caller to
 * destroy. A group has submitted the same. Returns how many; elsewhere 0. */
int core_waits(const struct core *core, int64_t now_ns, struct stall stalls[CORE_WAITS_MAX]);

/* Everything that is pending fails, and so does what comes later. The root tells the others; no
 * other message is sent any more. */
void core_lost(struct core *core, enum hvd_status status, const char *text);

/* Whether the set has ended: every submission fails. */
bool core_has_ended(const struct core *core);

bool core_take(struct core *core, struct action *action); /* false: there is none */
