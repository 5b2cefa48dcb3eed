/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All crews of this node. There is one, unless workers rejoin or ranks spawn others: then an epoch
 * adds a crew to those whose workers go on. In an elastic job, a crew that is over (crew_is_over())
 * is destroyed as soon as there is a newer one. The newest stays, since a static job may still ask
 * about it. The folders of a crew that is over are removed before the crew, so that the end of a
 * job does not wait for that.
 */
#pragma once

#include "agent/crew.h"
#include "agent/worker_lines.h"

struct crews;

/* `finished` is called when workers have ended, as crew_config.finished. It must not add or destroy
 * a crew. */
struct crews *crews_create(struct loop *loop, void (*finished)(void *context), void *context);
void crews_destroy(struct crews *crews);

/* Destroys the crews that are over, and those that were prepared and never started. Returns how
 * many others there are. */
size_t crews_make_way(struct crews *crews);
void crews_clear(struct crews *crews); /* destroys all of them: no process of them runs */

/* What ended before has nothing to do with what happens from now on. */
void crews_new_epoch(struct crews *crews);

/* Takes `prepare`; fills in `config->finished` and its context. The epoch must be newer than all
 * others. */
struct crew *crews_add(struct crews *crews, struct crew_config *config, Hvdrun__Prepare *prepare);
/* Destroys it, unless it has started and is not over. */
void crews_cancel(struct crews *crews, uint32_t epoch);

struct crew *crews_find(const struct crews *crews, uint32_t epoch); /* NULL: none */
bool crews_is_newer(const struct crews *crews, uint32_t epoch);     /* than all that are there */

/* For all of them, as in crew.h. */
bool crews_exited(struct crews *crews, const struct reaper_exit *exit);
void crews_stop(struct crews *crews);
void crews_signal(struct crews *crews, int signal);
bool crews_release(struct crews *crews, int64_t seat, bool continues);
void crews_pause(struct crews *crews, bool paused);
void crews_resize(struct crews *crews, int rows, int columns);
void crews_cut(struct crews *crews);
/* The runtime folder of each crew that has one. */
void crews_walk_folders(const struct crews *crews, void (*each)(void *context, const char *folder),
                        void *context);
/* What all workers are doing. `lines` (may be NULL) say how far each of them has come. */
void crews_states(const struct crews *crews, const struct worker_lines *lines,
                  const struct descendants_table *processes, struct crew_states *out);
void crew_states_destroy(struct crew_states *states);

void crews_walk_live(const struct crews *crews,
                     void (*each)(void *context, uint32_t seat, pid_t pid), void *context);
int crews_live(const struct crews *crews);
bool crews_is_finished(const struct crews *crews);
void crews_leave_folders(struct crews *crews); /* as crew_leave_folders() */
bool crews_seat_of(const struct crews *crews, pid_t session, uint32_t *seat);
/* To which worker does a process belong? To the one in whose session it is, or below which.
 * `scratch` has room for USAGE_TEXT_MAX. false: to none. */
bool crews_seat_below(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat);
