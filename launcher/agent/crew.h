/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crew: the workers that one epoch starts on this node, from PREPARE to the last FINISHED. When
 * workers rejoin, those of older crews go on beside it (crews.h).
 *
 * PREPARE makes everything that can fail before anything runs (program found, MPI servers, ports,
 * bindings) and answers READY; START spawns, in slices, so that the loop stays alive with a
 * thousand ranks.
 */
#pragma once

#include "agent/crew_config.h"
#include "base/strv.h"
#include "io/reaper.h"
#include "wire/control.pb-c.h"

struct crew;

/* Takes `prepare` and sends READY, which says so when the crew cannot start. */
struct crew *crew_create(const struct crew_config *config, Hvdrun__Prepare *prepare);
void crew_destroy(struct crew *crew); /* the runtime folder too */

/* Once, and only if READY did not say no and the end has not begun; else it does nothing. */
void crew_start(struct crew *crew, const Hvdrun__Start *start);
bool crew_exited(struct crew *crew, const struct reaper_exit *exit); /* false: not a worker */
void crew_stop(struct crew *crew); /* the end has begun: nothing more is spawned */
void crew_signal(struct crew *crew, int signal);
void crew_resize(struct crew *crew, int rows, int columns);
void crew_input(struct crew *crew, const struct frame_data *data, const uint8_t *bytes,
                size_t length);
void crew_cut(struct crew *crew); /* no process is left: streams end with what is in them */
void crew_end_worker(struct crew *crew, uint32_t seat, int signal, int64_t grace_ms);
void crew_pause(struct crew *crew, bool paused); /* the job is suspended: no grace passes */
void crew_mpi_frame(struct crew *crew, uint8_t type, const uint8_t *body, size_t length);

/* What the workers are doing: seats and texts, appended. `finished`: also those who have ended. */
struct crew_states {
    uint32_t *seats; /* as many as texts */
    struct strv texts;
};
void crew_states(const struct crew *crew, bool finished, struct crew_states *states);

uint32_t crew_epoch(const struct crew *crew);
const char *crew_folder(const struct crew *crew); /* the runtime folder; NULL: none */
void crew_leave_folders(struct crew *crew);       /* removes its folders: no process uses them */
int crew_live(const struct crew *crew);           /* workers whose process runs */
bool crew_is_started(const struct crew *crew);
bool crew_is_finished(const struct crew *crew);            /* also when it never started */
bool crew_is_over(const struct crew *crew);                /* it started, and nothing is left */
bool crew_has_group(const struct crew *crew, pid_t group); /* of a live worker */
