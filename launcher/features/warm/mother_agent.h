/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mother: an interpreter that has imported what the ranks of one kind import, and forks them.
 *
 *   state     a rank waits   ready   she has forked   a module must be   she is lost, stopped,
 *                                                     left out, stale    or too slow
 *   AWAY      IMPORTS
 *   IMPORTS                  IDLE                     IMPORTS, anew      COLD
 *   IDLE      FORKS                                                      AWAY
 *   FORKS                            IDLE             IMPORTS, anew      COLD
 *
 * AWAY: she has no process. IDLE becomes AWAY after a while, too, if no more ranks are expected.
 * One of an earlier job begins in IDLE, and is asked in IMPORTS whether she is fit; if not, IMPORTS
 * begins anew. COLD: ranks are started in the usual way from now on. A rank that she has forked
 * runs nothing before the agent knows its pid and says so.
 */
#pragma once

#include "base/log.h"
#include "features/warm/kept_agent.h"
#include "features/warm/kind.h"
#include "features/warm/rank_agent.h"
#include "io/helpers.h"
#include "io/loop.h"

struct mother;

struct mother_config {
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log;
    const char *const *modules; /* NULL-ended; none: those that the script imports */
    /* A rank has its process: its exit may have come already. */
    void (*forked)(void *context, pid_t pid);
    void *context;
};

/* Takes `kind`. */
struct mother *mother_create(const struct mother_config *config, struct warm_kind *kind,
                             const sigset_t *mask);
void mother_destroy(struct mother *mother); /* ends her; the ranks that wait are dropped */

/* Goes on with one that an earlier job has left. Takes what `kept` has. She is asked whether she is
 * still fit when the first rank comes. */
struct mother *mother_adopt(const struct mother_config *config, struct warm_kept *kept,
                            const sigset_t *mask);
/* Destroys it, but leaves the process for another job. False: it was not fit, and has ended. */
bool mother_release(struct mother *mother, struct warm_kept *out);

const struct warm_kind *mother_kind(const struct mother *mother);
bool mother_is_cold(const struct mother *mother);
void mother_add(struct mother *mother, struct warm_rank *rank); /* takes it; not called when cold */
void mother_cancel(struct mother *mother, const void *context);
void mother_keep(struct mother *mother, bool keep); /* after the last rank: there may be more */
bool mother_forks(const struct mother *mother);     /* pids are not known yet */
bool mother_rests(const struct mother *mother);     /* not asked yet; see mother_adopt() */
bool mother_is_idle(const struct mother *mother);   /* she has no rank to start */
