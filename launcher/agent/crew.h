/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crew: the workers that one epoch starts on this node, from PREPARE to the last FINISHED. When
 * workers rejoin, those of older crews go on at the same time (crews.h).
 *
 * At PREPARE the crew does everything that can fail (programs, MPI servers, ports, bindings) and
 * answers READY. START spawns the workers, in slices: the loop still runs between them.
 */
#pragma once

#include "agent/crew_config.h"
#include "base/strv.h"
#include "io/reaper.h"
#include "node/descendants.h"
#include "wire/control.pb-c.h"

struct crew;

/* How a worker has ended. ASKED: hvdrun wanted that. NONE: it is none of this crew. */
enum crew_end { CREW_END_NONE, CREW_END_ASKED, CREW_END_SUCCESS, CREW_END_FAILURE };

/* Takes `prepare` and sends READY; READY says it when the crew cannot start. */
struct crew *crew_create(const struct crew_config *config, Hvdrun__Prepare *prepare);
void crew_destroy(struct crew *crew); /* the runtime folder too */

/* Works once, if READY reported no problem and the end has not begun; else it does nothing. */
void crew_start(struct crew *crew, const Hvdrun__Start *start);
/* `failed`: a worker of this node has failed before, in this epoch of the job. */
enum crew_end crew_exited(struct crew *crew, const struct reaper_exit *exit, bool failed);
/* The workers that are ending, but cannot be waited for yet, have ended at this time. Reads /proc
 * for each worker that runs. */
void crew_note_ends(struct crew *crew, int64_t when_ns);
/* The end has begun: spawns no more workers. Notes which ones are ending by now. */
void crew_stop(struct crew *crew);
void crew_signal(struct crew *crew, int signal);
void crew_signal_seat(struct crew *crew, uint32_t seat, int signal); /* of an unknown seat: none */
/* The worker on this seat (-1: each) need not wait at its start any more. `continues`: it goes on;
 * else the caller sees to that. false: none waited. */
bool crew_release(struct crew *crew, int64_t seat, bool continues);
void crew_resize(struct crew *crew, int rows, int columns);
void crew_input(struct crew *crew, const struct frame_data *data, const uint8_t *bytes,
                size_t length);
void crew_cut(
    struct crew *crew); /* every process has ended: ends the streams after what is in them */
void crew_end_worker(struct crew *crew, uint32_t seat, int signal, int64_t grace_ms);
void crew_pause(struct crew *crew, bool paused); /* the job is suspended: no grace passes */
/* As mpi_relay_frame(). */
const char *crew_mpi_frame(struct crew *crew, uint8_t type, const void *message);

/* What the workers are doing: seats, pids and texts, appended. `finished`: also workers that have
 * finished. */
struct crew_states {
    uint32_t *seats; /* as many as texts */
    pid_t *pids;     /* likewise; 0: its process does not run */
    struct strv texts;
};
void crew_states(const struct crew *crew, bool finished, const struct descendants_table *processes,
                 struct crew_states *states);

/* Calls `each` for each worker whose process runs. */
void crew_walk_live(const struct crew *crew, void (*each)(void *context, uint32_t seat, pid_t pid),
                    void *context);

uint32_t crew_epoch(const struct crew *crew);
const char *crew_folder(const struct crew *crew); /* the runtime folder; NULL: none */
void crew_leave_folders(struct crew *crew);       /* removes its folders: no process uses them */
int crew_live(const struct crew *crew);           /* workers whose process runs */
bool crew_is_started(const struct crew *crew);
bool crew_is_elastic(const struct crew *crew);
bool crew_is_finished(const struct crew *crew); /* also when it never started */
bool crew_is_over(const struct crew *crew); /* it started, and no process of it is left to end */
bool crew_has_seat(const struct crew *crew, uint32_t seat);
/* The seat of the live worker that leads this session, which is also its group; false: none. */
bool crew_seat_of(const struct crew *crew, pid_t session, uint32_t *seat);
